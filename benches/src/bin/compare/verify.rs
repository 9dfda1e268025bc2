//! Checks that change nothing: the CRC of every batch, and every record.

use siltstone::io::{Disk, MapMode};
use siltstone::log::verify::Depth;
use siltstone::log::{VerifyOptions, verify_partition};
use siltstone::record::codec::Codec;
use siltstone_benches::segment::Segment;
use siltstone_benches::{Result, limits, live_limits};

use crate::bench::Bench;
use crate::recover::{SIZES, bytes, make};
use crate::table::{Goal, Row, Unit};

const GB: Unit = Unit::Gigabytes;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (kibibytes, mebibytes, by_map, by_reading) in SIZES {
        let name = |how: &str| format!("verify every CRC, {kibibytes} KiB batches, {how}");
        let names = [name("by map"), name("host-safe")];
        if !names.iter().any(|name| bench.wants(name)) {
            continue;
        }
        let segment = make(bench, kibibytes, mebibytes, Codec::None)?;
        let size = bytes(&segment);
        let kafka = bench.kafka.get(&format!("verify-{kibibytes}k")).map(|rate| rate / 1e9);
        let modes = [(MapMode::Always, by_map), (MapMode::Never, by_reading)];
        for (name, (maps, goal)) in names.iter().zip(modes) {
            if bench.wants(name) {
                let ours = bench.time(|| verify(&segment, Depth::Batches, maps))?;
                let limit = bench.time(|| limits::recover(&segment.log, maps).map(drop))?;
                let row = Row::timed(name, GB, size, ours, Goal::Figure(goal));
                rows.push(bench.told(row.with_limit(size, limit).with_kafka(kafka)));
            }
        }
        bench.clear()?;
    }
    for (codec, word, goal) in [(Codec::None, "none", 8.0), (Codec::Lz4, "lz4", 1.3)] {
        let name = format!("deep verify, 16 KiB batches, {word}");
        if bench.wants(&name) {
            let segment = make(bench, 16, 512, codec)?;
            let size = bytes(&segment);
            let kafka = bench.kafka.get(&format!("deep-16k-{word}")).map(|rate| rate / 1e9);
            let ours = bench.time(|| verify(&segment, Depth::Records, MapMode::Always))?;
            let log = std::fs::read(&segment.log)?;
            let mut out = vec![0; 1 << 20];
            let mut open = |records: &[u8]| match codec {
                Codec::Lz4 => limits::lz4_blocks(records, &mut out),
                _ => live_limits::walk_records(records),
            };
            let limit = bench.time(|| live_limits::check(&log, &mut open))?;
            let row = Row::timed(&name, GB, size, ours, Goal::Figure(goal));
            rows.push(bench.told(row.with_limit(size, limit).with_kafka(kafka)));
            bench.clear()?;
        }
    }
    Ok(rows)
}

fn verify(segment: &Segment, depth: Depth, maps: MapMode) -> Result<()> {
    let options = VerifyOptions { depth, maps, records_listed_max: 0, ..VerifyOptions::default() };
    let report = verify_partition(&Disk::new(), &segment.dir, &options)?;
    if let Some(problem) = report.problems.first() {
        return Err(format!("what was generated is not sound: {problem}").into());
    }
    Ok(())
}
