//! What `siltstone plan-uploads` is told.

use std::path::PathBuf;

use clap::Args;

use crate::settings::SettingsArgs;

/// Say which segments are to be uploaded to remote storage now, and why the others are not.
///
/// The rule is Kafka's: every segment that is not written to any more and ends below the last
/// stable offset, from the first offset on that is not copied yet. A segment with a broken index is
/// blocked, and those behind it wait, so that no broken index is uploaded and no hole is left.
///
/// Topics without remote storage are left out; where nothing tells which have it, all are taken to.
/// Nothing is written. High watermarks and log starts come from the checkpoints of the log
/// directory, last stable offsets from the high watermark and open transactions; options override
/// them. --copy-lag-ms and --copy-lag-bytes show what KIP-1241 (remote.copy.lag.ms and .bytes, in
/// no Kafka release up to 4.3.1) would put off.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone plan-uploads --remote /mnt/remote /var/lib/kafka
      what waits in every partition that is tiered, and how old it is
  siltstone plan-uploads --remote s3://bucket/tier /var/lib/kafka/orders-0
      the same of one partition, whose uploads are in a bucket
  siltstone plan-uploads --segments --highest-remote-offset 4711 /var/lib/kafka/orders-0
      each segment of one partition, and why it is not uploaded
  siltstone plan-uploads --assume-remote --copy-lag-ms 86400000 --copy-lag-bytes -1 /var/lib/kafka
      what would be uploaded if all topics were tiered and uploads waited for a day

Exit codes: 0 nothing wrong, 1 a segment is blocked (by a damaged index, or outside the lineage)
or a file is damaged, 2 something could not be looked at.")]
pub(crate) struct PlanUploadsArgs {
    /// Log directories (entries of log.dirs) or partition directories.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// One JSON object a partition.
    #[arg(long)]
    pub(crate) json: bool,

    /// List the segments of each partition.
    #[arg(long, short)]
    pub(crate) segments: bool,

    /// Up to where the partition is replicated (exclusive). For one partition.
    #[arg(long, allow_negative_numbers = true, value_name = "OFFSET",
          value_parser = clap::value_parser!(i64).range(0..),
          help_heading = "Offsets")]
    pub(crate) high_watermark: Option<i64>,

    /// Up to where everything is replicated and decided (exclusive). For one partition.
    #[arg(long, value_name = "OFFSET", allow_negative_numbers = true, help_heading = "Offsets")]
    pub(crate) last_stable_offset: Option<i64>,

    /// Where the log starts, remote storage included. For one partition.
    #[arg(long, allow_negative_numbers = true, value_name = "OFFSET",
          value_parser = clap::value_parser!(i64).range(0..),
          help_heading = "Offsets")]
    pub(crate) log_start_offset: Option<i64>,

    /// The last offset that is copied (inclusive); -1 for none. For one partition.
    #[arg(long, value_name = "OFFSET", allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(-1..), conflicts_with = "remote",
          help_heading = "Offsets")]
    pub(crate) highest_remote_offset: Option<i64>,

    /// Learn what is copied from this folder, which is laid out as Kafka's LocalTieredStorage
    /// does it, or from the URL of one in an object store (s3://, gs://, az://, https://). Without
    /// it, and without --highest-remote-offset, nothing counts as copied.
    #[arg(long, value_name = "DIR|URL", help_heading = "Offsets")]
    pub(crate) remote: Option<PathBuf>,

    /// Put uploads off until a segment's largest timestamp is so old; 0: at once, -1: the topic's
    /// local retention.
    #[arg(long, value_name = "MS", allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(-1..), help_heading = "What if")]
    pub(crate) copy_lag_ms: Option<i64>,

    /// Put uploads off until so many bytes of the log are newer; 0: at once, -1: the topic's local
    /// retention. A segment goes when either limit lets it.
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(-1..), help_heading = "What if")]
    pub(crate) copy_lag_bytes: Option<i64>,

    /// Plan as if every topic had remote storage.
    #[arg(long, help_heading = "What if")]
    pub(crate) assume_remote: bool,

    /// Take this as the time of day, in milliseconds since 1970.
    #[arg(long, allow_negative_numbers = true, value_name = "MS",
          value_parser = clap::value_parser!(i64).range(0..), help_heading = "What if")]
    pub(crate) now_ms: Option<i64>,

    /// Look at the sizes of indexes alone, and do not read them.
    #[arg(long, help_heading = "What is looked at")]
    pub(crate) sizes_only: bool,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

impl PlanUploadsArgs {
    /// The options that make sense for one partition only, of those that were given.
    pub(crate) fn of_one_partition(&self) -> Option<&'static str> {
        let options = [
            ("--high-watermark", self.high_watermark),
            ("--last-stable-offset", self.last_stable_offset),
            ("--log-start-offset", self.log_start_offset),
            ("--highest-remote-offset", self.highest_remote_offset),
        ];
        options.into_iter().find(|(_, given)| given.is_some()).map(|(name, _)| name)
    }
}
