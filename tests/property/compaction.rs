//! Whatever is appended, compacted, cut and opened again, after power cuts, too: a log says the
//! same of its keys as a plain list of everything that was ever appended.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use siltstone::io::SimDisk;
use siltstone::log::{Cleaner, CleanerOptions, Log, LogConfig, OpenOptions};
use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::{Codec, Compressor};
use siltstone_tests::columns::check_columns;
use siltstone_tests::compacted::{Line, committed, lines, view};
use siltstone_tests::live::{DIR, Marker, NOW_MS};

use crate::runner::check;

const RETENTION_MS: i64 = 1000;

#[derive(Clone, Debug)]
enum Step {
    /// A batch of keys, with values but for 0; of a transaction of this producer, 0 for none.
    Append {
        producer: u8,
        records: Vec<(u8, u8)>,
        codec: usize,
    },
    End {
        producer: u8,
        abort: bool,
    },
    Roll,
    Compact {
        slots: usize,
        step_bytes: u64,
        later: bool,
    },
    Reopen {
        is_clean: bool,
    },
    Flush,
    /// Followers lag behind from now on, so that nothing more is committed, or have everything.
    Lag(bool),
    /// A cut of what is not committed, at the end of a batch.
    Truncate(usize),
    /// The log starts at the end of a batch that is committed.
    RaiseStart(usize),
    /// The power goes, and spares what this seed says.
    Crash(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let records = prop::collection::vec((0..12_u8, 0..4_u8), 1..6);
    prop_oneof![
        8 => (prop_oneof![3 => Just(0_u8), 2 => 1..4_u8], records, 0..5_usize)
            .prop_map(|(producer, records, codec)| Step::Append { producer, records, codec }),
        3 => (1..4_u8, any::<bool>()).prop_map(|(producer, abort)| Step::End { producer, abort }),
        3 => Just(Step::Roll),
        3 => (2..40_usize, prop_oneof![1..400_u64, Just(1 << 20)], any::<bool>())
            .prop_map(|(slots, step_bytes, later)| Step::Compact { slots, step_bytes, later }),
        1 => any::<bool>().prop_map(|is_clean| Step::Reopen { is_clean }),
        1 => Just(Step::Flush),
        2 => any::<bool>().prop_map(Step::Lag),
        1 => (0..100_usize).prop_map(Step::Truncate),
        1 => (0..100_usize).prop_map(Step::RaiseStart),
        1 => (0..100_u64).prop_map(Step::Crash),
    ]
}

struct Life {
    disk: SimDisk,
    log: Log,
    /// Everything that was ever appended, and neither cut nor lost with the power.
    ever: Vec<Line>,
    /// Where batches end.
    ends: BTreeSet<i64>,
    sequences: [i32; 4],
    /// What checkpoints say: where the log is compacted, where it starts, and up to where it is
    /// durable.
    checkpoint: Option<i64>,
    start: i64,
    recovery_point: i64,
    /// What a power cut must spare.
    durable_end: i64,
    is_lagging: bool,
    now_ms: i64,
}

fn open(disk: &SimDisk, clean_shutdown: bool, recovery_point: i64, start: i64) -> Log {
    let config = LogConfig {
        compact: true,
        delete: false,
        segment_bytes: 1200,
        segment_index_bytes: 240,
        index_interval_bytes: 100,
        file_delete_delay_ms: 0,
        delete_retention_ms: RETENTION_MS,
        ..LogConfig::default()
    };
    let options = OpenOptions {
        clean_shutdown,
        recovery_point,
        log_start_offset: start,
        now_ms: NOW_MS,
        ..OpenOptions::default()
    };
    let log = Log::open(Arc::new(disk.clone()), Path::new(DIR), config, &options);
    let log = log.expect("a log that opens");
    log.update_high_watermark(log.log_end_offset()).expect("a high watermark");
    log
}

impl Life {
    fn new() -> Self {
        let disk = SimDisk::new();
        let log = open(&disk, true, 0, 0);
        Life {
            disk,
            log,
            ever: Vec::new(),
            ends: BTreeSet::from([0]),
            sequences: [0; 4],
            checkpoint: None,
            start: 0,
            recovery_point: 0,
            durable_end: 0,
            is_lagging: false,
            now_ms: NOW_MS,
        }
    }

    fn take(&mut self, bytes: &[u8], taken: Vec<Line>) {
        self.log.append_as_follower(bytes, i32::MAX, self.now_ms).expect("an append");
        self.ever.extend(taken);
        self.ends.insert(self.log.log_end_offset());
        self.replicate();
    }

