//! Look-ups in a log that is open: of offsets and of timestamps.

use std::hint::black_box;
use std::sync::Arc;

use siltstone::io::{Disk, MapMode};
use siltstone::log::{FetchOptions, Isolation, Log, OpenOptions};
use siltstone::record::codec::Codec;
use siltstone::segment::{FileName, FileRole, LogMaps, OpenFiles};
use siltstone_benches::batches::{FIRST_TIMESTAMP_MS, Shape};
use siltstone_benches::rounds::Timing;
use siltstone_benches::segment::Segment;
use siltstone_benches::supply::{Offsets, Supply};
use siltstone_benches::{Result, live_limits};

use crate::append::open;
use crate::bench::Bench;
use crate::recover::make;
use crate::table::{Goal, Row, Unit};

const US: Unit = Unit::Microseconds;
/// Look-ups of a round.
const LOOKUPS: u64 = 200_000;
const TIMESTAMPS: u64 = 20_000;
/// Batches at the end of the log that tail reads ask for.
const TAIL: i64 = 16;
const OPTIONS: FetchOptions =
    FetchOptions { max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_message: true };

/// A log with a large sealed segment and an active one.
struct Opened {
    segment: Segment,
    log: Log,
    /// Last offsets and positions of the batches of the active segment.
    recent: Vec<(i64, u64)>,
}

/// What rows of one place have in common: a thread that looks up all offsets.
struct Wanted {
    offsets: Vec<i64>,
    /// Of one thread, and of two.
    limits: (Timing, Timing),
    goal: f64,
}

/// Runs the same on two threads.
fn on_two(work: &(dyn Fn() -> Result<()> + Sync)) -> Result<()> {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| work().map_err(|error| error.to_string()));
        work()?;
        Ok(other.join().map_err(|_| "a thread panicked")??)
    })
}

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for kibibytes in [1, 16] {
        let name = |what: &str| format!("locate, {kibibytes} KiB batches, {what}");
        let timestamp = format!("offset for a timestamp, {kibibytes} KiB batches");
        let places = ["tail", "random in a sealed segment"];
        let names = places.map(|place| (name(place), name(&format!("{place}, two threads"))));
        let by_map = format!("locate by map, {kibibytes} KiB batches, random in a sealed segment");
        let any = names.iter().any(|(one, two)| bench.wants(one) || bench.wants(two));
        if !any && !bench.wants(&timestamp) && !bench.wants(&by_map) {
            continue;
        }
        let mut opened = Opened::make(bench, kibibytes)?;
        for ((one, two), is_tail) in names.iter().zip([true, false]) {
            let key = if is_tail { "tail" } else { "random" };
            let key = format!("locate-{kibibytes}k-{key}");
            if bench.wants(one) || bench.wants(two) {
                let wanted = if is_tail { opened.tail(bench)? } else { opened.random(bench)? };
                rows.extend(opened.locate(bench, (one, two), &key, &wanted)?);
            }
        }
        if bench.wants(&timestamp) {
            let key = format!("timestamp-{kibibytes}k");
            rows.push(bench.told(opened.timestamps(bench, &timestamp, &key)?));
        }
        if bench.wants(&by_map) {
            opened = opened.mapped()?;
            let key = format!("locate-{kibibytes}k-random");
            rows.push(bench.told(opened.by_map(bench, &by_map, &key)?));
        }
        opened.log.close()?;
        drop(opened);
        bench.clear()?;
    }
    Ok(rows)
}

/// A xorshift generator: the same numbers in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        i64::try_from(self.0 >> 1).unwrap_or(0) % end.max(1)
    }

    /// Numbers from `start` to before `end`.
    pub(crate) fn between(&mut self, count: u64, start: i64, end: i64) -> Vec<i64> {
        (0..count).map(|_| start + self.below(end - start)).collect()
    }
}

impl Opened {
    fn make(bench: &Bench, kibibytes: usize) -> Result<Self> {
        let segment = make(bench, kibibytes, 512, Codec::None)?;
        let options = OpenOptions { now_ms: FIRST_TIMESTAMP_MS, ..OpenOptions::default() };
        let log = open(Arc::new(Disk::new()), &segment.dir, &options)?;
        let base = log.roll(FIRST_TIMESTAMP_MS)?;
        if base != segment.end_offset {
            return Err("the log does not end where it was made to end".into());
        }
        let shape = Shape { batch_bytes: kibibytes << 10, codec: Codec::None, producers: 0 };
        let mut supply = Supply::new(shape)?;
        supply.number(base, Offsets::Given)?;
        let (mut recent, mut position) = (Vec::new(), 0);
        for call in supply.calls(1) {
            let size = u64::try_from(call.len())?;
            let batch = supply.bytes().get(call).ok_or("no batch")?;
            log.append_as_follower(batch, 0, FIRST_TIMESTAMP_MS)?;
            recent.push((log.log_end_offset() - 1, position));
            position += size;
        }
        Ok(Opened { segment, log, recent })
    }

    fn tail(&self, bench: &Bench) -> Result<Wanted> {
        let end = self.log.log_end_offset();
        let batch = i64::try_from(self.recent.len())?;
        let per_batch = (end - self.segment.end_offset) / batch.max(1);
        let offsets = Random(3).between(bench.scaled(LOOKUPS), end - per_batch * TAIL, end);
        let kept = self.recent.len().saturating_sub(64);
        let recent = self.recent.get(kept..).unwrap_or_default();
        let limit = || {
            for offset in &offsets {
                black_box(live_limits::locate_among(recent, *offset));
            }
            Ok(())
        };
        let limits = (bench.time(limit)?, bench.time(|| on_two(&limit))?);
        Ok(Wanted { offsets, limits, goal: 0.15 })
    }

