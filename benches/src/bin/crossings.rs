//! What does a call of the library cost from C, beside the same call within the engine and beside
//! an empty function of another library?
//!
//! ```text
//! cargo run --release -p siltstone-benches --bin crossings [-- --print]
//!
//!   --print   the table is printed and not written
//! ```
//!
//! Needs a C compiler as `cc`. The table replaces the one in docs/PERFORMANCE.md.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use siltstone::index::{OffsetEntry, OffsetIndexBuilder};
use siltstone::io::Disk;
use siltstone::log::{
    AppendScratch, FetchOptions, FetchRequest, Isolation, LeaderAppend, Log, LogConfig,
    OpenOptions, locate_many,
};
use siltstone::record::codec::Codec;
use siltstone::segment::index_handle::{IndexHandle, IndexOptions};
use siltstone::segment::{LogMaps, OpenFiles};
use siltstone::tier::{UploadList, list_uploads};
use siltstone_benches::batches::{FIRST_TIMESTAMP_MS, Shape};
use siltstone_benches::rounds::{Watch, rounds};
use siltstone_benches::segment::Segment;
use siltstone_benches::supply::{Offsets, Supply};
use siltstone_benches::{Result, document, limits, machine, uploads, walks};

const MARKS: (&str, &str) = ("<!-- crossings: made by the command above -->", "<!-- end -->");
const ROUNDS: usize = 5;
const LOOKUPS: usize = 1_000_000;
const LOCATES: usize = LOOKUPS / 4;
const APPENDS: usize = LOOKUPS / 20;
const MANY: usize = 64;
const SEGMENTS: i64 = 100_000;
const INDEX_BYTES: usize = 10 << 20;
const NOW_MS: i64 = FIRST_TIMESTAMP_MS + 1000;
/// Batches at the end of the log that tail reads ask for.
const TAIL: i64 = 16;
const SHAPE: Shape = Shape { batch_bytes: 1024, codec: Codec::None, producers: 0 };
const OPTIONS: FetchOptions =
    FetchOptions { max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_message: true };

/// What a row is called here, and what the C program calls it; the call may cost so many
/// nanoseconds more than the engine's own, an empty one than an empty function.
const ROWS: [(&str, &str, Option<f64>); 11] = [
    ("a call that does nothing", "crossing", Some(1.0)),
    ("index look-up, random", "index-random", None),
    ("index look-up, last 8 KB", "index-last", None),
    ("locate, random in a sealed segment", "locate-random", Some(10.0)),
    ("locate, random, 64 a call, each", "locate-random-64", Some(10.0)),
    ("locate, random, the sealed segment mapped", "locate-mapped", Some(10.0)),
    ("locate, tail", "locate-tail", Some(10.0)),
    ("locate, tail, 64 a call, each", "locate-tail-64", Some(10.0)),
    ("append as leader, a batch of 1 KiB", "append", None),
    ("upload columns of 100,000 segments, as a range", "tier-range", None),
    ("upload columns of 100,000 segments, as a list", "tier-list", Some(10_000.0)),
];

/// The same of walks over a segment in the caller's memory, in GB/s.
const WALKS: [(&str, &str); 2] = [
    ("`silt_segment_scan`: indexes and producers", "scan"),
    ("`silt_segment_rebuild`: indexes", "rebuild"),
];
/// More than a cache holds.
const SCANNED_BYTES: u64 = 512 << 20;
const SCANNED_SHAPE: Shape = Shape { batch_bytes: 16 << 10, codec: Codec::None, producers: 100 };
/// What a walk is to come to where memory is fast enough.
const WALK_GOAL: f64 = 18.0;
/// A MiB in ns is so many GB/s.
const MIB: f64 = 1_048_576.0;

/// Nanoseconds by the names of the C program.
type Figures = BTreeMap<String, f64>;

fn main() -> Result<()> {
    let is_printed = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--print") => true,
        Some(other) => return Err(format!("unknown: {other}").into()),
    };
    let home = std::env::temp_dir().join(format!("siltstone-crossings-{}", std::process::id()));
    fs::create_dir_all(&home)?;
    let table = compare(&home);
    fs::remove_dir_all(&home)?;
    let table = table?;
    println!("\n{table}");
    if is_printed { Ok(()) } else { document::replace(MARKS, &table) }
}

