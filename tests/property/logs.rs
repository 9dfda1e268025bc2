//! Partitions that are made up: ordinary logs of every kind of batch, and ordinary damage.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use siltstone::io::SimDisk;
use siltstone::io::sim::Entry;
use siltstone::log::recover::RecoverOptions;
use siltstone::record::codec::Codec;
use siltstone::segment::rebuild::IndexSettings;
use siltstone_tests::logs::LogBuilder;

use crate::recovery::recover;

/// Where a partition lies on its disk.
pub const DIR: &str = "/logs/orders-0";

/// Producers are few, so that they meet their own batches and markers.
const PRODUCERS: std::ops::Range<i64> = 1..4;
/// More than the offsets that one segment can hold: the segment must be split.
const OVERFLOW: i64 = 1 << 31;

/// One thing that happens to a log.
#[derive(Clone, Debug)]
pub enum Step {
    Batch(i32),
    Idempotent(i64, i32),
    Transactional(i64, i32),
    Commit(i64),
    Abort(i64),
    Legacy(i8, i64),
    Emptied(i64),
    Skip(i64),
    Roll,
    Elect,
    Codec(Codec),
    Value(Value),
}

/// What the records from here on hold.
#[derive(Clone, Debug)]
pub enum Value {
    /// So many bytes that no codec makes smaller.
    Plain(usize),
    /// A log of its own: whoever starts to read within it finds batches that are whole.
    Nested { batches: usize, magic: i8 },
    /// A batch whose last byte is the last of the batch around it, so that what follows is found
    /// from there, too.
    Flush,
}

/// What happens to the bytes.
#[derive(Clone, Debug)]
pub enum Damage {
    Tear(usize),
    Zeros(usize),
    Garbage(Vec<u8>),
    /// In the segment, at the byte, this bit.
    Flip(Index, Index, u8),
}

/// What happens to a small file that an earlier recovery made.
#[derive(Clone, Debug)]
pub enum Trouble {
    Remove(Index),
    Shorten(Index, Index),
    Flip(Index, Index, u8),
}

/// A partition, and what recovery is told.
#[derive(Clone, Debug)]
pub struct Case {
    pub steps: Vec<Step>,
    /// Whether it has small files, and what happened to them.
    pub small_files: Option<Vec<Trouble>>,
    pub damage: Vec<Damage>,
    pub allow_loss: bool,
    pub discard_lost: bool,
    pub interval_bytes: u64,
    pub stage_bytes: usize,
}

