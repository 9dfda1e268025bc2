//! `siltstone dump`: what is in the files, batch by batch and record by record.

mod decode;
mod line;
mod printer;
mod ranges;
mod shown;
mod side_files;
mod uploads;

use std::io::Write;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use clap::Args;
use siltstone::dir::files::LOCK_FILE;
use siltstone::io::Storage;
use siltstone::log::{FolderName, LogFacts, ReadOptions, Selection, read_log};
use siltstone::segment::FileRole;
use siltstone::tier::layout::parse_partition;
use siltstone::{Error, Kind, Result};
use siltstone_objects::RemoteDisk;

use crate::Outcome;
use crate::location::{self, Location};
use crate::output;
use crate::session::Session;
use crate::target::{Content, PartitionDir, Target, file_name};
use decode::Topic;
use line::Line;
use printer::Printer;

/// Print what is in log files and the files beside them.
///
/// Of a partition or log directory, every batch and record of its logs in order; of a file,
/// whatever it holds: a .log (also .log.deleted, .log.swap, .log.lost), .index, .timeindex,
/// .txnindex, .snapshot, leader-epoch-checkpoint, an offset checkpoint, a metadata snapshot
/// (.checkpoint).
///
/// Records of Kafka's own topics are decoded, by the name of the directory or as --decode says.
/// Passwords in the metadata log are printed as [hidden]. Keys and values are printed as text where
/// they are printable text, else in hexadecimal (in JSON: a string, or {"base64": ...}).
///
/// A PATH may also be a URL of an object store: s3://, gs://, az://, https:// or file://. Of the
/// segments that a broker has uploaded there, the parts and the folders of partitions are known
/// under the names that Kafka's LocalTieredStorage gives them.
///
/// Damage is reported with file, position and reason; the rest of that file is not guessed at. The
/// unfinished tail of a log that a running broker writes to is no damage.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone dump --batches /var/lib/kafka/orders-0
      the headers of all batches
  siltstone dump --offsets 1000..1010 /var/lib/kafka/orders-0
      ten records
  siltstone dump --time 2026-01-31T12:00Z..2026-01-31T12:05Z --key user-17 /data/orders-0
      what was said of a key within five minutes
  siltstone dump --json /data/__consumer_offsets-7 |
      jq -c 'select(.decoded_key.data.group == \"billing\")'
      the offsets that a group has committed
  siltstone dump /var/lib/kafka/__cluster_metadata-0/00000000000000123456-0000000007.checkpoint
      a snapshot of the cluster's metadata
  siltstone dump --bytes 4000..8000 s3://bucket/00000000000000000089-y-tcbHSyS_K1aAUhhTCjAg.log
      a range of an uploaded segment, as a consumer would read it

Frames and checksums are checked, whether batches fit together is for `siltstone verify` to say.

Exit codes: 0 nothing wrong there, 1 damage or records that cannot be decoded,
2 something could not be read.")]
pub(crate) struct DumpArgs {
    /// Files, partition directories or log directories, or URLs of such in an object store.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// One JSON object a line: `type` is file, batch, record, problem, or what an entry of a side
    /// file is.
    #[arg(long)]
    json: bool,

    /// Only the headers of batches, not their records.
    #[arg(long, short, conflicts_with_all = ["full"])]
    batches: bool,

