//! Batches that are written to a log: as they are, as a leader, as a follower, and durably.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use siltstone::io::{Disk, Storage};
use siltstone::log::{AppendScratch, LeaderAppend, Log, LogConfig, OpenOptions};
use siltstone::record::codec::Codec;
use siltstone::record::validate::{BatchView, Batches, first_batch_size};
use siltstone::segment::{ActiveSegment, Folder, OpenFiles};
use siltstone_benches::batches::{FIRST_TIMESTAMP_MS, Shape};
use siltstone_benches::rounds::{Lap, Timing, Watch, rounds};
use siltstone_benches::supply::{Offsets, Supply};
use siltstone_benches::{Result, limits, live_limits, sync_limits};

use crate::bench::Bench;
use crate::table::{Goal, Row, Unit};

const GB: Unit = Unit::Gigabytes;
/// What waits for a log and is written at once.
const AT_ONCE: usize = 256 << 10;
/// Bytes of a round.
const TOTAL: u64 = 128 << 20;
/// Batches are a second old when they are appended.
const NOW_MS: i64 = FIRST_TIMESTAMP_MS + 1000;
/// Logs that are made durable together, and how often in a round.
const LOGS: usize = 64;
const TURNS: usize = 40;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for kibibytes in [1, 16, 64] {
        for (how, key, at_once) in [("coalesced", "many", AT_ONCE), ("one a call", "one", 1)] {
            let name = format!("append prebuilt {kibibytes} KiB batches, {how}");
            if bench.wants(&name) {
                let key = format!("append-{kibibytes}k-{key}");
                rows.push(bench.told(prebuilt(bench, (&name, &key), kibibytes, at_once)?));
            }
        }
    }
    for (codec, word, goal) in
        [(Codec::None, "none", 4.0), (Codec::Lz4, "lz4", 1.0), (Codec::Zstd, "zstd", 0.29)]
    {
        for (how, at_once) in [("coalesced", AT_ONCE), ("one a call", 1)] {
            let name = format!("append as leader, 16 KiB batches, {word}, {how}");
            if bench.wants(&name) {
                rows.push(bench.told(leader(bench, (&name, word), codec, (at_once, goal))?));
            }
        }
    }
    let name = "append as follower, 16 KiB batches, 256 KiB a call";
    if bench.wants(name) {
        rows.push(bench.told(follower(bench, name)?));
    }
    let name = "durable appends over 64 partitions, one flush a round";
    if bench.wants(name) {
        rows.push(bench.told(durable(bench, name)?));
    }
    Ok(rows)
}

fn supply(kibibytes: usize, codec: Codec) -> Result<Supply> {
    Supply::new(Shape { batch_bytes: kibibytes << 10, codec, producers: 0 })
}

/// A rate in bytes of what was really appended.
fn rate(bench: &Bench, supply: &Supply) -> Result<(u64, f64)> {
    let total = bench.scaled(TOTAL);
    Ok((total, f64::from(u32::try_from(supply.spent(total))?)))
}

