//! What does it take to open many logs, and to keep them open?

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use siltstone::io::{Disk, MapMode, Storage};
use siltstone::log::{Log, LogConfig, OpenOptions};
use siltstone::record::codec::Codec;
use siltstone::segment::OpenFiles;
use siltstone_benches::batches::{Batches, FIRST_TIMESTAMP_MS, Shape};
use siltstone_benches::directory::Directory;
use siltstone_benches::rounds::{Timing, Watch};
use siltstone_benches::supply::{Offsets, Supply};
use siltstone_benches::{Result, dir_limits};

use crate::append::open;
use crate::bench::Bench;
use crate::table::{Goal, LOAD, Row, Unit};

/// The first argument of the process that measures memory.
pub(crate) const MEMORY_OF: &str = "--memory-of";
/// Logs that it opens, and segments that each gets beside the first.
const LOGS: u64 = 2000;
const FURTHER: u32 = 3;
/// Producers of one log.
const PRODUCERS: u64 = 200_000;
/// Batches that are remembered of a producer.
const REMEMBERED: u32 = 5;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (threads, goal) in [(1, 10_000.0), (2, 18_000.0)] {
        let word = if threads == 1 { "thread" } else { "threads" };
        let name = format!("load 2,000 partitions x 3 segments, clean, {threads} {word}");
        if bench.wants(&name) {
            let (count, ours, limit) = bench.with_partitions(|directory| {
                let count = f64::from(u32::try_from(directory.partitions)?);
                restore(directory)?;
                let ours = load(bench, directory, threads, directory.partitions)?;
                Ok((count, ours, limit(bench, directory, threads)?))
            })?;
            let kafka = bench.kafka.get(&format!("clean-{threads}"));
            let row = Row::timed(&name, Unit::Partitions, count, ours, Goal::Figure(goal));
            rows.push(bench.told(row.with_limit(count, limit).with_kafka(kafka)));
        }
    }
    for count in [125, 500, 2000] {
        rows.extend(growth(bench, count)?);
    }
    rows.extend(memory(bench)?);
    Ok(rows)
}

/// What one partition costs as there are ever more.
fn growth(bench: &Bench, count: usize) -> Result<Option<Row>> {
    let name = format!("{LOAD}{count}");
    if !bench.wants(&name) {
        return Ok(None);
    }
    let (count, ours) = bench.with_partitions(|directory| {
        restore(directory)?;
        Ok((count.min(directory.partitions), load(bench, directory, 1, count)?))
    })?;
    let work = f64::from(u32::try_from(count)?);
    let row = Row::timed(&name, Unit::Microseconds, work, ours, Goal::Nothing);
    Ok(Some(bench.told(row)))
}

/// Every partition as after a clean stop.
fn restore(directory: &mut Directory) -> Result<()> {
    directory.kill_again()?;
    directory.recover(2, MapMode::Always)
}

fn load(bench: &Bench, directory: &Directory, threads: usize, count: usize) -> Result<Timing> {
    let folders: Vec<_> = directory.folders().take(count).collect();
    let share = folders.len().div_ceil(threads);
    let storage: Arc<dyn Storage> = Arc::new(Disk::new());
    let open_files = OpenFiles::new(100);
    let open_all = |folders: &[std::path::PathBuf]| -> std::result::Result<Vec<Log>, String> {
        let options = OpenOptions {
            now_ms: FIRST_TIMESTAMP_MS,
            open_files: Arc::clone(&open_files),
            ..OpenOptions::default()
        };
        folders
            .iter()
            .map(|dir| open(Arc::clone(&storage), dir, &options).map_err(|error| error.to_string()))
            .collect()
    };
    bench.time_few_laps(|| {
        let watch = Watch::start();
        let logs = std::thread::scope(|scope| {
            let mut parts = folders.chunks(share);
            let mine = parts.next().unwrap_or_default();
            let others: Vec<_> = parts.map(|part| scope.spawn(|| open_all(part))).collect();
            let mut logs = open_all(mine)?;
            for other in others {
                logs.extend(other.join().map_err(|_| "a thread panicked")??);
            }
            Ok::<_, Box<dyn std::error::Error>>(logs)
        })?;
        let lap = watch.stop();
        for log in &logs {
            if log.log_end_offset() != directory.end_offset {
                return Err("a log does not end where it was made to end".into());
            }
            log.close()?;
        }
        Ok(lap)
    })
}

/// The same directory: closing the logs has left it as it was.
fn limit(bench: &Bench, directory: &Directory, threads: usize) -> Result<Timing> {
    let folders: Vec<_> = directory.folders().collect();
    let (snapshot, active) = (directory.made_at_the_end(), directory.active());
    bench.time_few_laps(|| {
        let watch = Watch::start();
        dir_limits::load_folders(&folders, threads, snapshot, active)?;
        Ok(watch.stop())
    })
}

/// Name, what the other process and Kafka's half call it, goal, and the least: what the numbers of
/// an open file or segment take beside its name, a producer in a snapshot, and the sequence,
/// offset, count and timestamp of a batch.
const MEMORY: [(&str, &str, f64, f64); 4] = [
    ("memory of an open partition", "memory-partition", 1024.0, 200.0),
    ("memory of a further segment", "memory-segment", 200.0, 100.0),
    ("memory of a producer with one batch known", "memory-producer", 64.0, 46.0),
    ("memory of a further batch of a producer", "memory-batch", 28.0, 24.0),
];