    /// Only these offsets: A..B (B excluded), A..=B, A.., ..B, or one alone.
    #[arg(long, value_name = "RANGE", value_parser = ranges::parse_offsets,
          help_heading = "Filters", allow_hyphen_values = true)]
    offsets: Option<Range<i64>>,

    /// Only these timestamps, written like offsets: milliseconds since 1970, or ISO-8601 in UTC.
    #[arg(long, value_name = "RANGE", value_parser = ranges::parse_times, help_heading = "Filters",
          allow_hyphen_values = true)]
    time: Option<Range<i64>>,

    /// Only batches of this producer.
    #[arg(long, value_name = "ID", help_heading = "Filters", allow_hyphen_values = true)]
    producer_id: Option<i64>,

    /// Only records with exactly this key: text, or hex: and its bytes in hexadecimal.
    #[arg(long, value_name = "KEY", value_parser = ranges::parse_key, help_heading = "Filters")]
    key: Option<Key>,

    /// Only these bytes of a .log file, written like offsets; a batch must begin at the first.
    #[arg(long, value_name = "RANGE", value_parser = ranges::parse_positions,
          help_heading = "Filters", conflicts_with = "salvage")]
    bytes: Option<Range<u64>>,

    /// Decode records as those of this topic, whatever the directory is called. (The metadata log
    /// is always decoded: it has passwords in it.)
    #[arg(long, value_name = "TOPIC", value_enum)]
    decode: Option<Topic>,

    /// Go on behind damage, at the next bytes that are a whole batch with a right checksum.
    ///
    /// What stands in between is lost; each damaged place is reported, and the exit code stays 1.
    #[arg(long)]
    salvage: bool,

    /// Print long keys and values whole.
    #[arg(long)]
    full: bool,

    /// Open no batch that has, or opens to, more than this.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    max_decompressed_bytes: usize,
}

/// The bytes of a key. (clap would take a plain vector for an option with many values.)
type Key = Vec<u8>;

/// Dumps all paths.
pub(crate) fn run(args: &DumpArgs, session: &Session) -> std::io::Result<Outcome> {
    let mut dump = Dump {
        session,
        decode: args.decode,
        options: ReadOptions {
            selection: Selection {
                offsets: args.offsets.clone().unwrap_or(i64::MIN..i64::MAX),
                times_ms: args.time.clone().unwrap_or(i64::MIN..i64::MAX),
                producer_id: args.producer_id,
                key: args.key.clone(),
            },
            with_records: !args.batches,
            limit_bytes: args.max_decompressed_bytes,
            salvage: args.salvage,
            maps: session.maps,
            positions: args.bytes.clone().unwrap_or(0..u64::MAX),
        },
        has_positions: args.bytes.is_some(),
        store: None,
        printer: Printer {
            out: output::stdout(),
            is_json: args.json,
            is_full: args.full,
            line: Line::default(),
            outcome: Outcome::Fine,
            error: None,
            partition: String::new(),
            topic: Topic::Other,
            growing: None,
            position: 0,
        },
    };
    for path in &args.paths {
        let flow = match dump.find(path) {
            Ok(target) => dump.target(&target),
            Err(error) => dump.printer.fail(&error),
        };
        if flow.is_break() {
            break;
        }
    }
    let mut printer = dump.printer;
    if let Some(error) = printer.error {
        return Err(error);
    }
    printer.out.flush()?;
    Ok(printer.outcome)
}

/// One run of the verb.
struct Dump<'a> {
    session: &'a Session,
    decode: Option<Topic>,
    options: ReadOptions,
    /// Whether some bytes of a log were asked for.
    has_positions: bool,
    /// The object store that is read; `None` for the disk.
    store: Option<RemoteDisk>,
    printer: Printer,
}

/// What is read: the store, or else the disk.
fn disk<'a>(store: Option<&'a RemoteDisk>, session: &'a Session) -> &'a dyn Storage {
    match store {
        Some(store) => store,
        None => session.storage(),
    }
}

