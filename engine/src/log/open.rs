//! How is a log opened, after a clean stop and after another?
//!
//! After a clean stop nothing but names, sizes and the last batches is looked at. Whatever that does
//! not explain, and every unclean stop, is recovery's to put right first; then the log is opened as
//! after a clean stop.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::bootstrap::{Settled, settle};
use super::compact::{Replacements, Rounds};
use super::config::{LogConfig, OpenOptions};
use super::damaged::DamagedSegments;
use super::deletion::Deletions;
use super::log::{Durable, Log, Offsets, Writer};
use super::segments::Segments;
use super::topic_id::settle_topic_id;
use crate::error::{Error, Kind, Result};
use crate::io::{OpenMode, Storage};
use crate::log::inventory::{EPOCH_FILE, Inventory};
use crate::log::recover::{self, RecoverOptions, Silent};
use crate::problem::Severity;
use crate::segment::rebuild::IndexSettings;
use crate::segment::{ActiveSegment, FileRole, Folder, LogSegment};
use crate::state::{LeaderEpochs, ProducerState, SnapshotSet};
use crate::sync::atomic::AtomicBool;
use crate::sync::{ArcSwap, Mutex};
use crate::uuid::Uuid;

/// More than any checkpoint of epochs has.
const EPOCH_BYTES_MAX: u64 = 64 << 20;
/// A split is followed by another look; so many segments are never split in one log.
const RECOVERIES_MAX: usize = 1 << 16;

impl Log {
    /// Opens the log in `dir`, which is made when it is missing. Logs of one topic may share their
    /// settings.
    ///
    /// # Errors
    /// `Corrupt` when recovery refuses the log; `Conflict` when the topic id is another one; what
    /// the disk says.
    // spec: segments 5
    pub fn open(
        storage: Arc<dyn Storage>,
        dir: &Path,
        config: impl Into<Arc<LogConfig>>,
        options: &OpenOptions,
    ) -> Result<Log> {
        let config = config.into();
        make_dir(&*storage, dir)?;
        let settled = settle(&*storage, dir)?;
        let options = &after(settled, options);
        let topic_id = settle_topic_id(&*storage, dir, options.topic_id)?;
        let folder = Folder::new(storage, dir, Arc::clone(&options.open_files));
        let settings = config.segment();
        let start = options.log_start_offset;
        let ((inventory, mut list, end), saved) = match load_trusted(&folder, options)? {
            Trusted::All(loaded) => *loaded,
            untrusted => {
                let allow_loss = matches!(untrusted, Trusted::Nothing);
                recover(&**folder.storage(), dir, &config, options, (topic_id, allow_loss))?;
                (load(&folder, Inventory::read(&**folder.storage(), dir)?)?, None)
            }
        };
        let (active, log_end) = match list.last() {
            Some(last) => (ActiveSegment::open(&folder, last, &settings, options.now_ms)?, end),
            None => {
                let active = ActiveSegment::create(&folder, start, &settings, options.now_ms)?;
                active.touch_indexes(&folder, &settings)?;
                list.push(Arc::clone(active.segment()));
                (active, start)
            }
        };
        let first_base = list.first().map_or(start, |first| first.base_offset());
        let local_start = start.max(first_base);
        let log_start = if config.remote_storage { start } else { local_start };
        let epochs = load_epochs(&folder, saved, log_end, start)?;
        let books = SnapshotSet::new(inventory.snapshots.iter().copied());
        let recovery_point =
            if options.clean_shutdown { log_end } else { options.recovery_point.min(log_end) };
        let log = Log {
            folder,
            config: ArcSwap::new(config),
            segments: ArcSwap::from_pointee(Segments::new(list)),
            changing_list: Mutex::new(()),
            offsets: Offsets::new(log_start, local_start, log_end),
            epochs_are_new: AtomicBool::new(true),
            saved_epochs: Mutex::new(epochs.1),
            epochs: ArcSwap::new(epochs.0),
            durable: Mutex::new(Durable {
                remote_cut: i64::MAX,
                flushed_end_offset: recovery_point.max(local_start),
                newest_base: active.base_offset(),
                last_flush_ms: options.now_ms,
                ..Durable::default()
            }),
            deletions: Deletions::default(),
            rounds: Rounds::default(),
            replacements: Replacements::default(),
            damaged: DamagedSegments::default(),
            topic_id: topic_id.map(OnceLock::from).unwrap_or_default(),
            is_failed: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            seat: Mutex::new(None),
            is_written: AtomicBool::new(false),
        };
        let mut writer = Writer {
            active,
            producers: ProducerState::new(options.producers, books),
            now_ms: options.now_ms,
            is_unsettled: false,
        };
        log.remove_stray_snapshots(&mut writer)?;
        log.rebuild_producers(&mut writer, log_end)?;
        log.save_epochs()?;
        *log.seat.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(writer);
        Ok(log)
    }
}