    fn anywhere(&self, bench: &Bench) -> Vec<i64> {
        Random(3).between(bench.scaled(LOOKUPS), 0, self.segment.end_offset)
    }

    /// A side file of the sealed segment.
    fn read(&self, role: FileRole) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.segment.dir.join(FileName::live(0, role).format()))?)
    }

    fn random(&self, bench: &Bench) -> Result<Wanted> {
        let offsets = self.anywhere(bench);
        let file = std::fs::File::open(&self.segment.log)?;
        let index = self.read(FileRole::OffsetIndex)?;
        let limit = || {
            for offset in &offsets {
                let offset = u32::try_from(*offset)?;
                let size_bytes = self.segment.size_bytes;
                black_box(live_limits::locate(&file, &index, offset, size_bytes)?);
            }
            Ok(())
        };
        let limits = (bench.time(limit)?, bench.time(|| on_two(&limit))?);
        Ok(Wanted { offsets, limits, goal: 0.9 })
    }

    /// The same log for a host that allows maps.
    fn mapped(self) -> Result<Self> {
        let Opened { segment, log, recent } = self;
        log.close()?;
        let open_files = OpenFiles::with_maps(100, LogMaps::Sealed);
        let options =
            OpenOptions { now_ms: FIRST_TIMESTAMP_MS, open_files, ..OpenOptions::default() };
        let log = open(Arc::new(Disk::new()), &segment.dir, &options)?;
        Ok(Opened { segment, log, recent })
    }

    /// The same look-up, through a map.
    fn by_map(&self, bench: &Bench, name: &str, key: &str) -> Result<Row> {
        let offsets = self.anywhere(bench);
        let ours = bench.time(|| self.look(&offsets))?;
        let all = FetchOptions { max_bytes: u32::MAX, ..OPTIONS };
        let range = self.log.locate(0, &all)?.range.ok_or("nothing was found")?;
        let log = range.map(MapMode::Always)?.ok_or("no map was made")?;
        let index = self.read(FileRole::OffsetIndex)?;
        let limit = bench.time(|| {
            for offset in &offsets {
                black_box(live_limits::locate_mapped(&log, &index, u32::try_from(*offset)?)?);
            }
            Ok(())
        })?;
        let count = f64::from(u32::try_from(offsets.len())?);
        let kafka = bench.kafka.get(key).map(|seconds| seconds * 1e6);
        let row = Row::timed(name, US, count, ours, Goal::Figure(0.2));
        Ok(row.with_limit(count, limit).with_kafka(kafka))
    }

    fn look(&self, offsets: &[i64]) -> Result<()> {
        for offset in offsets {
            black_box(self.log.locate(*offset, &OPTIONS)?);
        }
        Ok(())
    }

    /// One thread's row, and that of two.
    fn locate(
        &self,
        bench: &Bench,
        (one, two): (&str, &str),
        key: &str,
        wanted: &Wanted,
    ) -> Result<Vec<Row>> {
        let look = || self.look(&wanted.offsets);
        let count = f64::from(u32::try_from(wanted.offsets.len())?);
        let kafka = |key: &str| bench.kafka.get(key).map(|seconds| seconds * 1e6);
        let mut rows = Vec::new();
        let alone = bench.time(look)?;
        if bench.wants(one) {
            let row = Row::timed(one, US, count, alone, Goal::Figure(wanted.goal));
            rows.push(bench.told(row.with_limit(count, wanted.limits.0).with_kafka(kafka(key))));
        }
        if bench.wants(two) {
            let both = bench.time(|| on_two(&look))?;
            let goal = Goal::OfOneThread(1.9, US.of(count, alone.median_s));
            let row = Row::timed(two, US, count * 2.0, both, goal);
            let kafka = kafka(&format!("{key}-2"));
            rows.push(bench.told(row.with_limit(count * 2.0, wanted.limits.1).with_kafka(kafka)));
        }
        Ok(rows)
    }

    fn timestamps(&self, bench: &Bench, name: &str, key: &str) -> Result<Row> {
        let batches = i64::try_from(self.segment.batches)?;
        let start = FIRST_TIMESTAMP_MS;
        let wanted = Random(9).between(bench.scaled(TIMESTAMPS), start, start + batches);
        let ours = bench.time(|| {
            for timestamp in &wanted {
                let found = self.log.offset_for_timestamp(*timestamp)?;
                if black_box(found).is_none() {
                    return Err("a timestamp of the log was not found".into());
                }
            }
            Ok(())
        })?;
        let file = std::fs::File::open(&self.segment.log)?;
        let (offsets, times) = (self.read(FileRole::OffsetIndex)?, self.read(FileRole::TimeIndex)?);
        let limit = bench.time(|| {
            for timestamp in &wanted {
                let (indexes, size_bytes) = ((&*offsets, &*times), self.segment.size_bytes);
                let timestamp = timestamp.cast_unsigned();
                black_box(live_limits::locate_time(&file, indexes, timestamp, size_bytes)?);
            }
            Ok(())
        })?;
        let count = f64::from(u32::try_from(wanted.len())?);
        let kafka = bench.kafka.get(key).map(|seconds| seconds * 1e6);
        let row = Row::timed(name, US, count, ours, Goal::Figure(1.0));
        Ok(row.with_limit(count, limit).with_kafka(kafka))
    }
}
