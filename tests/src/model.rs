//! A log and, beside it, a plain model of what it holds: for tests that try many lives of a log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use siltstone::io::{OpenMode, SimDisk, Storage};
use siltstone::log::{
    AppendScratch, FetchOptions, Isolation, LeaderAppend, Log, LogConfig, OpenOptions,
    VerifyOptions, verify_partition,
};
use siltstone::record::BatchHeader;
use siltstone::record::validate::Batches;

use crate::columns::check_columns;
use crate::compacted::lines;
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
    /// Segments beyond so many bytes go, from the oldest on.
    RetainBytes(i64),
    /// Segments whose records all have timestamps before this one, counted from [`NOW_MS`], go.
    RetainFrom(i64),
    /// Remote storage has everything up to this offset.
    Uploaded(i64),
    /// Files that wait for it are deleted.
    DeleteFiles,
    /// Followers lag behind from now on, so that nothing more is committed, or have everything.
    Lag(bool),
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

/// The same for a log with remote storage.
#[must_use]
pub fn remote_config() -> LogConfig {
    LogConfig { remote_storage: true, ..config() }
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
    /// What was cut off by a step that succeeded, and not appended again.
    pub cut: BTreeSet<(i64, Vec<u8>)>,
    /// All that was there, or was to be there, after one step or another.
    pub states: Vec<Content>,
    /// The log end.
    pub end: i64,
    /// What is committed, exclusive.
    pub high_watermark: i64,
    /// Whether followers lag behind.
    pub is_lagging: bool,
    /// The log start, as its checkpoint says.
    pub start: i64,
    /// Where the part on the local disk starts.
    pub local_start: i64,
    /// The last offset in remote storage, -1 for none.
    pub uploaded: i64,
    /// Whether the log start was ever raised.
    pub was_raised: bool,
    /// Whether it was ever stopped and opened again.
    pub was_stopped: bool,
    /// Whether it was opened with something in it, after a stop or a crash.
    pub was_opened: bool,
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
    /// The settings of the log.
    pub config: LogConfig,
}

impl Run {
    /// On a disk.
    #[must_use]
    pub fn new(disk: SimDisk) -> Self {
        Run::with(disk, config())
    }

    /// On a disk, of a log with these settings.
    #[must_use]
    pub fn with(disk: SimDisk, config: LogConfig) -> Self {
        let model = Model { uploaded: -1, states: vec![Content::new()], ..Model::default() };
        Run { disk, model, log: None, is_clean: true, config }
    }

