//! A process that appends, rolls, flushes, cuts and deletes is killed at random moments, on a real
//! file system, and started again: what an append has answered is there, and nothing else is.
//!
//! `SILTSTONE_KILL_ROUNDS` says how often, for each of the two ways to speak to the disk.

use std::fs::{self, File, OpenOptions as Open};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use siltstone::io::{IoChoice, Storage, open_disk};
use siltstone::log::{
    AppendScratch, FetchOptions, Isolation, LeaderAppend, Log, LogConfig, OpenOptions,
    VerifyOptions, verify_partition,
};
use siltstone::problem::Severity;
use siltstone::record::validate::Batches;
use siltstone_tests::live::{NOW_MS, records};

/// Set for the process that is killed: the folder that it works in.
const HOME: &str = "SILTSTONE_TEST_KILLED_IN";
/// How many rounds there are to be.
const ROUNDS: &str = "SILTSTONE_KILL_ROUNDS";
/// More records than one append has.
const APPEND_MAX: i64 = 4;

#[test]
fn a_log_survives_kills_by_system_calls() {
    survive("a_log_survives_kills_by_system_calls", IoChoice::Syscalls);
}

#[test]
fn a_log_survives_kills_by_io_uring() {
    if open_disk(IoChoice::Uring).is_err() {
        // Rounds that were asked for are not left out without a word.
        assert!(std::env::var_os(ROUNDS).is_none(), "io_uring is not to be had here");
        eprintln!("kills by io_uring are not tested: it is not to be had here");
        return;
    }
    survive("a_log_survives_kills_by_io_uring", IoChoice::Uring);
}

fn survive(name: &str, io: IoChoice) {
    if let Some(home) = std::env::var_os(HOME) {
        write_until_killed(Path::new(&home), io);
    }
    let rounds = std::env::var(ROUNDS)
        .map_or(10, |rounds| rounds.parse::<u64>().expect("a number in SILTSTONE_KILL_ROUNDS"));
    let home = tempfile::tempdir().expect("a folder");
    let mut seen = Seen::default();
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().expect("this test"));
        child.args(["--exact", &format!("killed::{name}"), "--nocapture"]);
        child.env(HOME, home.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = child.spawn().expect("another process");
        std::thread::sleep(Duration::from_micros(20_000 + random(round) % 100_000));
        let ended = child.try_wait().expect("a child to wait for");
        assert!(ended.is_none(), "round {round}: the writer ended by itself: {ended:?}");
        child.kill().expect("a child to end");
        child.wait().expect("a child to wait for");
        seen.check(home.path(), io, round);
    }
    println!("{name}: {rounds} kills, {} appends, {} cuts", seen.appends, seen.cuts);
    assert!(rounds < 10 || seen.appends > rounds, "{} appends", seen.appends);
}

fn random(seed: u64) -> u64 {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state ^= state >> 31;
    state.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 17
}

fn open(home: &Path, io: IoChoice) -> Log {
    let storage: Arc<dyn Storage> = open_disk(io).expect("a disk").into();
    let point = fs::read_to_string(home.join("point")).unwrap_or_default();
    let options = OpenOptions {
        clean_shutdown: false,
        recovery_point: point.trim().parse().unwrap_or(0),
        now_ms: NOW_MS,
        ..OpenOptions::default()
    };
    let config = LogConfig {
        segment_bytes: 3000,
        segment_index_bytes: 4096,
        index_interval_bytes: 200,
        retention_bytes: 20_000,
        retention_ms: -1,
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    };
    let log = Log::open(storage, &home.join("orders-0"), config, &options).expect("a log");
    log.update_high_watermark(log.log_end_offset()).expect("a high watermark");
    log
}

/// Notes what is about to be done, or what was: by one call, so that no half of a line is there.
fn note(notes: &mut File, what: &str, offset: i64) {
    notes.write_all(format!("{what} {offset}\n").as_bytes()).expect("room");
}

