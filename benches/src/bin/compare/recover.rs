//! Recovery of one large segment: CRC of every batch, indexes and producers rebuilt.

use siltstone::io::MapMode;
use siltstone::record::codec::Codec;
use siltstone_benches::batches::Shape;
use siltstone_benches::cache::evict;
use siltstone_benches::rounds::{Lap, Timing, Watch};
use siltstone_benches::segment::Segment;
use siltstone_benches::{Result, limits};

use crate::bench::Bench;
use crate::table::{Goal, Row, Unit};

const GB: Unit = Unit::Gigabytes;
/// Producers of a segment.
pub(crate) const PRODUCERS: usize = 100;
/// Batch size in KiB, size of the segment in MiB, goals by map and by reading.
pub(crate) const SIZES: [(usize, u64, f64, f64); 3] =
    [(1, 512, 15.0, 8.0), (16, 1024, 18.0, 10.0), (64, 1024, 20.0, 11.0)];

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (kibibytes, mebibytes, by_map, by_reading) in SIZES {
        let name = |how: &str| format!("recover a segment, {kibibytes} KiB batches, {how}");
        let names =
            [name("by map"), name("host-safe"), name("cold, by map"), name("cold, host-safe")];
        if !names.iter().any(|name| bench.wants(name)) {
            continue;
        }
        let segment = make(bench, kibibytes, mebibytes, Codec::None)?;
        let size = bytes(&segment);
        let kafka = bench.kafka.get(&format!("recover-{kibibytes}k")).map(|rate| rate / 1e9);
        let modes = [(MapMode::Always, by_map), (MapMode::Never, by_reading)];
        for (name, (maps, goal)) in names.iter().zip(modes) {
            if bench.wants(name) {
                let ours = bench.time(|| segment.recover(maps))?;
                let limit = bench.time(|| limits::recover(&segment.log, maps).map(drop))?;
                let row = Row::timed(name, GB, size, ours, Goal::Figure(goal));
                rows.push(bench.told(row.with_limit(size, limit).with_kafka(kafka)));
            }
        }
        if kibibytes == 16 {
            for (name, (maps, _)) in names.iter().skip(2).zip(modes) {
                if bench.wants(name) {
                    rows.push(bench.told(cold(bench, &segment, name, maps)?));
                }
            }
        }
        bench.clear()?;
    }
    Ok(rows)
}

fn cold(bench: &Bench, segment: &Segment, name: &str, maps: MapMode) -> Result<Row> {
    let size = bytes(segment);
    let kafka = bench.kafka.get("recover-cold-16k").map(|rate| rate / 1e9);
    let after_eviction = |work: &dyn Fn() -> Result<()>| -> Result<Lap> {
        evict(&segment.log)?;
        let watch = Watch::start();
        work()?;
        Ok(watch.stop())
    };
    // The device has good and bad minutes: what is compared is measured in turns.
    let (mut ours, mut limit) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds() + 2 {
        ours.push(after_eviction(&|| segment.recover(maps))?);
        limit.push(after_eviction(&|| limits::read_through(&segment.log))?);
    }
    let (ours, limit) = (Timing::of(ours, bench.rounds()), Timing::of(limit, bench.rounds()));
    let row = Row::timed(name, GB, size, ours, Goal::OfLimit(0.95));
    Ok(row.with_limit(size, limit).with_kafka(kafka))
}

/// Makes the segment of a row.
pub(crate) fn make(
    bench: &Bench,
    kibibytes: usize,
    mebibytes: u64,
    codec: Codec,
) -> Result<Segment> {
    let shape = Shape { batch_bytes: kibibytes << 10, codec, producers: PRODUCERS };
    Segment::make(&bench.work, "segment", bench.scaled(mebibytes << 20), shape)
}

/// The size of a segment for the arithmetic of rates.
pub(crate) fn bytes(segment: &Segment) -> f64 {
    // Sizes stay below 2^32.
    u32::try_from(segment.size_bytes).map_or(f64::NAN, f64::from)
}
