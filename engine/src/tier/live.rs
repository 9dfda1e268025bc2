//! What does an open log say to the question what is to be uploaded of it? No file is opened, and
//! whoever writes to it goes on.

use std::sync::Arc;

use super::candidates::{CopyLag, DamagedSegment, UploadView};
use crate::log::{Log, Segments};

/// How often a log whose segments change is looked at again.
const LOOKS_MAX: usize = 8;

/// A log as it was at one moment.
///
/// What comes of it may be out of date when it is used; whoever prepares an upload asks the log
/// again.
#[derive(Debug)]
pub struct LogUploads {
    segments: Arc<Segments>,
    remote_generation: u64,
    damaged: Vec<DamagedSegment>,
    /// All but the columns.
    view: UploadView<'static>,
}

impl LogUploads {
    /// Looks at a log. `copied_offset` is the last offset that is copied, or -1: where its leader
    /// has found it by [`highest_remote`](super::highest_remote), and moved with each upload.
    ///
    /// Where copying is switched off for the topic, or it has no remote storage, nothing is to be
    /// uploaded ([`NotEligible::CopyDisabled`](super::NotEligible::CopyDisabled)).
    ///
    /// Where uploads are put off by time, the host calls
    /// [`learn_timestamps`](Log::learn_timestamps) after it has opened the log.
    #[must_use]
    pub fn of(log: &Log, copied_offset: i64, lag: Option<CopyLag>) -> Self {
        let remote_generation = log.remote_generation();
        let (segments, last_stable_offset) = segments_and_stable_offset(log);
        let damaged = log.damaged_segments(&segments).into_iter().filter_map(|(slot, code)| {
            Some(DamagedSegment { slot: u32::try_from(slot).ok()?, code })
        });
        let earliest = log.leader_epochs().earliest();
        let active = segments.last();
        LogUploads {
            remote_generation,
            damaged: damaged.collect(),
            view: UploadView {
                is_copied: log.config().remote_copy_enabled(),
                active_size_bytes: active.map_or(0, |active| active.size_bytes()),
                log_start_offset: log.log_start_offset(),
                last_stable_offset,
                copied_offset,
                lineage_start_offset: earliest.map_or(i64::MAX, |entry| entry.start_offset),
                lag,
                ..UploadView::default()
            },
            segments,
        }
    }

    /// The log as the rule takes it.
    #[must_use]
    pub fn view(&self) -> UploadView<'_> {
        let columns = self.segments.columns();
        UploadView {
            bases: columns.bases(),
            starts_bytes: columns.starts_bytes(),
            max_timestamps_ms: columns.max_timestamps_ms(),
            damaged: &self.damaged,
            ..self.view
        }
    }

    /// Which life of the log it speaks of, as remote storage sees it.
    pub(super) fn remote_generation(&self) -> u64 {
        self.remote_generation
    }

    /// The segments that it speaks of.
    #[must_use]
    pub fn segments(&self) -> &Arc<Segments> {
        &self.segments
    }
}

