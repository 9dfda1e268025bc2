//! A log and, beside it, a plain model of what it holds: for tests that try many lives of a log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use siltstone::io::SimDisk;
use siltstone::log::{
    FetchOptions, Isolation, Log, LogConfig, OpenOptions, VerifyOptions, verify_partition,
};
use siltstone::record::BatchHeader;
use siltstone::record::validate::Batches;

use crate::columns::check_columns;
use crate::live::{DIR, Marker, NOW_MS, records};

/// Batches by base offset.
pub type Content = BTreeMap<i64, Vec<u8>>;

/// Something that is done to a log.
#[derive(Clone, Debug)]
pub enum Step {
    /// One append of so many batches of this producer (0: none), in a transaction or not.
    Append {
        /// How many.
        batches: usize,
        /// The producer's id, 0 for none.
        producer: i64,
        /// Whether they belong to a transaction.
        txn: bool,
    },
    /// The end of a producer's transaction.
    End {
        /// The producer's id.
        producer: i64,
        /// Whether it is aborted.
        abort: bool,
    },
    /// The leader of this epoch begins.
    Epoch(i32),
    /// A new segment, whatever the size of the old one.
    Roll,
    /// A flush up to the end.
    Flush,
    /// A cut at this offset.
    Truncate(i64),
    /// Everything goes, and the log goes on here.
    StartAt(i64),
    /// The log starts here.
    RaiseStart(i64),
    /// Segments before the start go.
    DeleteOld,
    /// Files that wait for it are deleted.
    DeleteFiles,
    /// A clean stop, and another start.
    Reopen,
}

/// The settings of the log: everything is small.
#[must_use]
pub fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 420,
        segment_index_bytes: 240,
        index_interval_bytes: 100,
        file_delete_delay_ms: 0,
        retention_ms: -1,
        ..LogConfig::default()
    }
}

/// What is known of a log.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// What is there.
    pub now: Content,
    /// What must survive a power cut.
    pub durable: Content,
    /// Every batch that ever was to be there.
    pub ever: BTreeMap<i64, BTreeSet<Vec<u8>>>,
    /// The log end.
    pub end: i64,
    /// The log start, as its checkpoint says.
    pub start: i64,
    /// Whether the log start was ever raised.
    pub was_raised: bool,
    /// The epoch of the leader.
    pub epoch: i32,
    /// The recovery point, as its checkpoint says.
    pub recovery_point: i64,
    /// The next sequence of each producer.
    pub sequences: BTreeMap<i64, i32>,
}

/// A log, its disk and its model.
pub struct Run {
    /// The disk.
    pub disk: SimDisk,
    /// The model.
    pub model: Model,
    /// The log, while it is open.
    pub log: Option<Log>,
    /// Whether the directory is marked as stopped cleanly.
    pub is_clean: bool,
}

impl Run {
    /// On a disk.
    #[must_use]
    pub fn new(disk: SimDisk) -> Self {
        Run { disk, model: Model::default(), log: None, is_clean: true }
    }