/// Logs with values up to this size.
pub fn steps(
    value_bytes: usize,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<Step>> {
    let value = prop_oneof![
        2 => (0..value_bytes).prop_map(Value::Plain),
        3 => (1..4_usize, select(vec![0_i8, 1, 2]))
            .prop_map(|(batches, magic)| Value::Nested { batches, magic }),
        1 => Just(Value::Flush),
    ];
    let step = prop_oneof![
        4 => (1..4).prop_map(Step::Batch),
        3 => (PRODUCERS, 1..4).prop_map(|(id, records)| Step::Idempotent(id, records)),
        4 => (PRODUCERS, 1..3).prop_map(|(id, records)| Step::Transactional(id, records)),
        2 => PRODUCERS.prop_map(Step::Commit),
        2 => PRODUCERS.prop_map(Step::Abort),
        2 => (0..2_i8, 1..3_i64).prop_map(|(magic, messages)| Step::Legacy(magic, messages)),
        1 => (1..5_i64).prop_map(Step::Emptied),
        1 => prop_oneof![9 => 1..100_i64, 1 => Just(OVERFLOW)].prop_map(Step::Skip),
        2 => Just(Step::Roll),
        1 => Just(Step::Elect),
        2 => select(Codec::ALL.to_vec()).prop_map(Step::Codec),
        3 => value.prop_map(Step::Value),
    ];
    proptest::collection::vec(step, count)
}

/// Partitions with all that goes wrong now and then.
pub fn cases(value_bytes: usize) -> impl Strategy<Value = Case> {
    let damage = prop_oneof![
        2 => (1..200_usize).prop_map(Damage::Tear),
        2 => (1..600_usize).prop_map(Damage::Zeros),
        1 => proptest::collection::vec(any::<u8>(), 1..100).prop_map(Damage::Garbage),
        2 => (any::<Index>(), any::<Index>(), 0..8_u8)
            .prop_map(|(segment, at, bit)| Damage::Flip(segment, at, bit)),
    ];
    let trouble = prop_oneof![
        any::<Index>().prop_map(Trouble::Remove),
        (any::<Index>(), any::<Index>()).prop_map(|(file, size)| Trouble::Shorten(file, size)),
        (any::<Index>(), any::<Index>(), 0..8_u8)
            .prop_map(|(file, at, bit)| Trouble::Flip(file, at, bit)),
    ];
    let small_files = proptest::option::of(proptest::collection::vec(trouble, 0..3));
    let options =
        (any::<bool>(), any::<bool>(), select(vec![0, 100, 4096]), select(vec![0, 1 << 20]));
    (steps(value_bytes, 1..25), small_files, proptest::collection::vec(damage, 0..3), options)
        .prop_map(|(steps, small_files, damage, options)| {
            let (allow_loss, discard_lost, interval_bytes, stage_bytes) = options;
            Case {
                steps,
                small_files,
                damage,
                allow_loss,
                discard_lost,
                interval_bytes,
                stage_bytes,
            }
        })
}

impl Case {
    /// The log as it was before anything happened to it.
    pub fn log(&self) -> LogBuilder {
        let mut log = LogBuilder::new();
        let (mut codec, mut leader_epoch) = (Codec::None, 0);
        for step in &self.steps {
            match step {
                Step::Codec(next) => codec = *next,
                Step::Elect => leader_epoch += 1,
                _ => {}
            }
            // There was no zstd when there were old messages.
            let is_old = matches!(step, Step::Legacy(..));
            let usable = if is_old && codec == Codec::Zstd { Codec::None } else { codec };
            log = apply(log.codec(usable).epoch(leader_epoch), step);
        }
        log
    }

    /// What recovery is told.
    pub fn options(&self) -> RecoverOptions {
        RecoverOptions {
            allow_loss: self.allow_loss,
            discard_lost: self.discard_lost,
            index: IndexSettings {
                interval_bytes: self.interval_bytes,
                ..IndexSettings::default()
            },
            now_ms: 1_700_000_100_000,
            producer_expiration_ms: i64::from(i32::MAX),
            stage_bytes: Some(self.stage_bytes),
            ..RecoverOptions::default()
        }
    }

    /// The partition on a disk of its own.
    pub fn disk(&self) -> SimDisk {
        let disk = SimDisk::new();
        for (name, bytes) in self.files() {
            disk.put(&Path::new(DIR).join(name), bytes, None).expect("a file in place");
        }
        disk
    }

    /// The files of the partition by name.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.log().files();
        if let Some(troubles) = &self.small_files {
            let mut small = small_files(&files, &self.options());
            for trouble in troubles {
                harm(&mut small, trouble);
            }
            files.append(&mut small);
        }
        for damage in &self.damage {
            strike(&mut files, damage);
        }
        files
    }
}

fn apply(log: LogBuilder, step: &Step) -> LogBuilder {
    match step {
        Step::Batch(records) => log.batch(*records),
        Step::Idempotent(id, records) => log.idempotent(*id, *records),
        Step::Transactional(id, records) => log.txn(*id, *records),
        Step::Commit(id) => log.commit(*id),
        Step::Abort(id) => log.abort(*id),
        Step::Legacy(magic, messages) => log.legacy(*magic, *messages),
        Step::Emptied(offsets) => log.emptied(*offsets),
        Step::Skip(offsets) => log.skip(*offsets),
        Step::Roll => log.roll(),
        Step::Elect | Step::Codec(_) => log,
        Step::Value(value) => {
            let bytes = bytes_of(value, log.end_offset());
            log.value(&bytes)
        }
    }
}

