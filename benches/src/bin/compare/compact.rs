//! Compaction of a large log with very many keys, until what is left of it is durable.
//!
//! Most keys stand in it once: nearly all of it is written anew, and the map of keys is much larger
//! than any cache. Each round works on links to the same segments, which no side writes to.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use siltstone::io::Disk;
use siltstone::log::{Cleaner, CleanerOptions, Log, LogConfig, OpenOptions};
use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::Compressor;
use siltstone_benches::Result;
use siltstone_benches::rounds::{Timing, Watch};

use crate::bench::Bench;
use crate::table::{Goal, Row, Unit};

const NAME: &str = "compaction of 1 GiB, 10 M keys";
const TOTAL: u64 = 1 << 30;
const KEYS: u64 = 10_000_000;
const SEGMENT_BYTES: u32 = 128 << 20;
const RECORDS_A_BATCH: u64 = 160;
const VALUE_BYTES: usize = 80;
/// Of the map: 24 for each key, of which it takes nine tenths.
const MAP_BYTES: usize = 384 << 20;
const COPY_BYTES: usize = 1 << 20;
const NOW_MS: i64 = 1_700_000_000_000;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    if !bench.wants(NAME) {
        return Ok(Vec::new());
    }
    let model = bench.work.join("model-0");
    let (size_bytes, end_offset) = make(bench, &model)?;
    let size = f64::from(u32::try_from(size_bytes)?);
    let ours = ours(bench, &model, end_offset)?;
    let limit = limit(bench, &model)?;
    let kafka = bench.kafka.get("compact").map(|rate| rate / 1e9);
    let row = Row::timed(NAME, Unit::Gigabytes, size, ours, Goal::OfKafka(5.0));
    Ok(vec![bench.told(row.with_limit(size, limit).with_kafka(kafka))])
}

fn open(dir: &Path, recovery_point: i64) -> Result<Log> {
    let config = LogConfig {
        compact: true,
        delete: false,
        segment_bytes: SEGMENT_BYTES,
        ..LogConfig::default()
    };
    let options = OpenOptions { now_ms: NOW_MS, recovery_point, ..OpenOptions::default() };
    Ok(Log::open(Arc::new(Disk::new()), dir, config, &options)?)
}

/// Makes the log; gives its size and its end.
fn make(bench: &Bench, dir: &Path) -> Result<(u64, i64)> {
    let (total, keys) = (bench.scaled(TOTAL), bench.scaled(KEYS));
    let log = open(dir, 0)?;
    let mut builder = BatchBuilder::new(BatchOptions::default())?;
    let (mut compressor, mut bytes) = (Compressor::new(), Vec::new());
    let value: Vec<u8> = b"siltstone".iter().copied().cycle().take(VALUE_BYTES).collect();
    let mut number = 0_u64;
    while log.size_bytes() < total {
        let base_offset = log.log_end_offset();
        builder.restart(BatchOptions { base_offset, leader_epoch: 0, ..Default::default() })?;
        for _ in 0..RECORDS_A_BATCH {
            let key = (number * 7919 % keys).to_be_bytes();
            builder.append(NOW_MS, Some(&key), Some(&value))?;
            number += 1;
        }
        bytes.clear();
        builder.write_to(&mut compressor, &mut bytes)?;
        log.append_as_follower(&bytes, 0, NOW_MS).map_err(siltstone::Error::from)?;
    }
    let size_bytes = log.size_bytes();
    log.roll(NOW_MS)?;
    let end_offset = log.log_end_offset();
    log.close()?;
    Ok((size_bytes, end_offset))
}

/// A folder with links to all files of another.
fn link(bench: &Bench, model: &Path) -> Result<std::path::PathBuf> {
    let dir = bench.work.join("compact-0");
    fs::create_dir_all(&dir)?;
    for entry in fs::read_dir(model)? {
        let entry = entry?;
        fs::hard_link(entry.path(), dir.join(entry.file_name()))?;
    }
    Ok(dir)
}

fn ours(bench: &Bench, model: &Path, end_offset: i64) -> Result<Timing> {
    let mut cleaner = Cleaner::new(CleanerOptions {
        dedupe_buffer_bytes: MAP_BYTES,
        ..CleanerOptions::default()
    });
    bench.time_few_laps(|| {
        let log = open(&link(bench, model)?, end_offset)?;
        log.update_high_watermark(end_offset)?;
        let range = log.cleanable(None, NOW_MS)?;
        let watch = Watch::start();
        let done = log.compact(&mut cleaner, &range, NOW_MS)?;
        let lap = watch.stop();
        if done.is_map_full || done.end_offset != end_offset {
            return Err("the log is not compacted".into());
        }
        log.delete()?;
        Ok(lap)
    })
}

/// Reads the log twice and writes it once, durably.
fn limit(bench: &Bench, model: &Path) -> Result<Timing> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(model)? {
        let path = entry?.path();
        if path.extension().is_some_and(|suffix| suffix == "log") {
            logs.push(path);
        }
    }
    let mut buffer = vec![0; COPY_BYTES];
    let mut read = |log: &Path, to: Option<&mut File>| -> Result<()> {
        let (mut file, mut to) = (File::open(log)?, to);
        loop {
            let count = file.read(&mut buffer)?;
            let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
                return Ok(());
            };
            if let Some(to) = &mut to {
                to.write_all(bytes)?;
            }
        }
    };
    let copy = bench.work.join("copy");
    bench.time_few_laps(|| {
        let watch = Watch::start();
        for log in &logs {
            read(log, None)?;
        }
        for log in &logs {
            let mut file = File::create(copy.with_extension("log"))?;
            read(log, Some(&mut file))?;
            file.sync_all()?;
        }
        Ok(watch.stop())
    })
}