fn compare(home: &Path) -> Result<String> {
    let mut own = Figures::new();
    index(home, &mut own)?;
    let sealed_end = log(home, &mut own)?;
    columns(&mut own)?;
    walk(home, &mut own)?;
    let from_c = run_c(home, sealed_end)?;
    let empty = *from_c.get("empty").ok_or("a figure is missing")?;
    own.insert("crossing".to_owned(), empty);
    let mut table =
        format!("{}\n\n| call | from C, ns | within, ns | goal |\n", machine::describe()?);
    table += "|---|---|---|---|\n";
    for (name, key, more) in ROWS {
        let (Some(c), Some(own)) = (from_c.get(key), own.get(key)) else {
            return Err(format!("there is no figure of {key}").into());
        };
        let goal = more.map_or("-".to_owned(), |more| {
            let verdict = if c - own <= more { "reached" } else { "short" };
            format!("<= {more} more: {verdict}")
        });
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {name} | {c:.1} | {own:.1} | {goal} |");
    }
    let limit = MIB / own.get("plain").ok_or("a figure is missing")?;
    table += "\n| walk over 512 MiB in memory | from C, GB/s | within | a plain loop | goal |\n";
    table += "|---|---|---|---|---|\n";
    for (name, key) in WALKS {
        let (Some(c), Some(own)) = (from_c.get(key), own.get(key)) else {
            return Err(format!("there is no figure of {key}").into());
        };
        let (c, own) = (MIB / c, MIB / own);
        let verdict = if c >= WALK_GOAL { "reached" } else { "short" };
        let _ = writeln!(
            table,
            "| {name} | {c:.1} | {own:.1} | {limit:.1} | >= {WALK_GOAL:.0}: {verdict} |"
        );
    }
    Ok(table)
}

fn measure(
    own: &mut Figures,
    key: &str,
    count: usize,
    mut work: impl FnMut() -> Result<()>,
) -> Result<()> {
    let timing = rounds(ROUNDS, || {
        let watch = Watch::start();
        work()?;
        Ok(watch.stop())
    })?;
    own.insert(key.to_owned(), timing.median_s * 1e9 / f64::from(u32::try_from(count)?));
    Ok(())
}

/// Offsets anywhere between two: the same numbers in every run.
fn draw(count: usize, start: i64, end: i64) -> Vec<i64> {
    let mut random = 3_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        start + i64::try_from(random >> 1).unwrap_or(0) % (end - start).max(1)
    };
    (0..count).map(|_| next()).collect()
}

/// A full index whose entries lie 50 to 90 offsets apart.
fn index(home: &Path, own: &mut Figures) -> Result<()> {
    let mut made = OffsetIndexBuilder::new(0, INDEX_BYTES)?;
    let (mut offset, mut position) = (0, 0);
    for gap in draw(INDEX_BYTES / 8, 50, 91) {
        offset += gap;
        made.append(offset, position)?;
        position += 1600;
    }
    let path = home.join("0.index");
    fs::write(&path, made.into_bytes())?;
    let options = IndexOptions { base_offset: 0, max_size_bytes: 0, is_writable: false };
    let index: IndexHandle<OffsetEntry> = IndexHandle::open(&Disk::new(), &path, &options)?;
    for (key, start) in [("index-random", 0), ("index-last", offset - 70_000)] {
        let offsets = draw(LOOKUPS, start, offset);
        measure(own, key, LOOKUPS, || {
            let seen = offsets.iter().fold(0, |seen, offset| {
                seen ^ index.lookup(*offset).map_or(0, |entry| entry.position)
            });
            black_box(seen);
            Ok(())
        })?;
    }
    Ok(())
}

/// A log with a sealed segment of 64 MiB and an active one. Gives the offset between them.
fn log(home: &Path, own: &mut Figures) -> Result<i64> {
    let segment = Segment::make(home, "orders", 64 << 20, SHAPE)?;
    let log = open(&segment.dir)?;
    let sealed_end = log.roll(NOW_MS)?;
    let mut supply = Supply::new(SHAPE)?;
    supply.number(sealed_end, Offsets::Given)?;
    log.append_as_follower(supply.bytes(), 0, NOW_MS)?;
    let end = log.log_end_offset();
    let batches = i64::try_from(supply.calls(1).len())?;
    let tail = end - (end - sealed_end) / batches * TAIL;
    for (key, start, end) in [("locate-random", 0, sealed_end), ("locate-tail", tail, end)] {
        let offsets = draw(LOCATES, start, end);
        measure(own, key, LOCATES, || {
            for offset in &offsets {
                black_box(log.locate(*offset, &OPTIONS)?);
            }
            Ok(())
        })?;
        let mut answers = Vec::new();
        measure(own, &format!("{key}-{MANY}"), LOCATES / MANY * MANY, || {
            for offsets in offsets.chunks_exact(MANY) {
                let requests: Vec<FetchRequest<'_>> = (offsets.iter())
                    .map(|offset| FetchRequest { log: &log, offset: *offset, options: OPTIONS })
                    .collect();
                locate_many(&requests, u64::MAX, &mut answers);
                if answers.iter().any(|answer| answer.is_err()) {
                    return Err("nothing was found".into());
                }
                answers.clear();
            }
            Ok(())
        })?;
    }
    log.close()?;
    let log = open_with(&segment.dir, LogMaps::Sealed)?;
    let offsets = draw(LOCATES, 0, sealed_end);
    measure(own, "locate-mapped", LOCATES, || {
        for offset in &offsets {
            black_box(log.locate(*offset, &OPTIONS)?);
        }
        Ok(())
    })?;
    log.close()?;
    append(home, own)?;
    Ok(sealed_end)
}