    fn replicate(&self) {
        if !self.is_lagging {
            self.log.update_high_watermark(self.log.log_end_offset()).expect("a high watermark");
        }
    }

    /// The end of a batch among those from `from` to `to`.
    fn end_within(&self, from: i64, to: i64, number: usize) -> Option<i64> {
        let ends: Vec<i64> = self.ends.range(from..=to).copied().collect();
        (!ends.is_empty()).then(|| ends[number % ends.len()])
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append { producer, records, codec } => self.append(*producer, records, *codec),
            Step::End { producer, abort } => {
                let offset = self.log.log_end_offset();
                let id = i64::from(*producer);
                let marker = Marker { offset, leader_epoch: 0, ..Marker::of(id, 0, *abort) };
                let line = Line {
                    offset,
                    producer_id: id,
                    abort: Some(*abort),
                    is_transactional: true,
                    key: None,
                    value: None,
                };
                self.take(&marker.build(), vec![line]);
            }
            Step::Roll => drop(self.log.roll(self.now_ms).expect("a roll")),
            Step::Compact { slots, step_bytes, later } => {
                if *later {
                    self.now_ms += RETENTION_MS;
                }
                self.compact(*slots, *step_bytes);
            }
            Step::Reopen { is_clean } => {
                self.flush();
                if *is_clean {
                    self.log.close().expect("a clean stop");
                }
                self.log = open(&self.disk, *is_clean, self.recovery_point, self.start);
                self.is_lagging = false;
            }
            Step::Flush => self.flush(),
            Step::Lag(is_lagging) => {
                self.is_lagging = *is_lagging;
                self.replicate();
            }
            Step::Truncate(number) => {
                let (from, to) = (self.log.high_watermark(), self.log.log_end_offset());
                if let Some(to) = self.end_within(from, to, *number) {
                    self.log.truncate_to(to, self.now_ms).expect("a cut");
                    self.ever.retain(|line| line.offset < to);
                    self.ends.retain(|end| *end <= to);
                    self.recovery_point = self.recovery_point.min(to);
                    self.durable_end = self.durable_end.min(to);
                }
            }
            Step::RaiseStart(number) => {
                let (from, to) = (self.start, self.log.high_watermark());
                if let Some(start) = self.end_within(from, to, *number) {
                    self.log.maybe_increment_log_start_offset(start).expect("a start");
                    self.log.delete_old_segments(self.now_ms).expect("segments that go");
                    self.ever.retain(|line| line.offset >= start);
                    self.start = start;
                }
            }
            Step::Crash(seed) => self.crash(*seed),
        }
    }

    fn flush(&mut self) {
        self.log.flush(true, self.now_ms).expect("a flush");
        self.durable_end = self.log.log_end_offset();
        self.recovery_point = self.log.recovery_point_to_save();
    }

    /// What is left is what the log is from now on; nothing durable is gone without its successor.
    fn crash(&mut self, seed: u64) {
        self.disk = self.disk.after_crash(seed);
        self.log = open(&self.disk, false, self.recovery_point, self.start);
        self.is_lagging = false;
        let left = lines(&self.log);
        let there: BTreeSet<&Line> = left.iter().collect();
        let known: BTreeSet<&Line> = self.ever.iter().collect();
        assert!(there.is_subset(&known), "invented, of {left:#?}");
        let end = self.log.log_end_offset();
        assert!(end >= self.durable_end, "{end} of {}", self.durable_end);
        let (kept, _) = committed(&self.ever);
        let kept: BTreeSet<i64> = kept.iter().map(|line| line.offset).collect();
        let decided_end = self.ever.iter().rev().find(|line| line.abort.is_some());
        let decided_end = decided_end.map_or(0, |line| line.offset);
        for line in self.ever.iter().filter(|line| line.offset < self.durable_end) {
            let is_aborted = !kept.contains(&line.offset) && line.offset < decided_end;
            let may_go = line.abort.is_some() || line.value.is_none() || is_aborted;
            let has_successor = || {
                let mut later = self.ever.iter().filter(|other| other.offset > line.offset);
                later.any(|other| {
                    other.key == line.key && (other.value.is_none() || there.contains(other))
                })
            };
            let is_there = there.contains(line) || may_go || has_successor();
            assert!(is_there, "{line:?} is gone, of {left:#?}");
        }
        self.sequences = [0; 4];
        self.log
            .with_producers(|state| {
                for producer in state.producers() {
                    let id = usize::try_from(producer.entry().producer_id).expect("an id");
                    self.sequences[id] = producer.last_sequence() + 1;
                }
            })
            .expect("a log that nobody writes to");
        self.ends.retain(|at| *at <= end);
        self.ends.insert(end);
        // Where the cleaner got to was noted down, or was not.
        self.checkpoint = self.checkpoint.filter(|_| seed.is_multiple_of(2));
        self.ever = left;
    }