impl Dump<'_> {
    /// Turns to the disk or store that a PATH is in, and finds out what it is.
    fn find(&mut self, path: &Path) -> Result<Target> {
        let location = Location::find(self.session, path)?;
        self.store = location.store;
        let target = Target::classify(disk(self.store.as_ref(), self.session), &location.path)?;
        let is_log = matches!(
            target,
            Target::File { content: Content::Segment(FileRole::Log, _) | Content::Lost, .. }
        );
        if self.has_positions && !is_log {
            let why = "--bytes is for one .log file";
            return Err(Error::new(Kind::InvalidArgument, why).in_file(&location.path));
        }
        Ok(target)
    }

    fn target(&mut self, target: &Target) -> ControlFlow<()> {
        if let Target::File { path, content } = target {
            return self.file(path, *content);
        }
        match PartitionDir::of_target(disk(self.store.as_ref(), self.session), target) {
            Ok(partitions) => {
                partitions.iter().try_for_each(|partition| self.partition(&partition.path))
            }
            Err(error) => self.printer.fail(&error),
        }
    }

    fn partition(&mut self, path: &Path) -> ControlFlow<()> {
        self.enter(path);
        self.printer.growing = self.growing_log(path);
        match location::logs(disk(self.store.as_ref(), self.session), path) {
            Ok(logs) if logs.is_empty() => self.log(path),
            Ok(logs) => {
                let offsets = &self.options.selection.offsets;
                let wanted = uploads::wanted(self.session, path, &logs, offsets);
                wanted.into_iter().try_for_each(|log| self.log(log))
            }
            Err(error) => self.printer.fail(&error),
        }
    }

    /// Reads a file of batches, or all those of a directory.
    fn log(&mut self, path: &Path) -> ControlFlow<()> {
        let storage = disk(self.store.as_ref(), self.session);
        if let Err(error) = read_log(storage, path, &self.options, &mut self.printer) {
            self.printer.fail(&error)?;
        }
        match self.printer.error {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    /// Turns to the files of this partition directory.
    fn enter(&mut self, dir: &Path) {
        let name = file_name(dir);
        let of_upload = parse_partition(&name).map(|partition| partition.topic);
        let topic = of_upload.or_else(|| FolderName::parse(&name).map(|folder| folder.topic));
        let of_name = topic.map_or(Topic::Other, |topic| Topic::of_name(&topic));
        self.printer.topic = match of_name {
            Topic::ClusterMetadata => Topic::ClusterMetadata,
            _ => self.decode.unwrap_or(of_name),
        };
        self.printer.partition = name;
    }

    /// The newest log of the directory, where a running broker may be writing.
    fn growing_log(&self, dir: &Path) -> Option<PathBuf> {
        let storage = disk(self.store.as_ref(), self.session);
        let lock = dir.parent()?.join(LOCK_FILE);
        if !storage.is_locked(&lock).unwrap_or(false) {
            return None;
        }
        let facts = LogFacts::read(storage, dir).ok()?;
        Some(facts.path_of(facts.segments.last()?.base_offset, FileRole::Log))
    }

    fn file(&mut self, path: &Path, content: Content) -> ControlFlow<()> {
        let dir = path.parent().unwrap_or(path);
        self.enter(dir);
        self.printer.growing = self.growing_log(dir);
        let outcome = match content {
            Content::Segment(FileRole::Log, _) | Content::Lost => return self.log(path),
            Content::MetadataSnapshot => {
                self.printer.topic = Topic::ClusterMetadata;
                return self.log(path);
            }
            _ => self.side_file(path, content),
        };
        match outcome {
            Ok(flow) => flow,
            Err(error) => self.printer.fail(&error),
        }
    }

    fn side_file(&mut self, path: &Path, content: Content) -> Result<ControlFlow<()>> {
        let storage = disk(self.store.as_ref(), self.session);
        let printer = &mut self.printer;
        match content {
            Content::Segment(FileRole::Snapshot, _) => side_files::snapshot(storage, path, printer),
            Content::Segment(role, base_offset) => {
                side_files::index(storage, path, role, base_offset, printer)
            }
            Content::Epochs => side_files::epochs(storage, path, printer),
            Content::Offsets => side_files::offsets(storage, path, printer),
            Content::Text | Content::Lost | Content::MetadataSnapshot => {
                side_files::text(storage, path, printer)
            }
        }
    }
}