/// The value's bytes; the batches in them have offsets that the log around them could have.
fn bytes_of(value: &Value, offset: i64) -> Vec<u8> {
    let inner = LogBuilder::starting_at(offset).value(b"inner");
    match value {
        Value::Plain(size) => noise(*size),
        Value::Nested { batches, magic } => {
            let add =
                |log: LogBuilder| if *magic == 2 { log.batch(1) } else { log.legacy(*magic, 1) };
            (0..*batches).fold(inner, |log, _| add(log)).newest().to_vec()
        }
        Value::Flush => {
            // A record ends in the count of its headers, and so does the one around it.
            let inner = inner.batch(1);
            let (&last, front) = inner.newest().split_last().expect("a batch");
            assert_eq!(last, 0);
            front.to_vec()
        }
    }
}

/// Bytes that are the same each time and that no codec makes smaller.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_be_bytes()[0]
    };
    (0..size).map(next).collect()
}

/// The small files that a recovery makes of these logs.
fn small_files(
    logs: &BTreeMap<String, Vec<u8>>,
    options: &RecoverOptions,
) -> BTreeMap<String, Vec<u8>> {
    let disk = SimDisk::new();
    for (name, bytes) in logs {
        disk.put(&Path::new(DIR).join(name), bytes.clone(), None).expect("a file in place");
    }
    let (told, _) = recover(&disk, options);
    if told.len() > 1 {
        // A segment was split: small files of its parts do not lie beside the whole.
        return BTreeMap::new();
    }
    let tree = disk.snapshot(Path::new(DIR)).expect("a partition");
    let named = tree.entries.into_iter().filter_map(|(path, entry)| match entry {
        Entry::File(bytes) => Some((path.to_string_lossy().into_owned(), bytes)),
        _ => None,
    });
    named.filter(|(name, _)| !name.ends_with(".log")).collect()
}

fn harm(files: &mut BTreeMap<String, Vec<u8>>, trouble: &Trouble) {
    let (Trouble::Remove(file) | Trouble::Shorten(file, _) | Trouble::Flip(file, ..)) = trouble;
    let names: Vec<String> = files.keys().cloned().collect();
    if names.is_empty() {
        return;
    }
    let name = file.get(&names);
    match trouble {
        Trouble::Remove(_) => {
            files.remove(name);
        }
        Trouble::Shorten(_, size) => {
            let bytes = files.get_mut(name).expect("a file");
            bytes.truncate(size.index(bytes.len() + 1));
        }
        Trouble::Flip(_, at, bit) => flip(files.get_mut(name).expect("a file"), at, *bit),
    }
}

fn strike(files: &mut BTreeMap<String, Vec<u8>>, damage: &Damage) {
    let mut logs: Vec<&mut Vec<u8>> =
        files.iter_mut().filter(|(name, _)| name.ends_with(".log")).map(|(_, log)| log).collect();
    let newest = logs.len() - 1;
    match damage {
        Damage::Tear(size) => {
            let left = logs[newest].len().saturating_sub(*size);
            logs[newest].truncate(left);
        }
        Damage::Zeros(count) => {
            let size = logs[newest].len() + count;
            logs[newest].resize(size, 0);
        }
        Damage::Garbage(bytes) => logs[newest].extend_from_slice(bytes),
        Damage::Flip(segment, at, bit) => {
            let segment = segment.index(logs.len());
            flip(logs[segment], at, *bit);
        }
    }
}

fn flip(bytes: &mut [u8], at: &Index, bit: u8) {
    if !bytes.is_empty() {
        bytes[at.index(bytes.len())] ^= 1 << bit;
    }
}