fn write_until_killed(home: &Path, io: IoChoice) -> ! {
    let log = open(home, io);
    let mut notes = Open::new().append(true).create(true).open(home.join("notes")).expect("a file");
    note(&mut notes, "end", log.log_end_offset());
    let mut scratch = AppendScratch::new();
    for step in u64::try_from(log.log_end_offset()).expect("an offset").. {
        let end = log.log_end_offset();
        match random(step) % 40 {
            0 => drop(log.roll(NOW_MS).expect("a new segment")),
            1..4 => flush(home, &log),
            4 if end > 200 => {
                let to = end - 60;
                note(&mut notes, "cut", to);
                // The recovery point may not lie behind the end, and goes back first.
                let point = log.recovery_point_to_save().min(to);
                save_point(home, point);
                log.truncate_to(to, NOW_MS).expect("a cut");
                note(&mut notes, "end", log.log_end_offset());
            }
            5 => {
                log.delete_old_segments(NOW_MS).expect("retention");
                log.delete_due_files(NOW_MS).expect("deletions");
            }
            _ => {
                let count = 1 + usize::try_from(random(step ^ 7) % 4).expect("a small number");
                let mut bytes = records(count).value_bytes(size_of_value(end)).build();
                let append = LeaderAppend::client(0, NOW_MS);
                log.append_as_leader(&mut bytes, &append, &mut scratch).expect("an append");
                log.update_high_watermark(log.log_end_offset()).expect("a high watermark");
                note(&mut notes, "end", log.log_end_offset());
            }
        }
    }
    unreachable!("more steps than there are numbers")
}

/// Which says of a batch at which offset it was appended.
fn size_of_value(offset: i64) -> usize {
    1 + usize::try_from(offset % 90).expect("a small number")
}

fn flush(home: &Path, log: &Log) {
    log.flush(false, NOW_MS).expect("a flush");
    save_point(home, log.recovery_point_to_save());
}

fn save_point(home: &Path, point: i64) {
    let beside = home.join("point.tmp");
    fs::write(&beside, point.to_string()).expect("room");
    fs::rename(&beside, home.join("point")).expect("a name");
}

/// What the kills came upon.
#[derive(Debug, Default)]
struct Seen {
    appends: u64,
    cuts: u64,
    notes: usize,
}

impl Seen {
    /// The log is what the notes of the killed process say.
    fn check(&mut self, home: &Path, io: IoChoice, round: u64) {
        let notes = fs::read_to_string(home.join("notes")).unwrap_or_default();
        let notes: Vec<(&str, i64)> = notes
            .lines()
            .map(|line| {
                let (what, offset) = line.split_once(' ').expect("a note");
                (what, offset.parse().expect("an offset"))
            })
            .collect();
        let new = notes.get(self.notes..).expect("notes only grow");
        self.cuts += u64::try_from(new.iter().filter(|note| note.0 == "cut").count()).unwrap();
        self.appends += u64::try_from(new.len()).unwrap();
        self.notes = notes.len();
        let log = open(home, io);
        let end = log.log_end_offset();
        match notes.as_slice() {
            [] => assert_eq!(end, 0, "round {round}"),
            // Done, or not yet; a batch that holds the offset goes whole.
            [.., (_, before), ("cut", to)] => {
                let range = to - APPEND_MAX..=*before;
                assert!(range.contains(&end), "round {round}: cut from {before} to {to}: {end}");
            }
            // One append may have been done and not noted. A cut within a batch left a gap that no
            // file tells of.
            [.., (_, told)] => {
                let is_behind_a_cut =
                    matches!(notes.as_slice(), [.., ("cut", to), ("end", now)] if to == now);
                let least = if is_behind_a_cut { told - APPEND_MAX } else { *told };
                let range = least..=told + APPEND_MAX;
                assert!(range.contains(&end), "round {round}: {told} was told, and {end} is there");
            }
        }
        check_content(&log, round);
        log.close().expect("a clean stop");
        let storage = open_disk(io).expect("a disk");
        let options = VerifyOptions { now_ms: NOW_MS, ..VerifyOptions::default() };
        let report = verify_partition(&*storage, &home.join("orders-0"), &options).expect("a look");
        let wrong: Vec<_> =
            report.problems.iter().filter(|one| one.severity > Severity::Notice).collect();
        assert!(wrong.is_empty(), "round {round}: {wrong:?}");
    }
}

/// Every batch stands where it was appended.
fn check_content(log: &Log, round: u64) {
    let options =
        FetchOptions { max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_message: true };
    let mut offset = log.log_start_offset();
    while offset < log.log_end_offset() {
        let fetched = log.read(offset, &options).expect("bytes");
        if fetched.bytes.is_empty() {
            break;
        }
        for batch in Batches::new(&fetched.bytes) {
            let batch = batch.expect("a batch");
            let (base, count) = (batch.header.base_offset, batch.header.last_offset_delta + 1);
            let count = usize::try_from(count).expect("records");
            let wanted = records(count).at(base).epoch(0).value_bytes(size_of_value(base)).build();
            assert_eq!(batch.bytes, wanted, "round {round}: the batch at {base}");
            offset = batch.header.next_offset();
        }
    }
}