/// The segments, and a last stable offset that was theirs: one that is read before a truncation or
/// after what was appended behind it says nothing of the segments between.
fn segments_and_stable_offset(log: &Log) -> (Arc<Segments>, i64) {
    let mut segments = log.segments();
    for _ in 0..LOOKS_MAX {
        let last_stable_offset = log.last_stable_offset();
        let now = log.segments();
        if Arc::ptr_eq(&segments, &now) {
            return (segments, last_stable_offset);
        }
        segments = now;
    }
    // Somebody rolls faster than we look: nothing is said to be stable, and the next scan will see.
    (segments, 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;
    use crate::io::{OpenMode, SimDisk, Storage};
    use crate::log::columns::UNKNOWN_TIMESTAMP_MS;
    use crate::log::inventory::EPOCH_FILE;
    use crate::log::{LogConfig, OpenOptions};
    use crate::problem::Code;
    use crate::record::builder::{BatchBuilder, BatchOptions};
    use crate::record::codec::Compressor;
    use crate::tier::candidates::NotEligible;

    fn open(disk: &SimDisk) -> Log {
        let config = LogConfig { remote_storage: true, ..LogConfig::default() };
        let dir = Path::new("/orders-0");
        Log::open(Arc::new(disk.clone()), dir, config, &OpenOptions::default()).unwrap()
    }

    /// Appends a record of this timestamp and rolls.
    fn segment(log: &Log, timestamp_ms: i64) {
        let base_offset = log.log_end_offset();
        let options = BatchOptions { base_offset, leader_epoch: 0, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options).unwrap();
        builder.append(timestamp_ms, None, None).unwrap();
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
        log.append_as_follower(&bytes, 0, timestamp_ms).unwrap();
        log.roll(timestamp_ms).unwrap();
        log.update_high_watermark(log.log_end_offset()).unwrap();
    }

    fn count(log: &Log) -> (u32, NotEligible) {
        let answer = LogUploads::of(log, -1, None).view().candidates(0);
        (answer.count(), answer.stop)
    }

    #[test]
    fn a_log_has_one_candidate_more_with_every_roll() {
        let disk = SimDisk::new();
        let log = open(&disk);
        assert_eq!(count(&log).0, 0);
        for number in 0..5 {
            segment(&log, 1000 + i64::from(number));
            assert_eq!(count(&log), (number + 1, NotEligible::Active));
        }
        let uploads = LogUploads::of(&log, 1, None);
        let answer = uploads.view().candidates(0);
        assert_eq!((answer.first, answer.end, answer.oldest_timestamp_ms), (2, 5, 1002));
        let size_of = |slot: usize| uploads.segments().iter().nth(slot).unwrap().size_bytes();
        assert_eq!(answer.size_bytes, size_of(2) + size_of(3) + size_of(4));
        log.truncate_to(2, 0).unwrap();
        assert_eq!(count(&log).0, 2);
    }

    #[test]
    fn timestamps_are_learnt_once_after_the_log_is_opened() {
        let disk = SimDisk::new();
        let log = open(&disk);
        (0..3).for_each(|number| segment(&log, 1000 + number));
        log.close().unwrap();
        let log = open(&disk);
        let oldest = || LogUploads::of(&log, -1, None).view().candidates(0).oldest_timestamp_ms;
        log.update_high_watermark(3).unwrap();
        assert_eq!(oldest(), UNKNOWN_TIMESTAMP_MS);
        log.learn_timestamps().unwrap();
        assert_eq!(oldest(), 1000);
        let segments = log.segments();
        log.learn_timestamps().unwrap();
        assert!(Arc::ptr_eq(&segments, &log.segments()), "nothing new");
    }

    #[test]
    fn a_damaged_segment_is_told_until_it_is_sound_or_gone() {
        let log = open(&SimDisk::new());
        (0..3).for_each(|number| segment(&log, number));
        let second = Arc::clone(log.segments().get(1).unwrap());
        log.mark_damaged(&second, Some(Code::IndexOrder));
        assert_eq!(count(&log), (1, NotEligible::Damaged(Code::IndexOrder)));
        log.mark_damaged(&second, None);
        assert_eq!(count(&log), (3, NotEligible::Active));
        log.mark_damaged(&second, Some(Code::IndexOrder));
        drop(second);
        log.truncate_to(1, 0).unwrap();
        segment(&log, 7);
        assert_eq!(count(&log), (2, NotEligible::Active), "another segment at that offset");
    }

    #[test]
    fn a_topic_whose_copies_are_switched_off_has_no_candidate() {
        // spec: tiered-behaviours RC18
        // Its sealed segments were named, though no task would copy them.
        let log = open(&SimDisk::new());
        (0..3).for_each(|number| segment(&log, number));
        let on = LogConfig::clone(&log.config());
        for (remote_storage, remote_copy_disabled) in [(true, true), (false, false)] {
            log.set_config(LogConfig { remote_storage, remote_copy_disabled, ..on.clone() });
            assert_eq!(count(&log), (0, NotEligible::CopyDisabled));
            let uploads = LogUploads::of(&log, -1, None);
            let (view, answer) = (uploads.view(), uploads.view().candidates(0));
            let why = |slot| view.why_not(&answer, slot, 0);
            assert!((0..4).all(|slot| why(slot) == Some(NotEligible::CopyDisabled)));
            let mut runs = Vec::new();
            view.runs(&answer, 0, |slots, reason| runs.push((slots, reason)));
            assert_eq!(runs, [(0..4, Some(NotEligible::CopyDisabled))]);
        }
        log.set_config(on);
        assert_eq!(count(&log), (3, NotEligible::Active));
    }

    #[test]
    fn a_log_without_leader_epochs_uploads_nothing() {
        let disk = SimDisk::new();
        let log = open(&disk);
        segment(&log, 5);
        assert_eq!(count(&log), (1, NotEligible::Active));
        log.close().unwrap();
        // As Kafka leaves it when all epochs were cut off.
        let path = Path::new("/orders-0").join(EPOCH_FILE);
        disk.remove_file(&path).unwrap();
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(b"0\n0\n", 0).unwrap();
        let log = open(&disk);
        log.update_high_watermark(1).unwrap();
        assert_eq!(count(&log), (0, NotEligible::OutsideLineage));
    }
}
