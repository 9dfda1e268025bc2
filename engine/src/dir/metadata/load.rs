//! How is the metadata log of a node read? The newest complete snapshot, then the log behind it.
//!
//! Nothing is written, and the log is not cut: where it is broken, reading ends there and says so.

use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::io::{OpenMode, Storage, WindowReader};
use crate::problem::Code;
use crate::record::batch::HEADER_SIZE;
use crate::record::payload::{Payload, decode_control_record};
use crate::record::records::Records;
use crate::record::scan::{ScanEnd, ScannedBatch, Stop, Visitor, scan};
use crate::segment::damage;

use super::files::{self, Files, SnapshotId, segment_name};
use super::image::{BrokerConfigs, MetadataImage};
use super::replay::{BATCH_BYTES_MAX, Replay};

/// Bytes that are read at once.
const WINDOW_BYTES: usize = 1 << 20;
/// How often reading starts anew when files vanish under a running broker.
const TRIES: usize = 3;

/// What is known from elsewhere when the metadata log is read.
#[derive(Clone, Debug, Default)]
pub struct MetadataOptions {
    /// Reads records below this offset only.
    pub upto: Option<i64>,
    /// This node's id.
    pub node_id: Option<i32>,
    /// The broker epoch in the node's clean-shutdown file: what the broker had heard of is
    /// committed.
    pub broker_epoch: Option<i64>,
    /// Node ids of `controller.quorum.voters`, where the file of settings has it.
    pub quorum_voters: Option<Vec<i32>>,
}

/// The cluster as this node's disk knows it.
#[derive(Debug)]
pub struct LoadedMetadata {
    /// The state.
    pub image: MetadataImage,
    /// The snapshot that it begins with.
    pub snapshot: Option<String>,
    /// The offset behind the last record that was read.
    pub read_to: i64,
    /// The epoch of the last batch.
    pub last_epoch: i32,
    /// Everything below this offset is committed for sure; what is behind it nearly always is,
    /// too.
    pub committed_at_least: i64,
    /// Records that a newer release wrote; where there are any, settings may be incomplete.
    pub unknown_records: u64,
    /// The dynamic configs of this node and of all brokers as of the snapshot: what a starting
    /// broker recovers with.
    pub snapshot_broker_configs: BrokerConfigs,
    /// Whether the log was read to its end, or up to what was asked for: behind damage there may be
    /// topics that are not known, and settings. A last batch that was never finished is no damage.
    pub is_whole: bool,
    /// Sentences for the operator.
    pub warnings: Vec<String>,
}

/// Reads the metadata log in `folder`, as [`find_metadata`](super::find_metadata) gives it.
///
/// `Corrupt` when the log begins late and no complete snapshot stands before it; damage elsewhere
/// is a warning.
pub fn load_metadata(
    storage: &dyn Storage,
    folder: &Path,
    options: &MetadataOptions,
) -> Result<LoadedMetadata> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        let files = files::list(storage, folder)?;
        match (Loader { storage, folder, options }).load(&files) {
            // A running broker has deleted a file between listing and opening.
            Err(error) if error.kind() == Kind::NotFound && tries > 0 => {}
            other => return other,
        }
    }
}

struct Loader<'a> {
    storage: &'a dyn Storage,
    folder: &'a Path,
    options: &'a MetadataOptions,
}

/// Where the log ends.
#[derive(Clone, Copy, Debug, Default)]
struct LogEnd {
    offset: i64,
    epoch: Option<i32>,
    /// Whether something stands behind it that cannot be read.
    is_early: bool,
}