    /// Opens the log as the checkpoints have it.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn open(&mut self) -> siltstone::Result<()> {
        let options = OpenOptions {
            clean_shutdown: self.is_clean,
            recovery_point: self.model.recovery_point,
            log_start_offset: self.model.start,
            now_ms: NOW_MS,
            ..OpenOptions::default()
        };
        let log = Log::open(Arc::new(self.disk.clone()), Path::new(DIR), config(), &options)?;
        log.update_high_watermark(log.log_end_offset())?;
        self.is_clean = false;
        self.log = Some(log);
        Ok(())
    }

    /// The log.
    ///
    /// # Panics
    ///
    /// When it is not open.
    #[must_use]
    pub fn log(&self) -> &Log {
        self.log.as_ref().expect("an open log")
    }

    /// The bytes of a step that appends, each batch by its offset.
    fn bytes(&self, step: &Step) -> Vec<(i64, Vec<u8>)> {
        let mut offset = self.model.end;
        match step {
            Step::Append { batches, producer, txn } => {
                let mut sequence = self.model.sequences.get(producer).copied().unwrap_or(0);
                let mut list = Vec::new();
                for number in 0..*batches {
                    let count = 1 + number % 2;
                    let mut batch = records(count)
                        .at(offset)
                        .epoch(self.model.epoch)
                        .value_bytes(3 + usize::try_from(offset % 40).unwrap())
                        .times(&vec![NOW_MS + offset; count]);
                    if *producer > 0 {
                        batch = match txn {
                            true => batch.txn(*producer, 0, sequence),
                            false => batch.producer(*producer, 0, sequence),
                        };
                        sequence += i32::try_from(count).unwrap();
                    }
                    list.push((offset, batch.build()));
                    offset += i64::try_from(count).unwrap();
                }
                list
            }
            Step::End { producer, abort } => {
                let marker = Marker {
                    offset,
                    leader_epoch: self.model.epoch,
                    ..Marker::of(*producer, 0, *abort)
                };
                vec![(offset, marker.build())]
            }
            _ => Vec::new(),
        }
    }

    /// Does one thing; a log that is not open is opened first.
    ///
    /// # Errors
    ///
    /// Those of the log; the model is then as it was, but for what is not promised any more.
    ///
    /// # Panics
    ///
    /// When a log that is to be opened again is not open.
    pub fn step(&mut self, step: &Step) -> siltstone::Result<()> {
        if self.log.is_none() {
            self.open()?;
        }
        match step {
            Step::Append { .. } | Step::End { .. } => return self.append(step),
            Step::Epoch(epoch) => {
                self.model.epoch = *epoch;
                self.log().assign_epoch_start(*epoch, self.model.end)?;
            }
            Step::Roll => drop(self.log().roll(NOW_MS)?),
            Step::Flush => {
                self.log().flush(false, NOW_MS)?;
                self.model.durable = self.model.now.clone();
                self.model.recovery_point = self.log().recovery_point_to_save();
            }
            Step::Truncate(to) => {
                // Whatever becomes of it, this is not promised any more.
                self.model.durable.retain(|_, bytes| next_offset(bytes) <= *to);
                self.model.recovery_point = self.model.recovery_point.min(*to);
                self.log().truncate_to(*to, NOW_MS)?;
                self.model.now.retain(|_, bytes| next_offset(bytes) <= *to);
                self.model.end = (*to).min(self.model.end);
                self.log().update_high_watermark(self.model.end)?;
            }
            Step::StartAt(at) => {
                self.model.durable.clear();
                self.model.recovery_point = 0;
                self.log().truncate_fully_and_start_at(*at, None, NOW_MS)?;
                self.model.now.clear();
                (self.model.start, self.model.end) = (*at, *at);
            }
            Step::RaiseStart(to) => {
                self.model.durable.retain(|_, bytes| next_offset(bytes) > *to);
                self.log().maybe_increment_log_start_offset(*to)?;
                self.model.start = *to;
                self.model.was_raised = true;
            }
            Step::DeleteOld => {
                self.log().delete_old_segments(NOW_MS)?;
            }
            Step::DeleteFiles => drop(self.log().delete_due_files(NOW_MS)?),
            Step::Reopen => {
                let log = self.log.take().expect("an open log");
                // A directory is marked as clean only when all went well.
                log.close()?;
                self.is_clean = true;
                self.model.durable = self.model.now.clone();
                self.model.recovery_point = self.model.end;
                self.open()?;
                // A cut within a batch left a gap, of which no file tells.
                let last = self.model.now.last_key_value().map(|(_, bytes)| next_offset(bytes));
                let end = self.log().log_end_offset();
                assert!(last.is_none_or(|last| end >= last));
                self.model.end = self.model.end.min(end);
            }
        }
        Ok(())
    }

    fn append(&mut self, step: &Step) -> siltstone::Result<()> {
        let list = self.bytes(step);
        for (offset, bytes) in &list {
            self.model.ever.entry(*offset).or_default().insert(bytes.clone());
        }
        let all: Vec<u8> = list.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        self.log().append_as_follower(&all, i32::MAX, NOW_MS)?;
        if let Step::Append { producer, .. } = step {
            let count: i32 = list.iter().map(|(_, bytes)| count(bytes)).sum();
            *self.model.sequences.entry(*producer).or_default() += count;
        }
        self.model.end = list.last().map_or(self.model.end, |(_, bytes)| next_offset(bytes));
        self.model.now.extend(list);
        let end = self.model.end;
        self.log().update_high_watermark(end)?;
        Ok(())
    }

    /// What a reader sees.
    ///
    /// # Panics
    ///
    /// When it cannot be read.
    #[must_use]
    pub fn content(&self) -> Content {
        let log = self.log();
        let options = FetchOptions {
            max_bytes: u32::MAX,
            isolation: Isolation::LogEnd,
            min_one_message: true,
        };
        let mut content = Content::new();
        let mut offset = log.local_log_start_offset();
        while offset < log.log_end_offset() {
            // A reader may meet the fault; it asks again.
            let fetched = log.read(offset, &options);
            let fetched = fetched.or_else(|_| log.read(offset, &options)).expect("bytes");
            if fetched.bytes.is_empty() {
                break;
            }
            for batch in Batches::new(&fetched.bytes) {
                let batch = batch.expect("a batch");
                offset = batch.header.next_offset();
                content.insert(batch.header.base_offset, batch.bytes.to_vec());
            }
        }
        content
    }

    /// The log holds what the model says, and every offset and time leads to it.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn check_same(&self, when: &str) {
        let log = self.log();
        let content = self.content();
        let visible: Content = self
            .model
            .now
            .iter()
            .filter(|(_, bytes)| next_offset(bytes) > self.model.start)
            .map(|(offset, bytes)| (*offset, bytes.clone()))
            .collect();
        let same = content.keys().filter(|base| visible.contains_key(base)).count();
        assert_eq!(
            same,
            visible.len(),
            "{when}: {:?}, not {:?}",
            offsets(&content),
            offsets(&visible)
        );
        assert_eq!(log.log_end_offset(), self.model.end, "{when}");
        self.check_whole(&content, when);
        check_columns(&self.disk, Path::new(DIR), log, when);
    }

    /// Look-ups agree with the batches.
    ///
    /// # Panics
    ///
    /// When they do not.
    pub fn check_whole(&self, content: &Content, when: &str) {
        let log = self.log();
        for (base, bytes) in content {
            let next = next_offset(bytes);
            for offset in (*base).max(log.log_start_offset())..next {
                let place = log.place_of(offset).or_else(|_| log.place_of(offset));
                let place = place.expect("a place");
                assert_eq!(place.offset, *base, "{when}: place of {offset}");
            }
            assert!(self.model.ever[base].contains(bytes), "{when}: a batch at {base} is invented");
        }
    }

    /// The log holds a batch of the model's history at each of its offsets, and what is durable.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn check_survived(&self, when: &str) {
        let content = self.content();
        self.check_whole(&content, when);
        for (base, bytes) in &self.model.durable {
            if next_offset(bytes) > self.log().log_start_offset() {
                assert_eq!(content.get(base), Some(bytes), "{when}: {base} was durable");
            }
        }
        let mut epoch = -1;
        let mut next = None;
        for (base, bytes) in &content {
            let header = BatchHeader::parse(bytes).expect("a header");
            assert!(header.leader_epoch >= epoch, "{when}: an older leader's batch at {base}");
            epoch = header.leader_epoch;
            let is_next = next.is_none_or(|next| *base >= next);
            assert!(is_next, "{when}: {base} overlaps");
            next = Some(next_offset(bytes));
        }
    }

    /// Takes the log as it is for what it is to be from now on.
    ///
    /// # Panics
    ///
    /// When it cannot be read.
    pub fn go_on(&mut self) {
        let log = self.log();
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        let sequences = log.with_producers(|state| {
            let next = |last: i32| last.wrapping_add(1);
            let producers = state.producers();
            producers.map(|p| (p.entry().producer_id, next(p.last_sequence()))).collect()
        });
        let sequences = sequences.expect("a log that nobody writes to");
        let epoch = log.latest_epoch().unwrap_or(0);
        log.update_high_watermark(end).expect("a high watermark");
        self.model.now = self.content();
        self.model.durable.retain(|base, _| self.model.now.contains_key(base));
        (self.model.start, self.model.end) = (start, end);
        self.model.sequences = sequences;
        self.model.epoch = self.model.epoch.max(epoch);
    }

    /// Files that wait for their deletion; and, where the start was raised, producers and
    /// transactions that the log learnt again from its start on, though batches before it are still
    /// there.
    fn is_expected(&self, problem: &str) -> bool {
        let codes: &[&str] = if self.model.was_raised {
            &["(leftover)", "(snapshot_mismatch)", "(txnindex_mismatch)"]
        } else {
            &["(leftover)"]
        };
        codes.iter().any(|code| problem.contains(code))
    }

    /// A check of all files finds nothing.
    ///
    /// # Panics
    ///
    /// When it finds something.
    pub fn check_files(&self, when: &str) {
        // The end may lie behind the last batch, in a gap, and so may the start.
        let last = self.model.now.last_key_value().map(|(_, bytes)| next_offset(bytes));
        let options = VerifyOptions {
            log_start_offset: Some(self.model.start.min(last.unwrap_or(self.model.start))),
            log_start_may_have_moved: true,
            now_ms: NOW_MS,
            ..VerifyOptions::default()
        };
        let report = verify_partition(&self.disk, Path::new(DIR), &options).expect("a look");
        let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
        let grave: Vec<&String> =
            problems.iter().filter(|problem| !self.is_expected(problem)).collect();
        assert!(grave.is_empty(), "{when}: {grave:?}");
    }
}

/// The base offsets.
#[must_use]
pub fn offsets(content: &Content) -> Vec<i64> {
    content.keys().copied().collect()
}

/// The offset behind a batch.
///
/// # Panics
///
/// When it is none.
#[must_use]
pub fn next_offset(bytes: &[u8]) -> i64 {
    BatchHeader::parse(bytes).expect("a header").next_offset()
}

fn count(bytes: &[u8]) -> i32 {
    BatchHeader::parse(bytes).expect("a header").count
}