fn memory(bench: &Bench) -> Result<Vec<Row>> {
    if !MEMORY.iter().any(|(name, ..)| bench.wants(name)) {
        return Ok(Vec::new());
    }
    // A process of its own: what others have let go of would hide what is taken.
    let output = Command::new(std::env::current_exe()?)
        .arg(MEMORY_OF)
        .arg(bench.work.join("memory"))
        .args([bench.scaled(LOGS), bench.scaled(PRODUCERS)].map(|count| count.to_string()))
        .output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("the memory of open logs was not measured: {why}").into());
    }
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut rows = Vec::new();
    for (name, key, goal, least) in MEMORY {
        let line = told.lines().find_map(|line| line.strip_prefix(key));
        let ours: f64 = line.ok_or("a figure is missing")?.trim().parse()?;
        if bench.wants(name) {
            let mut row = Row::counted(name, Unit::Bytes, ours, Goal::Figure(goal));
            row.limit = Some(least);
            rows.push(bench.told(row.with_kafka(bench.kafka.get(key))));
        }
    }
    Ok(rows)
}

/// The bytes of all pages that this process holds in memory now.
fn resident_bytes() -> Result<f64> {
    let told = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u32 = told.split(' ').nth(1).ok_or("no such number")?.parse()?;
    Ok(f64::from(pages) * f64::from(u32::try_from(rustix::param::page_size())?))
}

/// What the other process does: `HOME LOGS PRODUCERS`.
pub(crate) fn tell_memory(args: &[String]) -> Result<()> {
    let [home, logs, producers] = args else { return Err("three arguments are needed".into()) };
    let home = Path::new(home);
    std::fs::create_dir_all(home)?;
    of_logs(home, logs.parse()?)?;
    of_producers(home, producers.parse()?)
}

fn of_logs(home: &Path, count: u32) -> Result<()> {
    let shape = Shape { batch_bytes: 4096, codec: Codec::None, producers: 0 };
    let mut supply = Supply::new(shape)?;
    supply.number(0, Offsets::Given)?;
    let first = supply.calls(1).into_iter().next().ok_or("no batch")?;
    let mut batch = supply.bytes().get(first).ok_or("no batch")?.to_vec();
    drop(supply);
    let options = OpenOptions { now_ms: FIRST_TIMESTAMP_MS, ..OpenOptions::default() };
    let storage: Arc<dyn Storage> = Arc::new(Disk::new());
    let mut grow = |log: &Log| -> Result<()> {
        *batch.first_chunk_mut().ok_or("no header")? = log.log_end_offset().to_be_bytes();
        log.append_as_follower(&batch, 0, FIRST_TIMESTAMP_MS)?;
        Ok(())
    };
    // As an engine keeps the settings of a topic.
    let config = Arc::new(LogConfig::default());
    let mut open_one = |number: u32| -> Result<Log> {
        let dir = home.join(format!("log-{number}"));
        let log = Log::open(Arc::clone(&storage), &dir, Arc::clone(&config), &options)?;
        grow(&log)?;
        Ok(log)
    };
    // What is taken once.
    let warm: Result<Vec<Log>> = (count..count + 50).map(&mut open_one).collect();
    let warm = warm?;
    let before = resident_bytes()?;
    let logs: Result<Vec<Log>> = (0..count).map(&mut open_one).collect();
    let logs = logs?;
    let opened = resident_bytes()?;
    println!("memory-partition {}", (opened - before) / f64::from(count));
    for _ in 0..FURTHER {
        for log in &logs {
            log.roll(FIRST_TIMESTAMP_MS)?;
            grow(log)?;
        }
    }
    let segments = f64::from(count * FURTHER);
    println!("memory-segment {}", (resident_bytes()? - opened) / segments);
    drop((warm, logs));
    Ok(())
}

fn of_producers(home: &Path, count: u32) -> Result<()> {
    let shape = Shape { batch_bytes: 64, codec: Codec::None, producers: usize::try_from(count)? };
    let mut batches = Batches::new(shape)?;
    let options = OpenOptions { now_ms: FIRST_TIMESTAMP_MS, ..OpenOptions::default() };
    let log = open(Arc::new(Disk::new()), &home.join("producers-0"), &options)?;
    let mut bytes = Vec::new();
    let (mut before, mut one) = (resident_bytes()?, 0.0);
    for turn in 0..REMEMBERED {
        for number in 0..count {
            bytes.clear();
            batches.push(&mut bytes)?;
            log.append_as_follower(&bytes, 0, FIRST_TIMESTAMP_MS)?;
            if turn == 0 && number == 0 {
                before = resident_bytes()?;
            }
        }
        if turn == 0 {
            one = resident_bytes()?;
            println!("memory-producer {}", (one - before) / f64::from(count));
        }
    }
    let further = f64::from(count) * f64::from(REMEMBERED - 1);
    println!("memory-batch {}", (resident_bytes()? - one) / further);
    Ok(())
}