impl Loader<'_> {
    fn load(&self, files: &Files) -> Result<LoadedMetadata> {
        // spec: kraft-metadata 5
        let upto = self.options.upto.unwrap_or(i64::MAX);
        let log_start = files.segments.first().copied();
        let (mut replay, snapshot) = self.newest_snapshot(files, upto)?;
        let reaches = match (snapshot, log_start) {
            (_, None | Some(0)) => true,
            (Some(snapshot), Some(start)) => snapshot.end_offset >= start,
            (None, Some(start)) => {
                let message = format!(
                    "the metadata log begins at offset {start} and no complete snapshot stands \
                     before it"
                );
                return Err(Error::corrupt(message).in_file(self.folder));
            }
        };
        let snapshot_broker_configs = replay.image.broker_layers(self.options.node_id);
        let mut end = LogEnd::default();
        if reaches {
            let from = snapshot.map_or(0, |snapshot| snapshot.end_offset);
            end = self.replay_log(&mut replay, files, from, upto)?;
        } else {
            end.is_early = true;
            replay.warnings.add(
                "the metadata log begins behind its newest snapshot: Kafka will not start with it; \
                 only the snapshot is used"
                    .to_owned(),
            );
        }
        if let Some(snapshot) = snapshot {
            let is_older = end.epoch.is_none_or(|epoch| {
                snapshot.epoch > epoch
                    || (snapshot.epoch == epoch && snapshot.end_offset > end.offset)
            });
            if is_older {
                // Kafka throws such a log away at its next start.
                let warnings = std::mem::take(&mut replay.warnings);
                replay = self.newest_snapshot(files, upto)?.0;
                replay.warnings = warnings;
                let (offset, epoch) = (snapshot.end_offset, Some(snapshot.epoch));
                end = LogEnd { offset, epoch, ..end };
            }
            end.offset = end.offset.max(snapshot.end_offset);
        }
        let committed = self.committed_at_least(&replay, snapshot, end);
        self.finish(replay, snapshot, snapshot_broker_configs, end, committed)
    }

    fn finish(
        &self,
        mut replay: Replay,
        snapshot: Option<SnapshotId>,
        snapshot_broker_configs: BrokerConfigs,
        end: LogEnd,
        committed_at_least: i64,
    ) -> Result<LoadedMetadata> {
        if replay.unknown_records > 0 {
            let warning =
                "this node's metadata was written by a newer release, settings may be incomplete";
            replay.warnings.add(warning.to_owned());
        }
        if end.epoch.is_none() {
            replay.warnings.add("the metadata log holds no records".to_owned());
        }
        Ok(LoadedMetadata {
            image: replay.image,
            snapshot: snapshot.map(SnapshotId::file_name),
            read_to: end.offset,
            last_epoch: end.epoch.unwrap_or(-1),
            committed_at_least,
            unknown_records: replay.unknown_records,
            snapshot_broker_configs,
            is_whole: !end.is_early,
            warnings: replay.warnings.into_texts(),
        })
    }

    /// What is committed for sure.
    fn committed_at_least(
        &self,
        replay: &Replay,
        snapshot: Option<SnapshotId>,
        end: LogEnd,
    ) -> i64 {
        // spec: kraft-metadata 4
        let only_voter = match &replay.image.voters {
            Some(voters) => voters.iter().map(|voter| voter.id).collect(),
            None => self.options.quorum_voters.clone().unwrap_or_default(),
        };
        if let (Some(node_id), [voter]) = (self.options.node_id, only_voter.as_slice())
            && node_id == *voter
        {
            return end.offset;
        }
        let snapshot = snapshot.map_or(0, |snapshot| snapshot.end_offset);
        snapshot.max(replay.registered_at.unwrap_or(0)).min(end.offset)
    }

    /// The state of the newest snapshot that is complete; an empty state when there is none.
    fn newest_snapshot(&self, files: &Files, upto: i64) -> Result<(Replay, Option<SnapshotId>)> {
        let mut incomplete = Vec::new();
        let wanted = files.snapshots.iter().rev().filter(|id| id.end_offset <= upto);
        let mut found = (self.empty(), None);
        for &id in wanted {
            match self.read_snapshot(id)? {
                Ok(replay) => {
                    found = (replay, Some(id));
                    break;
                }
                Err(reason) => {
                    incomplete.push(format!("snapshot {} is left out: {reason}", id.file_name()));
                }
            }
        }
        incomplete.into_iter().for_each(|warning| found.0.warnings.add(warning));
        Ok(found)
    }

    fn empty(&self) -> Replay {
        Replay::new(self.options.node_id.zip(self.options.broker_epoch))
    }

    /// The state that a snapshot holds, or why it is not complete.
    fn read_snapshot(&self, id: SnapshotId) -> Result<std::result::Result<Replay, String>> {
        let mut replay = self.empty();
        let mut next = 0_i64;
        let mut has_footer = false;
        let mut refused = None;
        let end = self.scan_file(&id.file_name(), |batch| {
            let header = batch.header;
            if header.base_offset != next || header.next_offset() <= next {
                refused = Some(format!("offset {} stands where {next} is due", header.base_offset));
                return Ok(ControlFlow::Break(()));
            }
            next = header.next_offset();
            has_footer = is_footer(&batch);
            // Offsets inside a snapshot are not those of the log.
            if let Err(error) = replay.batch(header, batch.bytes, 0, i64::MAX) {
                refused = Some(error.message().to_owned());
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        replay.registered_at = None;
        Ok(match refused {
            Some(reason) => Err(reason),
            None if end.stop != Stop::End => Err(end_reason(&end)),
            None if !has_footer => Err("it has no end".to_owned()),
            None => Ok(replay),
        })
    }

    /// Applies the log from offset `from` up to `upto`, as far as it is whole.
    fn replay_log(
        &self,
        replay: &mut Replay,
        files: &Files,
        from: i64,
        upto: i64,
    ) -> Result<LogEnd> {
        let mut end =
            LogEnd { offset: files.segments.first().copied().unwrap_or(from), ..LogEnd::default() };
        for &base in &files.segments {
            if base >= upto {
                break;
            }
            let name = segment_name(base);
            let (mut refused, mut asked) = (None, false);
            let scanned = self.scan_file(&name, |batch| {
                let header = batch.header;
                if header.base_offset >= upto {
                    asked = true;
                    return Ok(ControlFlow::Break(()));
                }
                if header.magic != 2
                    || header.base_offset != end.offset
                    || header.next_offset() <= end.offset
                {
                    let (found, due) = (header.base_offset, end.offset);
                    refused = Some(format!("offset {found} stands where {due} is due"));
                    return Ok(ControlFlow::Break(()));
                }
                if header.last_offset() >= from
                    && let Err(error) = replay.batch(header, batch.bytes, from, upto)
                {
                    refused = Some(error.to_string());
                    return Ok(ControlFlow::Break(()));
                }
                end.offset = header.next_offset();
                end.epoch = Some(header.leader_epoch);
                Ok(ControlFlow::Continue(()))
            })?;
            if asked {
                break;
            }
            if refused.is_some() || scanned.stop != Stop::End {
                let is_last = files.segments.last() == Some(&base);
                end.is_early = refused.is_some()
                    || !is_last
                    || !self.is_unfinished(&name, scanned, base, end.offset)?;
                let reason = refused.unwrap_or_else(|| end_reason(&scanned));
                let (position, offset) = (scanned.position, end.offset);
                replay.warnings.add(format!(
                    "{name} at position {position}: {reason}; the metadata is read up to \
                     offset {offset}"
                ));
                break;
            }
        }
        end.offset = end.offset.min(upto);
        Ok(end)
    }

    /// Whether a file ends with a batch that was being written, or in zeros.
    fn is_unfinished(&self, name: &str, end: ScanEnd, base: i64, offset: i64) -> Result<bool> {
        let file = self.storage.open(&self.folder.join(name), OpenMode::Read)?;
        let mut source = WindowReader::new(&*file, file.metadata()?.size_bytes, WINDOW_BYTES);
        let found = damage::examine(&mut source, end, base, offset)?;
        let natural = [Code::TornBatch, Code::ZeroTail];
        Ok(found.is_none_or(|damage| natural.contains(&damage.code)))
    }

    fn scan_file(
        &self,
        name: &str,
        batch: impl FnMut(ScannedBatch<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ScanEnd> {
        let path = self.folder.join(name);
        let file = self.storage.open(&path, OpenMode::Read)?;
        let size = file.metadata()?.size_bytes;
        let mut source = WindowReader::new(&*file, size, WINDOW_BYTES);
        scan(&mut source, 0, u64::MAX, &mut WholeBatches(batch))
    }
}

/// A visitor that is handed batches with all their bytes.
struct WholeBatches<F>(F);

impl<F: FnMut(ScannedBatch<'_>) -> Result<ControlFlow<()>>> Visitor for WholeBatches<F> {
    fn body_limit_bytes(&self) -> usize {
        BATCH_BYTES_MAX
    }

    fn batch(&mut self, batch: ScannedBatch<'_>) -> Result<ControlFlow<()>> {
        (self.0)(batch)
    }
}

/// Whether the last record of a batch is the end of a snapshot.
fn is_footer(batch: &ScannedBatch<'_>) -> bool {
    if !batch.header.is_control() {
        return false;
    }
    let payload = batch.bytes.get(HEADER_SIZE..).unwrap_or_default();
    let last = Records::new(batch.header, payload).last().and_then(std::result::Result::ok);
    let Some(last) = last else { return false };
    let decoded = decode_control_record(last.key.unwrap_or_default(), last.value);
    matches!(decoded, Ok(Payload::Message(message)) if message.name == "SNAPSHOT_FOOTER")
}

/// Why a scan did not reach the end of its file.
fn end_reason(end: &ScanEnd) -> String {
    match end.stop {
        Stop::End | Stop::Asked | Stop::Visitor => "reading ended early".to_owned(),
        Stop::Short { .. } => "the last batch is cut".to_owned(),
        Stop::BadLength { size_field } => format!("a batch with a size field of {size_field}"),
        Stop::BadCrc { stored, computed } => {
            format!("a batch with checksum {stored:08x} whose bytes have {computed:08x}")
        }
        Stop::UnknownMagic { magic } => format!("a batch with magic {magic}"),
    }
}