/// An empty folder; what was in it is gone.
fn fresh(bench: &Bench, name: &str) -> Result<PathBuf> {
    let dir = bench.work.join(name);
    match fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

pub(crate) fn open(storage: Arc<dyn Storage>, dir: &Path, options: &OpenOptions) -> Result<Log> {
    Ok(Log::open(storage, dir, LogConfig::default(), options)?)
}

fn open_fresh(bench: &Bench) -> Result<Log> {
    let options = OpenOptions { now_ms: NOW_MS, ..OpenOptions::default() };
    open(Arc::new(Disk::new()), &fresh(bench, "append-0")?, &options)
}

/// The least: the bytes are checked and opened as they must be, and written.
fn limit(
    bench: &Bench,
    supply: &mut Supply,
    at_once: usize,
    mut check: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Timing> {
    let total = bench.scaled(TOTAL);
    rounds(bench.rounds(), || {
        let file = File::create(fresh(bench, "append-0")?.join("log"))?;
        let mut position = 0;
        supply.spend(total, at_once, Offsets::Given, |bytes| {
            check(bytes)?;
            file.write_all_at(bytes, position)?;
            position += u64::try_from(bytes.len())?;
            Ok(())
        })
    })
}

/// As a segment takes them: the index entries are made, nothing is checked.
fn prebuilt(
    bench: &Bench,
    (name, key): (&str, &str),
    kibibytes: usize,
    at_once: usize,
) -> Result<Row> {
    let mut supply = supply(kibibytes, Codec::None)?;
    let (total, bytes) = rate(bench, &supply)?;
    let settings = LogConfig::default().segment();
    let ours = rounds(bench.rounds(), || {
        let dir = fresh(bench, "append-0")?;
        let folder = Folder::new(Arc::new(Disk::new()), &dir, OpenFiles::new(1));
        let mut active = ActiveSegment::create(&folder, 0, &settings, NOW_MS)?;
        active.touch_indexes(&folder, &settings)?;
        supply.spend(total, at_once, Offsets::Given, |bytes| {
            let views: std::result::Result<Vec<BatchView<'_>>, _> = Batches::new(bytes).collect();
            let append = active.prepare(&folder, &settings, &views?)?;
            active.write(&folder, &[bytes])?;
            active.commit(&folder, &append);
            Ok(())
        })
    })?;
    let limit = limit(bench, &mut supply, at_once, |_| Ok(()))?;
    let goal = if at_once == 1 { Goal::OfLimit(0.9) } else { Goal::Figure(4.5) };
    let kafka = bench.kafka.get(key).map(|rate| rate / 1e9);
    Ok(Row::timed(name, GB, bytes, ours, goal).with_limit(bytes, limit).with_kafka(kafka))
}

fn leader(
    bench: &Bench,
    (name, word): (&str, &str),
    codec: Codec,
    (at_once, goal): (usize, f64),
) -> Result<Row> {
    let mut supply = supply(16, codec)?;
    let (total, bytes) = rate(bench, &supply)?;
    let mut scratch = AppendScratch::new();
    let append = LeaderAppend::client(0, NOW_MS);
    let ours = rounds(bench.rounds(), || {
        let log = open_fresh(bench)?;
        let lap = supply.spend(total, at_once, Offsets::FromZero, |bytes| {
            for answer in log.append_all_as_leader(&mut apart(bytes), &append, &mut scratch) {
                answer?;
            }
            Ok(())
        })?;
        // Not closed, which would sync what the others leave in the page cache.
        drop(log);
        Ok(lap)
    })?;
    let mut out = vec![0; 1 << 20];
    let mut zstd = zstd::bulk::Decompressor::new()?;
    let mut records = |payload: &[u8]| match codec {
        Codec::Lz4 => limits::lz4_blocks(payload, &mut out),
        Codec::Zstd => Ok(zstd.decompress_to_buffer(payload, &mut out)?),
        _ => live_limits::walk_records(payload),
    };
    let check = |bytes: &[u8]| live_limits::check(bytes, &mut records);
    let limit = limit(bench, &mut supply, at_once, check)?;
    // Kafka's leader takes one batch a call, and is set against that alone.
    let kafka = bench.kafka.get(&format!("leader-{word}")).filter(|_| at_once == 1);
    let kafka = kafka.map(|rate| rate / 1e9);
    let goal = if at_once == 1 { Goal::OfLimit(0.9) } else { Goal::Figure(goal) };
    let row = Row::timed(name, GB, bytes, ours, goal);
    Ok(row.with_limit(bytes, limit).with_kafka(kafka))
}

/// The batches of a buffer, each by itself.
fn apart(mut bytes: &mut [u8]) -> Vec<&mut [u8]> {
    let mut batches = Vec::new();
    while let Ok(Some(size)) = first_batch_size(bytes)
        && let Some((batch, rest)) = std::mem::take(&mut bytes).split_at_mut_checked(size)
    {
        batches.push(batch);
        bytes = rest;
    }
    batches
}

fn follower(bench: &Bench, name: &str) -> Result<Row> {
    let mut supply = supply(16, Codec::None)?;
    let (total, bytes) = rate(bench, &supply)?;
    let ours = rounds(bench.rounds(), || {
        let log = open_fresh(bench)?;
        let lap = supply.spend(total, AT_ONCE, Offsets::Given, |bytes| {
            log.append_as_follower(bytes, 0, NOW_MS)?;
            Ok(())
        })?;
        // Not closed, which would sync what the others leave in the page cache.
        drop(log);
        Ok(lap)
    })?;
    let check = |bytes: &[u8]| live_limits::check(bytes, &mut |_| Ok(0));
    let limit = limit(bench, &mut supply, AT_ONCE, check)?;
    let kafka = bench.kafka.get("follower").map(|rate| rate / 1e9);
    let row = Row::timed(name, GB, bytes, ours, Goal::Figure(4.5));
    Ok(row.with_limit(bytes, limit).with_kafka(kafka))
}

/// A batch to each log, then the files of all are synced together.
fn durable(bench: &Bench, name: &str) -> Result<Row> {
    let mut supply = supply(4, Codec::None)?;
    supply.number(0, Offsets::Given)?;
    let first = supply.calls(1).into_iter().next().ok_or("no batch")?;
    let mut batch = supply.bytes().get(first).ok_or("no batch")?.to_vec();
    let storage: Arc<dyn Storage> = Arc::from(siltstone::io::open_disk(Default::default())?);
    let home = fresh(bench, "durable")?;
    let options = OpenOptions { now_ms: NOW_MS, ..OpenOptions::default() };
    let logs: Result<Vec<Log>> = (0..LOGS)
        .map(|number| open(Arc::clone(&storage), &home.join(format!("log-{number}")), &options))
        .collect();
    let logs = logs?;
    let turns = usize::try_from(bench.scaled(u64::try_from(TURNS)?))?.max(5);
    let ours = bench.time(|| {
        for _ in 0..turns {
            append_to_all(&*storage, &logs, &mut batch)?;
        }
        Ok(())
    })?;
    for log in &logs {
        log.close()?;
    }
    let files: std::io::Result<Vec<_>> =
        (0..LOGS).map(|number| File::create(home.join(format!("file-{number}")))).collect();
    let files = files?;
    let mut position = 0;
    // How many syncs are best waited for at a time depends on the machine.
    let limits: Result<Vec<Timing>> = [16, LOGS]
        .into_iter()
        .map(|at_once| {
            bench.time(|| {
                sync_limits::append_durably(&files, &batch, position, (turns, at_once))?;
                position += u64::try_from(batch.len() * turns)?;
                Ok(())
            })
        })
        .collect();
    let limit = limits?.into_iter().min_by(|a, b| a.median_s.total_cmp(&b.median_s));
    let limit = limit.ok_or("no limit")?;
    let appends = f64::from(u32::try_from(LOGS * turns)?);
    let row = Row::timed(name, Unit::Appends, appends, ours, Goal::OfLimit(0.9));
    Ok(row.with_limit(appends, limit).with_kafka(bench.kafka.get("durable")))
}

/// One turn: appends, then one sync for all.
fn append_to_all(storage: &dyn Storage, logs: &[Log], batch: &mut [u8]) -> Result<()> {
    for log in logs {
        let end = log.log_end_offset();
        *batch.first_chunk_mut().ok_or("no header")? = end.to_be_bytes();
        log.append_as_follower(batch, 0, NOW_MS)?;
    }
    let mut works = Vec::with_capacity(logs.len());
    for log in logs {
        works.extend(log.prepare_flush(log.log_end_offset(), false)?.map(|work| (log, work)));
    }
    let files: Vec<_> = works.iter().flat_map(|(_, work)| work.files()).collect();
    storage.sync_files(&files).into_iter().collect::<siltstone::Result<()>>()?;
    for (log, work) in &works {
        if work.syncs_dir() {
            storage.sync_dir(&log.dir())?;
        }
        log.complete_flush(work, Ok(()), NOW_MS)?;
    }
    Ok(())
}

/// A lap of something.
pub(crate) fn lap(work: impl FnOnce() -> Result<()>) -> Result<Lap> {
    let watch = Watch::start();
    work()?;
    Ok(watch.stop())
}
