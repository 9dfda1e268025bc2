//! What `siltstone recover` is told.

use std::path::PathBuf;

use clap::Args;

use crate::settings::SettingsArgs;

/// Make the log directories of a stopped broker fit to start.
///
/// After a kill or a power cut, Kafka reads its logs again at the next start, one thread a log.
/// `recover` does that work beforehand and on all cores: it checks the batches behind the recovery
/// point, cuts a torn tail, rebuilds indexes, producer snapshots and leader epochs that are missing
/// or wrong, and leaves a clean-shutdown marker, so that Kafka starts as after a clean stop.
///
/// It never loses data silently. A torn or zero tail with nothing whole behind it is cut and
/// reported. Where whole batches stand behind damage, the partition is refused until you say
/// --allow-loss; what is cut is then kept beside the log as <base>.log.lost. A directory that a
/// running broker holds locked is refused.
///
/// It can be killed at any moment and started again. Try it first with --dry-run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone recover --dry-run /var/lib/kafka
      what would be done, and what would be lost; nothing is written
  siltstone recover /disk1/kafka /disk2/kafka
      all log directories of a broker in one run
  siltstone recover --allow-loss --quarantine /disk1/refused /disk1/kafka
      cut damaged logs, move aside what cannot be judged; Kafka fetches those replicas anew
  siltstone recover --truncate-to 4711 /var/lib/kafka/orders-0
      one partition, cut at an offset that you name

Exit codes: 0 all that was given is fit to start, 1 a partition was left as it was (loss not
allowed, or refused) or something else keeps Kafka from starting, 2 could not look or write.")]
pub(crate) struct RecoverArgs {
    /// Partition directories or log directories (entries of log.dirs).
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// One JSON object a line on standard output: `type` is partition, or log_dir behind those of
    /// a directory. The manual has their keys.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the plan and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Threads to work with; by default one for each processor.
    #[arg(long, allow_negative_numbers = true, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,

    /// Cut a log where it is damaged, although whole batches behind the damage go with it.
    ///
    /// Without this, such a partition is left as it was, and the offsets that would go are named.
    /// The cut bytes are kept as <base>.log.lost in the partition directory, which Kafka
    /// ignores.
    #[arg(long, help_heading = "What may be lost")]
    pub(crate) allow_loss: bool,

    /// Do not keep what is cut. For a disk that has no room for it.
    #[arg(long, help_heading = "What may be lost")]
    pub(crate) discard_lost: bool,

    /// Cut one partition so that it ends at this offset (exclusive).
    ///
    /// The way out for a partition that is refused even with --allow-loss: a batch of an unknown
    /// magic, or offsets that run backwards. PATH must then be a single partition directory.
    #[arg(long, allow_negative_numbers = true, value_name = "OFFSET",
          value_parser = clap::value_parser!(i64).range(0..),
          help_heading = "What may be lost")]
    pub(crate) truncate_to: Option<i64>,

    /// Move refused partitions into this directory (made if missing, on the same file system).
    ///
    /// The rest of the log directory can then get its clean-shutdown marker, and Kafka fetches the
    /// moved partitions anew from their leaders.
    #[arg(long, value_name = "DIR", help_heading = "What may be lost")]
    pub(crate) quarantine: Option<PathBuf>,

    /// Check every batch of every segment, not only what lies behind the recovery point.
    #[arg(long, help_heading = "What is checked")]
    pub(crate) all: bool,

    /// Take the directory for cleanly stopped, as if its .kafka_cleanshutdown were there.
    #[arg(long, help_heading = "What is checked")]
    pub(crate) clean_shutdown: bool,

    /// Take this as the recovery point, in place of recovery-point-offset-checkpoint. For one
    /// partition.
    #[arg(long, allow_negative_numbers = true, value_name = "OFFSET",
          value_parser = clap::value_parser!(i64).range(0..),
          help_heading = "What is checked")]
    pub(crate) recovery_point: Option<i64>,

    /// Take this as the log start offset, in place of log-start-offset-checkpoint. For one
    /// partition.
    #[arg(long, allow_negative_numbers = true, value_name = "OFFSET",
          value_parser = clap::value_parser!(i64).range(0..),
          help_heading = "What is checked")]
    pub(crate) log_start_offset: Option<i64>,

    /// The topic id that the partition must have; one with another id is refused. For one
    /// partition.
    #[arg(long, value_name = "BASE64", help_heading = "What is checked")]
    pub(crate) topic_id: Option<String>,

    /// The topic's max.message.bytes, as `verify` takes it. It limits what producers may append,
    /// and changes nothing here: larger batches are kept.
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "BYTES",
        help_heading = "What is checked"
    )]
    pub(crate) max_message_bytes: Option<u64>,

    /// A limit of `verify`. It changes nothing here: recovery looks into no batch.
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "BYTES",
        help_heading = "What is checked"
    )]
    pub(crate) max_decompressed_bytes: Option<u64>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Use dynamic broker settings as the newest metadata snapshot has them, as Kafka does while
    /// it recovers, and not as the running broker had them.
    #[arg(long, help_heading = "Settings")]
    pub(crate) like_kafka: bool,

    /// Read the metadata log up to this offset (exclusive) and no further.
    #[arg(long, allow_negative_numbers = true, value_name = "OFFSET",
          value_parser = clap::value_parser!(i64).range(0..),
          help_heading = "Settings")]
    pub(crate) metadata_upto: Option<i64>,

    /// Take this as the time of day, in milliseconds since 1970. For runs that must give the same
    /// bytes.
    #[arg(long, allow_negative_numbers = true, value_name = "MS",
          value_parser = clap::value_parser!(i64).range(0..), help_heading = "Settings")]
    pub(crate) now_ms: Option<i64>,

    /// Forget producers that were silent for longer (Kafka's producer.id.expiration.ms; 86400000
    /// by default).
    #[arg(long, allow_negative_numbers = true, value_name = "MS",
          value_parser = clap::value_parser!(i64).range(1..),
          help_heading = "Settings")]
    pub(crate) producer_id_expiration_ms: Option<i64>,
}