    fn append(&mut self, producer: u8, records: &[(u8, u8)], codec: usize) {
        let base_offset = self.log.log_end_offset();
        let mut options = BatchOptions {
            base_offset,
            leader_epoch: 0,
            compression: Codec::ALL[codec].into(),
            ..BatchOptions::default()
        };
        if producer > 0 {
            let sequence = &mut self.sequences[usize::from(producer)];
            options.producer_id = i64::from(producer);
            options.producer_epoch = 0;
            options.base_sequence = *sequence;
            options.is_transactional = true;
            *sequence += i32::try_from(records.len()).expect("few");
        }
        let mut builder = BatchBuilder::new(options).expect("options");
        let mut taken = Vec::new();
        for (offset, (key, value)) in (base_offset..).zip(records) {
            let value = (*value > 0).then(|| vec![*value; 9]);
            builder.append(self.now_ms, Some(&[*key]), value.as_deref()).expect("a record");
            taken.push(Line {
                offset,
                producer_id: options.producer_id,
                abort: None,
                is_transactional: producer > 0,
                key: Some(vec![*key]),
                value,
            });
        }
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).expect("a batch");
        self.take(&bytes, taken);
    }

    fn compact(&mut self, slots: usize, step_bytes: u64) {
        let options = CleanerOptions {
            dedupe_buffer_bytes: slots * 24,
            io_buffer_bytes: 100,
            step_bytes,
            ..CleanerOptions::default()
        };
        let range = self.log.cleanable(self.checkpoint, self.now_ms).expect("a range");
        if range.first_uncleanable_offset < range.first_dirty_offset {
            // The log starts within the active segment.
            assert!(!range.is_due());
            return;
        }
        let mut cleaner = Cleaner::new(options);
        let done = self.log.compact(&mut cleaner, &range, self.now_ms).expect("a round");
        self.log.delete_due_files(i64::MAX).expect("files that go");
        assert!(done.end_offset >= range.first_dirty_offset, "{done:?}");
        assert!(done.is_map_full || done.end_offset >= range.first_uncleanable_offset, "{done:?}");
        self.checkpoint = Some(done.end_offset);
        let left = lines(&self.log);
        let mut seen = BTreeSet::new();
        for line in committed(&left).0.iter().filter(|line| line.offset < done.end_offset) {
            assert!(seen.insert(line.key.clone()), "{:?} is there twice: {left:#?}", line.key);
        }
    }

    fn check(&self) {
        check_columns(&self.disk, Path::new(DIR), &self.log, "compacted");
        let left = lines(&self.log);
        assert_eq!(view(&left), view(&self.ever), "of {left:#?}");
        let all: BTreeSet<&Line> = self.ever.iter().collect();
        assert!(left.iter().all(|line| all.contains(line)), "{left:#?}");
        let end = self.log.log_end_offset();
        assert_eq!(self.ends.last(), Some(&end));
        // A reader of committed data is told of every aborted record that it could meet.
        let kept: BTreeSet<i64> = committed(&self.ever).0.iter().map(|line| line.offset).collect();
        let told = self.log.aborted_transactions(0, end).expect("an index");
        let stable = self.log.last_stable_offset();
        for line in left.iter().filter(|line| line.abort.is_none() && line.offset < stable) {
            let is_told = told.iter().any(|txn| {
                txn.producer_id == line.producer_id
                    && (txn.first_offset..=txn.last_offset).contains(&line.offset)
            });
            assert_eq!(is_told, !kept.contains(&line.offset), "{line:?}, {told:?}");
        }
    }
}

#[test]
fn a_compacted_log_says_the_same_of_every_key() {
    check(300, &prop::collection::vec(step(), 1..60), |steps| {
        let mut life = Life::new();
        for step in &steps {
            life.step(step);
            let is_append = matches!(step, Step::Append { .. } | Step::End { .. } | Step::Roll);
            if !is_append {
                life.check();
            }
        }
        life.step(&Step::Roll);
        life.step(&Step::Compact { slots: 1000, step_bytes: 1 << 20, later: true });
        life.check();
    });
}