/// What is known of the log once a rebuild from remote storage that was interrupted is settled:
/// the checkpoints of the directory tell of the log before it.
fn after(settled: Option<Settled>, options: &OpenOptions) -> OpenOptions {
    let options = options.clone();
    match settled {
        Some(Settled::Finished { log_start_offset, .. }) => {
            OpenOptions { log_start_offset, ..options }
        }
        Some(Settled::Emptied) => OpenOptions { log_start_offset: 0, ..options },
        Some(Settled::Undone | Settled::Overtaken) | None => options,
    }
}

fn make_dir(storage: &dyn Storage, dir: &Path) -> Result<()> {
    match storage.create_dir(dir) {
        Ok(()) => match dir.parent() {
            Some(parent) => storage.sync_dir(parent),
            None => Ok(()),
        },
        Err(error) if error.kind() == Kind::Conflict => Ok(()),
        Err(error) => Err(error),
    }
}

/// What a directory holds: its names, its segments and where the last of them ends.
type Loaded = (Inventory, Vec<Arc<LogSegment>>, i64);

/// What of a directory is as a clean stop leaves it.
enum Trusted {
    /// All of it, with the leader epochs that its file has, if there is one.
    All(Box<(Loaded, Option<LeaderEpochs>)>),
    /// Its segments. The leader epochs must come from the batches, for which no record is given up.
    Segments,
    /// Recovery has to look.
    Nothing,
}

fn load_trusted(folder: &Folder, options: &OpenOptions) -> Result<Trusted> {
    if !options.clean_shutdown {
        return Ok(Trusted::Nothing);
    }
    let inventory = Inventory::read(&**folder.storage(), &folder.path())?;
    if !is_plain(&inventory) {
        return Ok(Trusted::Nothing);
    }
    let loaded = match load(folder, inventory) {
        // Kafka gives up here; what stands behind the last batch is no batch, and can be cut.
        Err(error) if error.kind() == Kind::Corrupt => return Ok(Trusted::Nothing),
        other => other?,
    };
    let (_, list, end) = &loaded;
    // spec: segments 5. A log that ends before its start begins anew.
    if !list.is_empty() && *end < options.log_start_offset {
        return Ok(Trusted::Nothing);
    }
    let bytes = match folder.storage().read(&path_of_epochs(folder), EPOCH_BYTES_MAX) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == Kind::NotFound => None,
        Err(error) if error.kind() == Kind::Limit => return Ok(Trusted::Segments),
        Err(error) => return Err(error),
    };
    if bytes.as_ref().is_none_or(Vec::is_empty) && has_epochs(folder, list)? {
        return Ok(Trusted::Segments);
    }
    match bytes.map(|bytes| LeaderEpochs::parse(&bytes)).transpose() {
        Ok(saved) => Ok(Trusted::All(Box::new((loaded, saved)))),
        Err(_) => Ok(Trusted::Segments),
    }
}

fn path_of_epochs(folder: &Folder) -> PathBuf {
    folder.path().join(EPOCH_FILE)
}