fn open(dir: &Path) -> Result<Log> {
    open_with(dir, LogMaps::Never)
}

fn open_with(dir: &Path, maps: LogMaps) -> Result<Log> {
    let open_files = OpenFiles::with_maps(100, maps);
    let options = OpenOptions { now_ms: NOW_MS, open_files, ..OpenOptions::default() };
    Ok(Log::open(Arc::new(Disk::new()), dir, LogConfig::default(), &options)?)
}

/// One batch again and again, copied anew, since the log writes its offsets into it.
fn append(home: &Path, own: &mut Figures) -> Result<()> {
    let mut supply = Supply::new(SHAPE)?;
    supply.number(0, Offsets::FromZero)?;
    let first = supply.calls(1).into_iter().next().ok_or("no batch")?;
    let batch = supply.bytes().get(first).ok_or("no batch")?.to_vec();
    fs::write(home.join("batch"), &batch)?;
    let log = open(&home.join("appended-0"))?;
    let (append, mut scratch) = (LeaderAppend::client(0, NOW_MS), AppendScratch::new());
    let mut sent = batch.clone();
    measure(own, "append", APPENDS, || {
        for _ in 0..APPENDS {
            sent.copy_from_slice(&batch);
            log.append_as_leader(&mut sent, &append, &mut scratch)?;
        }
        Ok(())
    })
}

/// What is to be uploaded of 100,000 segments of one log.
fn columns(own: &mut Figures) -> Result<()> {
    let table = uploads::table(1, SEGMENTS, SEGMENTS);
    let view = table.view(0).ok_or("a log")?;
    measure(own, "tier-range", 100_000, || {
        for _ in 0..100_000 {
            black_box(black_box(&view).candidates(0));
        }
        Ok(())
    })?;
    let (mut answers, mut found) = (Vec::new(), UploadList::default());
    measure(own, "tier-list", 1000, || {
        for _ in 0..1000 {
            list_uploads(table.views(), 0, &mut answers, &mut found);
            black_box(&found);
        }
        Ok(())
    })
}

/// Walks over the bytes of a segment, read into memory before.
fn walk(home: &Path, own: &mut Figures) -> Result<()> {
    let segment = Segment::make(home, "scanned", SCANNED_BYTES, SCANNED_SHAPE)?;
    let bytes = fs::read(&segment.log)?;
    let mebibytes = bytes.len() >> 20;
    measure(own, "scan", mebibytes, || walks::all(&bytes))?;
    measure(own, "rebuild", mebibytes, || walks::indexes(&bytes))?;
    measure(own, "plain", mebibytes, || limits::recover_bytes(&bytes).map(drop))
}

/// Compiles and runs the other side.
fn run_c(home: &Path, sealed_end: i64) -> Result<Figures> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let library = ["build", "--quiet", "--release", "--package", "siltstone-ffi"];
    run(Command::new(cargo).args(library).current_dir(&root))?;
    let libraries = std::env::current_exe()?.parent().ok_or("no folder")?.to_path_buf();
    let sources = root.join("benches/crossings");
    let cc = |output: PathBuf, source: &str| {
        let mut command = Command::new("cc");
        command.args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O2", "-Wall", "-Wextra", "-o"]);
        command.arg(output).arg(sources.join(source)).arg("-I").arg(root.join("include"));
        command
    };
    run(cc(home.join("libempty.so"), "empty.c").args(["-shared", "-fPIC"]))?;
    let program = home.join("crossings");
    let mut command = cc(program.clone(), "crossings.c");
    for folder in [home, &libraries] {
        let place = folder.display();
        command.arg(format!("-L{place}")).arg(format!("-Wl,-rpath,{place}"));
    }
    run(command.args(["-lempty", "-lsiltstone"]))?;
    let output = Command::new(program).arg(home).arg(sealed_end.to_string()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let figure = |line: &str| {
        let (name, nanoseconds) = line.split_once('\t')?;
        Some((name.to_owned(), nanoseconds.parse().ok()?))
    };
    Ok(told.lines().filter_map(figure).collect())
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