    /// The same log after a power cut that spared what a seed says; it is not open.
    #[must_use]
    pub fn after_crash(&self, seed: u64) -> Self {
        let disk = self.disk.after_crash(seed);
        let (model, config) = (self.model.clone(), self.config.clone());
        Run { disk, model, log: None, is_clean: false, config }
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
        let config = self.config.clone();
        let log = Log::open(Arc::new(self.disk.clone()), Path::new(DIR), config, &options)?;
        log.update_highest_remote_offset(self.model.uploaded);
        self.is_clean = false;
        self.model.was_opened |= !self.model.ever.is_empty();
        self.log = Some(log);
        self.replicate()
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

    /// What is appended is committed, unless followers lag behind.
    fn replicate(&mut self) -> siltstone::Result<()> {
        let log = self.log.as_ref().expect("an open log");
        let end = log.log_end_offset();
        let high_watermark = if self.model.is_lagging { self.model.high_watermark } else { end };
        self.model.high_watermark = high_watermark.clamp(log.log_start_offset(), end);
        log.update_high_watermark(self.model.high_watermark).map(drop)
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
                self.promise();
                self.model.recovery_point = self.log().recovery_point_to_save();
            }
            Step::Truncate(to) => {
                // Whatever becomes of it, this is not promised any more.
                self.model.durable.retain(|_, bytes| next_offset(bytes) <= *to);
                self.model.recovery_point = self.model.recovery_point.min(*to);
                self.log().truncate_to(*to, NOW_MS)?;
                self.cut(|bytes| next_offset(bytes) > *to);
                self.model.end = (*to).min(self.model.end);
                self.model.high_watermark = self.model.high_watermark.min(self.model.end);
                self.model.sequences = self.sequences_after_a_cut();
            }
            Step::StartAt(at) => {
                self.model.durable.clear();
                self.model.recovery_point = 0;
                self.log().truncate_fully_and_start_at(*at, None, NOW_MS)?;
                self.cut(|_| true);
                (self.model.start, self.model.end) = (*at, *at);
                self.model.high_watermark = *at;
                self.model.local_start = *at;
                self.model.sequences.clear();
            }
            Step::RaiseStart(to) => {
                self.model.durable.retain(|_, bytes| next_offset(bytes) > *to);
                self.log().maybe_increment_log_start_offset(*to)?;
                self.model.start = *to;
                self.model.local_start = self.model.local_start.max(*to);
                self.model.was_raised = true;
            }
            Step::DeleteOld => {
                self.log().delete_old_segments(NOW_MS)?;
            }
            Step::RetainBytes(limit) => self.retain((*limit, -1), NOW_MS)?,
            Step::RetainFrom(from) => self.retain((-1, 1000), NOW_MS + from + 1000)?,
            Step::Uploaded(offset) => {
                self.model.uploaded = self.model.uploaded.max(*offset);
                self.log().update_highest_remote_offset(*offset);
            }
            Step::DeleteFiles => drop(self.log().delete_due_files(NOW_MS)?),
            Step::Lag(is_lagging) => {
                self.model.is_lagging = *is_lagging;
                self.replicate()?;
            }
            Step::Reopen => {
                let log = self.log.take().expect("an open log");
                // A directory is marked as clean only when all went well.
                log.close()?;
                self.is_clean = true;
                self.model.was_stopped = true;
                self.promise();
                self.model.recovery_point = self.model.end;
                self.open()?;
                // A cut within a batch left a gap, of which no file tells.
                let last = self.model.now.last_key_value().map(|(_, bytes)| next_offset(bytes));
                let end = self.log().log_end_offset();
                assert!(last.is_none_or(|last| end >= last));
                self.model.end = self.model.end.min(end);
                self.model.high_watermark = self.model.high_watermark.min(end);
            }
        }
        Ok(())
    }

    /// The next sequence of each producer, as the log says.
    fn known_sequences(&self) -> BTreeMap<i64, i32> {
        let sequences = self.log().with_producers(|state| {
            let next = |last: i32| last.wrapping_add(1);
            let producers = state.producers();
            producers.map(|p| (p.entry().producer_id, next(p.last_sequence()))).collect()
        });
        sequences.expect("a log that nobody writes to")
    }

    /// The next sequence of each producer: that of what is left, or what the log says where batches
    /// have left at the front.
    fn sequences_after_a_cut(&self) -> BTreeMap<i64, i32> {
        if self.model.was_raised || self.model.local_start > 0 {
            return self.known_sequences();
        }
        let headers =
            self.model.now.values().map(|bytes| BatchHeader::parse(bytes).expect("a header"));
        let own = headers.filter(|header| header.producer_id >= 0 && !header.is_control());
        own.map(|header| (header.producer_id, header.base_sequence + header.count)).collect()
    }

    /// From now on all that is there must survive a power cut.
    fn promise(&mut self) {
        let start = self.model.local_start;
        self.model.durable.clone_from(&self.model.now);
        self.model.durable.retain(|_, bytes| next_offset(bytes) > start);
    }

    /// Takes what was cut out of the model.
    fn cut(&mut self, is_cut: impl Fn(&[u8]) -> bool) {
        let (cut, kept) =
            std::mem::take(&mut self.model.now).into_iter().partition(|(_, bytes)| is_cut(bytes));
        self.model.cut.extend::<Content>(cut);
        self.model.now = kept;
    }

    /// Deletes by size or by time, -1 for neither.
    fn retain(&mut self, limits: (i64, i64), now_ms: i64) -> siltstone::Result<()> {
        let (limit_bytes, limit_ms) = limits;
        let start = self.start_after_retention(limits, now_ms);
        // Whatever becomes of it, this is not promised any more.
        self.model.durable.retain(|_, bytes| next_offset(bytes) > start);
        let config = LogConfig {
            retention_bytes: limit_bytes,
            local_retention_bytes: limit_bytes,
            retention_ms: limit_ms,
            local_retention_ms: limit_ms,
            ..self.config.clone()
        };
        self.log().set_config(config);
        let outcome = self.log().delete_old_segments(now_ms);
        self.log().set_config(self.config.clone());
        outcome?;
        if !self.config.remote_storage && start > self.model.start {
            self.model.start = start;
            self.model.was_raised = true;
        }
        self.model.local_start = start;
        Ok(())
    }

    /// Where the local part will start.
    fn start_after_retention(&self, (limit_bytes, limit_ms): (i64, i64), now_ms: i64) -> i64 {
        let segments = self.log().segments();
        let bases: Vec<i64> = segments.iter().map(|segment| segment.base_offset()).collect();
        let sizes: Vec<u64> = segments.iter().map(|segment| segment.size_bytes()).collect();
        let end = |at: usize| bases.get(at + 1).copied().unwrap_or(self.model.end);
        let is_last = |at: usize| at + 1 == bases.len();
        let may_go = |at: usize| {
            let is_elsewhere = !self.config.remote_storage
                || end(at) > 0 && end(at) - 1 <= self.model.uploaded
                || !is_last(at) && end(at) <= self.model.start;
            let is_committed = end(at) <= self.model.high_watermark;
            is_elsewhere && is_committed && !(is_last(at) && sizes[at] == 0)
        };
        let mut at = 0;
        while !is_last(at) && end(at) <= self.model.local_start && may_go(at) {
            at += 1;
        }
        if let Ok(limit) = u64::try_from(limit_bytes) {
            let mut surplus = sizes[at..].iter().sum::<u64>().checked_sub(limit);
            while at < bases.len() && may_go(at) {
                surplus = surplus.and_then(|surplus| surplus.checked_sub(sizes[at]));
                if surplus.is_none() {
                    break;
                }
                at += 1;
            }
        }
        while limit_ms >= 0 && at < bases.len() && may_go(at) {
            let batches = self.model.now.range(bases[at]..end(at).max(bases[at]));
            let last = batches.map(|(_, bytes)| max_timestamp(bytes)).max();
            let last = match last {
                Some(last) => last,
                None if sizes[at] == 0 => self.modified_ms(bases[at]),
                // What is before the start is not in the model, and older than all that is.
                None => 0,
            };
            if now_ms - last <= limit_ms {
                break;
            }
            at += 1;
        }
        let start = if at == 0 { 0 } else { end(at - 1) };
        start.max(self.model.local_start)
    }

    /// When the file of a segment was written, by which one without records is judged.
    fn modified_ms(&self, base_offset: i64) -> i64 {
        let path = Path::new(DIR).join(format!("{base_offset:020}.log"));
        let file = self.disk.open(&path, OpenMode::Read).expect("a segment");
        file.metadata().expect("a look").modified_ms
    }

    fn append(&mut self, step: &Step) -> siltstone::Result<()> {
        let list = self.bytes(step);
        for (offset, bytes) in &list {
            self.model.ever.entry(*offset).or_default().insert(bytes.clone());
            self.model.cut.remove(&(*offset, bytes.clone()));
        }
        let mut wanted = self.model.now.clone();
        wanted.extend(list.iter().cloned());
        self.model.states.push(wanted);
        let mut all: Vec<u8> = list.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        match step {
            // One batch may come from its producer, who knows no offset, and is the same.
            Step::Append { batches: 1, txn: false, .. } => {
                let append = LeaderAppend::client(self.model.epoch, NOW_MS);
                let mut scratch = AppendScratch::new();
                all[..8].fill(0);
                self.log().append_as_leader(&mut all, &append, &mut scratch)?;
            }
            _ => drop(self.log().append_as_follower(&all, i32::MAX, NOW_MS)?),
        }
        if let Step::Append { producer, .. } = step {
            let count: i32 = list.iter().map(|(_, bytes)| count(bytes)).sum();
            *self.model.sequences.entry(*producer).or_default() += count;
        }
        self.model.end = list.last().map_or(self.model.end, |(_, bytes)| next_offset(bytes));
        self.model.now.extend(list);
        self.replicate()
    }

    /// What a reader sees.
    ///
    /// # Panics
    ///
    /// When it cannot be read.
    #[must_use]
    pub fn content(&self) -> Content {
        self.seen_by(Isolation::LogEnd)
    }

    /// What a reader of this kind is given, from the first local offset on.
    fn seen_by(&self, isolation: Isolation) -> Content {
        let log = self.log();
        let options = FetchOptions { max_bytes: u32::MAX, isolation, min_one_message: true };
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

    /// The log holds what the model says, and every offset, time and epoch leads to it.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn check_same(&self, when: &str) {
        self.check_content(when);
        self.check_epochs(&self.content(), when);
        // A log whose start was raised learns its transactions from there on.
        if !self.model.was_raised && self.model.local_start == 0 {
            self.check_transactions(when);
        }
        check_columns(&self.disk, Path::new(DIR), self.log(), when);
    }

    /// The log holds what the model says, and every offset and time leads to it.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn check_content(&self, when: &str) {
        let log = self.log();
        let content = self.content();
        let start = self.model.start.max(self.model.local_start);
        let own = |(offset, bytes): (&i64, &Vec<u8>)| (*offset, bytes.clone());
        let visible: Content = self
            .model
            .now
            .iter()
            .filter(|(_, bytes)| next_offset(bytes) > start)
            .map(own)
            .collect();
        let shown: Content =
            content.iter().filter(|(_, bytes)| next_offset(bytes) > start).map(own).collect();
        assert!(shown == visible, "{when}: {:?}, not {:?}", offsets(&content), offsets(&visible));
        assert_eq!(log.log_end_offset(), self.model.end, "{when}");
        assert_eq!(log.log_start_offset(), self.model.start, "{when}");
        self.check_bounds(&content, when);
        self.check_whole(&content, when);
    }

    /// The offsets that bound readers are in order, and no reader is given more or less than what
    /// lies before its own.
    fn check_bounds(&self, content: &Content, when: &str) {
        let log = self.log();
        let (stable, high) = (log.last_stable_offset(), log.high_watermark());
        let bounds = [log.log_start_offset(), stable, high, log.log_end_offset()];
        assert!(bounds.is_sorted(), "{when}: start, stable, high, end are {bounds:?}");
        assert_eq!(high, self.model.high_watermark, "{when}: the high watermark");
        for (isolation, bound) in [(Isolation::HighWatermark, high), (Isolation::Committed, stable)]
        {
            let seen = self.seen_by(isolation);
            let is_readable = |(base, bytes): &(&i64, &Vec<u8>)| {
                let start = log.log_start_offset();
                start < bound && **base < bound && next_offset(bytes) > start
            };
            let of = |content: &Content| -> Vec<i64> {
                content.iter().filter(is_readable).map(|(base, _)| *base).collect()
            };
            assert_eq!(of(&seen), of(content), "{when}: {isolation:?} up to {bound}");
            assert!(seen.keys().all(|base| *base < bound), "{when}: {isolation:?} up to {bound}");
        }
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
            // Markers have a clock of their own.
            let timestamp_ms = NOW_MS + base;
            if max_timestamp(bytes) == timestamp_ms && *base >= log.log_start_offset() {
                let look = || log.offset_for_timestamp(timestamp_ms);
                let found = look().or_else(|_| look()).expect("a look").map(|found| found.offset);
                assert_eq!(found, Some(*base), "{when}: the time of {base}");
            }
        }
    }

    /// Where an epoch ends is where the batches of a later one begin. The epochs before the log
    /// start may be forgotten, also when the power went before the start was written down.
    fn check_epochs(&self, content: &Content, when: &str) {
        let headers: Vec<BatchHeader> =
            content.values().map(|bytes| BatchHeader::parse(bytes).expect("a header")).collect();
        let epochs = self.log().leader_epochs();
        let start = epochs.earliest().map_or(self.model.end, |entry| entry.start_offset);
        for pair in headers.windows(2) {
            let (one, next) = (pair[0], pair[1]);
            if one.leader_epoch < next.leader_epoch && one.base_offset >= start {
                let (epoch, end) = self.log().end_offset_for_epoch(one.leader_epoch);
                assert_eq!(epoch, one.leader_epoch, "{when}");
                let between = one.next_offset()..=next.base_offset;
                assert!(between.contains(&end), "{when}: epoch {epoch} ends at {end}");
            }
        }
    }

    /// Transactions that are open hold back the last stable offset, and those that were aborted are
    /// told.
    fn check_transactions(&self, when: &str) {
        let mut open = BTreeMap::new();
        let mut aborted = Vec::new();
        let high_watermark = self.model.high_watermark;
        // Of transactions that were decided, but whose decision is not committed.
        let mut undecided = high_watermark;
        for line in lines(self.log()) {
            match line.abort {
                Some(is_abort) => {
                    let first = open.remove(&line.producer_id);
                    if line.offset >= high_watermark {
                        undecided = undecided.min(first.unwrap_or(undecided));
                    }
                    let is_told = |_: &i64| is_abort;
                    aborted.extend(
                        first.filter(is_told).map(|first| (line.producer_id, first, line.offset)),
                    );
                }
                None if line.is_transactional => {
                    open.entry(line.producer_id).or_insert(line.offset);
                }
                None => {}
            }
        }
        let look = || self.log().aborted_transactions(0, self.model.end);
        let told = look().or_else(|_| look()).expect("transactions");
        let told: Vec<_> =
            told.iter().map(|txn| (txn.producer_id, txn.first_offset, txn.last_offset)).collect();
        assert_eq!(told, aborted, "{when}");
        let stable = open.values().min().copied().unwrap_or(high_watermark).min(high_watermark);
        // A log that was opened knows no longer of all that is decided and not replicated.
        let may_be = stable.min(undecided)..=match self.model.was_opened {
            true => stable,
            false => stable.min(undecided),
        };
        let found = self.log().last_stable_offset();
        assert!(may_be.contains(&found), "{when}: {found}, not {may_be:?}");
    }

    /// The log holds what it held at one time, from its first batch on, but for what is missing at
    /// the ends of segments: a power cut may spare a segment and not the one before it.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn check_part(&self, when: &str) {
        let content = self.content();
        self.check_whole(&content, when);
        let Some(first) = content.keys().next() else { return };
        let end = content.last_key_value().map_or(0, |(_, bytes)| next_offset(bytes));
        let bases: Vec<i64> =
            self.log().segments().iter().map(|segment| segment.base_offset()).collect();
        let is_part = |state: &Content| {
            let is_known = content.iter().all(|(base, bytes)| state.get(base) == Some(bytes));
            let mut missing =
                state.range(first..&end).filter(|(base, _)| !content.contains_key(base));
            // All that is behind one that is missing is missing, too, up to the next segment.
            is_known
                && missing.all(|(gone, _)| {
                    let behind = content.range(gone..).next().map_or(end, |(base, _)| *base);
                    bases.iter().any(|base| (gone + 1..=behind).contains(base))
                })
        };
        let is_known = self.model.states.iter().any(is_part);
        assert!(is_known, "{when}: {:?} was never there", offsets(&content));
    }

    /// The log holds what is durable, and nothing that had been cut off, as it was at one time.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn check_survived(&self, when: &str) {
        self.check_part(when);
        let content = self.content();
        for (base, bytes) in &self.model.durable {
            if next_offset(bytes) > self.model.start {
                assert_eq!(content.get(base), Some(bytes), "{when}: {base} was durable");
            }
        }
        for (base, bytes) in content {
            assert!(!self.model.cut.contains(&(base, bytes)), "{when}: {base} had been cut off");
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
        let local_start = log.local_log_start_offset();
        let sequences = self.known_sequences();
        let epoch = log.latest_epoch().unwrap_or(0);
        log.update_high_watermark(end).expect("a high watermark");
        (self.model.high_watermark, self.model.is_lagging) = (end, false);
        self.model.now = self.content();
        self.model.durable.retain(|base, _| self.model.now.contains_key(base));
        (self.model.start, self.model.end) = (start, end);
        self.model.local_start = local_start;
        self.model.states = vec![self.model.now.clone()];
        self.model.sequences = sequences;
        self.model.epoch = self.model.epoch.max(epoch);
    }

    /// Files that wait for their deletion; where the start was raised, producers and transactions
    /// that the log learnt again from its start on, though batches before it are still there; and
    /// the snapshot of a stop, until the next start.
    fn is_expected(&self, problem: &str) -> bool {
        let mut codes = vec!["(leftover)"];
        if self.model.was_raised {
            codes.extend(["(snapshot_mismatch)", "(txnindex_mismatch)", "(txnindex_missing)"]);
        }
        if self.model.was_stopped {
            codes.push("(stray_snapshot)");
        }
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

fn max_timestamp(bytes: &[u8]) -> i64 {
    BatchHeader::parse(bytes).expect("a header").max_timestamp
}

fn count(bytes: &[u8]) -> i32 {
    BatchHeader::parse(bytes).expect("a header").count
}