/// Whether the last segment with batches begins with one of a leader epoch. Those of old producers
/// have none, and such logs have no file of epochs either.
fn has_epochs(folder: &Folder, list: &[Arc<LogSegment>]) -> Result<bool> {
    let Some(last) = list.iter().rev().find(|segment| segment.size_bytes() > 0) else {
        return Ok(false);
    };
    let mut has_epoch = false;
    last.for_each_header(folder, 0, |header, _, _| {
        has_epoch = header.leader_epoch >= 0;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(has_epoch)
}

fn load(folder: &Folder, inventory: Inventory) -> Result<Loaded> {
    let mut list = Vec::with_capacity(inventory.segments.len());
    for (base_offset, files) in &inventory.segments {
        let segment = LogSegment::new(*base_offset, files.log_size_bytes);
        if files.txn_index.is_none() {
            segment.has_no_txns();
        }
        list.push(Arc::new(segment));
    }
    for pair in list.windows(2) {
        if let [segment, next] = pair {
            segment.hint_end_offset(next.base_offset());
        }
    }
    let end = match list.last() {
        Some(last) => {
            let (end, position) = last.read_end(folder)?;
            if position != last.size_bytes() {
                let message = "the log ends with bytes that are no batch";
                let path = folder.file(last.base_offset(), FileRole::Log);
                return Err(Error::corrupt(message).in_file(&path).at_position(position));
            }
            last.hint_end_offset(end);
            end
        }
        None => 0,
    };
    Ok((inventory, list, end))
}

/// Whether the names leave nothing to be put right.
fn is_plain(inventory: &Inventory) -> bool {
    let has_indexes = |files: &crate::log::SegmentFiles| {
        files.offset_index.is_some() && files.time_index.is_some()
    };
    inventory.problems.iter().all(|problem| problem.severity == Severity::Notice)
        && inventory.remove.is_empty()
        && inventory.rename.is_empty()
        && inventory.half_written.is_empty()
        && inventory.segments.values().all(has_indexes)
}

/// Makes the directory sound and durable.
fn recover(
    storage: &dyn Storage,
    dir: &Path,
    config: &LogConfig,
    options: &OpenOptions,
    (topic_id, allow_loss): (Option<Uuid>, bool),
) -> Result<()> {
    let options = RecoverOptions {
        clean_shutdown: options.clean_shutdown,
        recovery_point: options.recovery_point,
        recovery_point_is_known: options.recovery_point > 0,
        log_start_offset: options.log_start_offset,
        allow_loss,
        discard_lost: !options.keep_lost,
        topic_id,
        remote_storage: config.remote_storage,
        index: IndexSettings {
            interval_bytes: u64::from(config.index_interval_bytes),
            max_size_bytes: usize::try_from(config.segment_index_bytes).unwrap_or(usize::MAX),
        },
        now_ms: options.now_ms,
        producer_expiration_ms: options.producers.producer_id_expiration_ms,
        ..RecoverOptions::default()
    };
    for _ in 0..RECOVERIES_MAX {
        let mut plan = recover::analyse(storage, dir, &options, &Silent)?;
        if let Some(refusal) = &plan.refusal {
            return Err(Error::corrupt(refusal.reason.clone()).in_file(dir));
        }
        if plan.is_empty() {
            // A process that was killed leaves sound files that may not be on the disk yet.
            let is_durable = options.clean_shutdown;
            return if is_durable { Ok(()) } else { storage.sync_filesystem(dir) };
        }
        recover::prepare(storage, &mut plan)?;
        storage.sync_filesystem(dir)?;
        if plan.split.is_some() {
            continue;
        }
        recover::commit(storage, &plan)?;
        return storage.sync_filesystem(dir);
    }
    Err(Error::corrupt("segments are to be split again and again").in_file(dir))
}

/// The leader epochs as they are to be, and as the file has them: it is read where that is not known
/// yet, and made when it is missing.
fn load_epochs(
    folder: &Folder,
    saved: Option<LeaderEpochs>,
    log_end: i64,
    log_start: i64,
) -> Result<(Arc<LeaderEpochs>, Arc<LeaderEpochs>)> {
    let path = path_of_epochs(folder);
    let saved = match saved {
        Some(saved) => saved,
        None => match folder.storage().read(&path, EPOCH_BYTES_MAX) {
            Ok(bytes) => LeaderEpochs::parse(&bytes).map_err(|error| error.in_file(&path))?,
            Err(error) if error.kind() == Kind::NotFound => {
                folder.storage().open(&path, OpenMode::CreateNew)?;
                LeaderEpochs::new()
            }
            Err(error) => return Err(error),
        },
    };
    let mut epochs = saved.clone();
    // spec: segments 5, step 7
    epochs.truncate_from_end(log_end);
    epochs.truncate_from_start(log_start);
    // Mostly they are the same, and kept once.
    let saved = Arc::new(saved);
    let epochs = if epochs == *saved { Arc::clone(&saved) } else { Arc::new(epochs) };
    Ok((epochs, saved))
}
