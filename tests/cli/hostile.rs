//! Input that nobody writes on purpose: sizes that lie, thousands of segments, things that are no
//! files, files that may not be read or written, files that vanish.
//!
//! Always the same is asked: it ends, it says what could not be done and why, and it does the rest.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use siltstone::io::checksum::crc32c;
use siltstone_tests::file_sums;
use siltstone_tests::logs::{LogBuilder, log_name};
use siltstone_tests::tool::{self, Outcome};
use tempfile::TempDir;

use crate::has_clean_marker;

/// Address space that is enough for everything: no file's size may ask for more.
const MEMORY_LIMIT: &str = "ulimit -v 700000";
/// `nobody` on Debian and elsewhere.
const NOBODY: u32 = 65534;
/// The verbs that read one directory.
const READERS: [&str; 5] = ["verify", "ls", "stat", "dump", "txns"];

fn log() -> LogBuilder {
    LogBuilder::new().batch(2).txn(1, 2).abort(1).roll().batch(3).roll().batch(1)
}

/// A log directory of a killed broker, with the partitions `bad-0` and `good-0` and all their
/// small files.
struct Directory {
    home: TempDir,
}

impl Directory {
    fn new() -> Self {
        let directory = Self { home: TempDir::with_prefix("siltstone-hostile-").unwrap() };
        // Others than the owner are to get in.
        fs::set_permissions(directory.home.path(), Permissions::from_mode(0o755)).unwrap();
        for name in ["bad-0", "good-0"] {
            log().write_into(&directory.at(name));
        }
        let outcome = tool::run(["recover".as_ref(), directory.path().as_os_str()]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        fs::remove_file(directory.at(".kafka_cleanshutdown")).unwrap();
        fs::remove_file(directory.at("recovery-point-offset-checkpoint")).unwrap();
        directory
    }

    fn path(&self) -> PathBuf {
        self.home.path().join("logs")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

/// A command that is limited by the shell first.
fn limited(limit: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{limit} && exec \"$0\" \"$@\"")).arg(tool::siltstone());
    command
}

fn run(mut command: Command, verb: &str, paths: &[&Path]) -> Outcome {
    command.args([verb, "--json"]).args(paths);
    let outcome = tool::run_command(&mut command);
    assert!(outcome.is_healthy() && outcome.code <= Some(2), "{verb} {paths:?}: {outcome:?}");
    outcome
}

/// The line about a partition.
fn partition(outcome: &Outcome, name: &str) -> Value {
    let is_meant = |line: &Value| {
        let path = line["path"].as_str().unwrap_or_default();
        line["type"] == "partition" && path.ends_with(name)
    };
    let found = outcome.json_lines().into_iter().find(is_meant);
    found.unwrap_or_else(|| panic!("nothing of {name}: {outcome:?}"))
}

/// The partition beside the one in trouble is as it should be.
fn assert_the_rest_is_done(verb: &str, outcome: &Outcome) {
    match verb {
        "verify" => assert_eq!(partition(outcome, "good-0")["verdict"], "ok", "{outcome:?}"),
        "recover" => assert_eq!(partition(outcome, "good-0")["result"], "sound", "{outcome:?}"),
        _ => assert!(outcome.stdout.contains("good-0"), "{verb}: {outcome:?}"),
    }
}

/// What is not as it should be is told with its name.
fn assert_named(outcome: &Outcome, name: &str) {
    let told = format!("{}{}", outcome.stdout, outcome.stderr);
    let line = told.lines().find(|line| line.contains(name));
    assert!(outcome.code == Some(0) || line.is_some(), "{name} is not named: {outcome:?}");
}

#[test]
fn no_size_of_a_file_asks_for_memory() {
    for (name, size_bytes) in [
        ("bad-0/00000000000000000005.index", (1_u64 << 31) - 8),
        ("bad-0/00000000000000000005.timeindex", (1 << 31) - 8),
        ("bad-0/00000000000000000005.txnindex", (1 << 31) - 8),
        ("bad-0/00000000000000000008.snapshot", 1 << 40),
        ("bad-0/leader-epoch-checkpoint", 1 << 40),
        ("bad-0/partition.metadata", 1 << 40),
        ("recovery-point-offset-checkpoint", 1 << 40),
        ("log-start-offset-checkpoint", 1 << 40),
        ("meta.properties", 1 << 40),
        (".kafka_cleanshutdown", 1 << 40),
    ] {
        let directory = Directory::new();
        let path = directory.at(name);
        let file = File::options().create(true).write(true).truncate(true).open(path).unwrap();
        file.set_len(size_bytes).unwrap();
        let is_small_file_of_all = !name.contains('/');
        for verb in READERS.into_iter().chain(["recover"]) {
            let outcome = run(limited(MEMORY_LIMIT), verb, &[&directory.path()]);
            let file = name.split('/').next_back().unwrap();
            assert_named(&outcome, file);
            // Without its checkpoints nothing of a directory can be recovered.
            if !(is_small_file_of_all && verb == "recover" && outcome.code == Some(2)) {
                assert_the_rest_is_done(verb, &outcome);
            }
        }
    }
}

#[test]
fn a_log_that_is_a_hole_to_the_end_is_cut() {
    let directory = Directory::new();
    let log = directory.at("bad-0").join(log_name(8));
    let size_bytes = fs::metadata(&log).unwrap().len();
    let file = File::options().write(true).open(&log).unwrap();
    file.set_len(1 << 28).unwrap();
    let outcome = run(limited(MEMORY_LIMIT), "recover", &[&directory.path()]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(fs::metadata(&log).unwrap().len(), size_bytes);
    assert_the_rest_is_done("recover", &outcome);
    // Windows of maps count, one for each thread: what recovery may take, whatever there is.
    assert!(outcome.memory_bytes < 256 << 20, "{}", outcome.memory_bytes);
}

#[test]
fn no_count_or_length_in_a_batch_asks_for_memory() {
    // Of the batch: its size, how many records; of the record: its length, that of key and value.
    const SIZE_FIELD: usize = 8;
    const COUNT_FIELD: usize = 57;
    const RECORD: usize = 61;
    const LARGEST: [u8; 5] = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    let whole = LogBuilder::new().value(&[7; 40]).batch(1).newest().to_vec();
    let lies = |at: usize, lie: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + lie.len()].copy_from_slice(lie);
        let sum = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&sum.to_be_bytes());
        bytes
    };
    for (what, bytes) in [
        ("size", lies(SIZE_FIELD, &i32::MAX.to_be_bytes())),
        ("no size", lies(SIZE_FIELD, &i32::MIN.to_be_bytes())),
        ("count", lies(COUNT_FIELD, &i32::MAX.to_be_bytes())),
        ("no count", lies(COUNT_FIELD, &i32::MIN.to_be_bytes())),
        ("length of a record", lies(RECORD, &LARGEST)),
        ("length of a key", lies(RECORD + 4, &LARGEST)),
        ("length of a value", lies(RECORD + 8, &LARGEST)),
    ] {
        let directory = Directory::new();
        fs::write(directory.at("bad-0").join(log_name(0)), bytes).unwrap();
        for verb in READERS.into_iter().chain(["recover"]) {
            let outcome = run(limited(MEMORY_LIMIT), verb, &[&directory.path()]);
            assert_the_rest_is_done(verb, &outcome);
            assert!(verb != "verify" || outcome.code == Some(1), "{what}: {outcome:?}");
        }
    }
}

#[test]
fn ten_thousand_segments_need_few_descriptors() {
    // Each has a log, two indexes and a snapshot.
    const SEGMENTS: i64 = 10_000;
    let home = TempDir::with_prefix("siltstone-hostile-").unwrap();
    let log = (0..SEGMENTS).fold(LogBuilder::new(), |log, _| log.roll().batch(1));
    let dir = home.path().join("logs/many-0");
    log.write_into(&dir);
    let logs = dir.parent().unwrap();
    for verb in ["recover", "verify", "ls", "stat", "txns", "dump"] {
        let outcome = run(limited("ulimit -n 256"), verb, &[logs]);
        assert_eq!(outcome.code, Some(0), "{verb}: {}", outcome.stderr);
        assert!(outcome.memory_bytes < 256 << 20, "{verb}: {}", outcome.memory_bytes);
        if matches!(verb, "recover" | "verify") {
            assert_eq!(partition(&outcome, "many-0")["log_end_offset"], SEGMENTS, "{verb}");
        }
    }
}

/// What stands where a file should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    Folder,
    Pipe,
    DanglingLink,
    Circle,
}

impl Thing {
    const ALL: [Thing; 4] = [Thing::Folder, Thing::Pipe, Thing::DanglingLink, Thing::Circle];

    fn put(self, path: &Path) {
        fs::remove_file(path).ok();
        match self {
            Thing::Folder => fs::create_dir(path).unwrap(),
            Thing::Pipe => {
                assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
            }
            Thing::DanglingLink => symlink("nowhere", path).unwrap(),
            Thing::Circle => symlink(path, path).unwrap(),
        }
    }
}

#[test]
fn what_stands_where_a_file_should_is_named_and_the_rest_is_done() {
    for name in [
        "00000000000000000005.log",
        "00000000000000000005.index",
        "00000000000000000005.timeindex",
        "00000000000000000000.txnindex",
        "00000000000000000005.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ] {
        for thing in Thing::ALL {
            let directory = Directory::new();
            let bad = directory.at("bad-0");
            thing.put(&bad.join(name));
            // Without the log, it is its other files that are told.
            let stem = name.split('.').next().unwrap();
            for verb in READERS {
                let outcome = run(limited(MEMORY_LIMIT), verb, &[&directory.path()]);
                assert_named(&outcome, stem);
                assert_the_rest_is_done(verb, &outcome);
                // Nobody can read a pipe or a link to itself.
                let is_unreadable = matches!(thing, Thing::Pipe | Thing::Circle);
                if is_unreadable && verb == "verify" {
                    assert_eq!(outcome.code, Some(2), "{thing:?} {name}: {outcome:?}");
                }
            }
            let dry_run = [Path::new("--dry-run"), &directory.path()];
            let dry_run = run(limited(MEMORY_LIMIT), "recover", &dry_run);
            let logs = || fs::read(bad.join(log_name(0))).unwrap();
            let before = logs();
            let outcome = run(limited(MEMORY_LIMIT), "recover", &[&directory.path()]);
            assert_named(&outcome, stem);
            assert_the_rest_is_done("recover", &outcome);
            assert_eq!(has_clean_marker(&directory.path()), outcome.code == Some(0));
            assert_eq!(logs(), before, "{thing:?} {name}");
            assert_ne!(outcome.code, Some(0), "{thing:?} {name}: {outcome:?}");
            assert_eq!(dry_run.code, outcome.code, "a dry run promised something else");
        }
    }
}

#[test]
fn what_stands_where_a_checkpoint_should_is_named() {
    for name in ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", ".lock"] {
        for thing in Thing::ALL {
            let directory = Directory::new();
            thing.put(&directory.at(name));
            for verb in READERS {
                let outcome = run(limited(MEMORY_LIMIT), verb, &[&directory.path()]);
                assert_named(&outcome, name);
                assert_the_rest_is_done(verb, &outcome);
            }
            let outcome = run(limited(MEMORY_LIMIT), "recover", &[&directory.path()]);
            assert_named(&outcome, name);
            assert_eq!(has_clean_marker(&directory.path()), outcome.code == Some(0));
        }
    }
}

/// Runs as somebody who is not root, to whom the directory belongs; root may do everything.
struct Somebody {
    binary: PathBuf,
    is_root: bool,
}

impl Somebody {
    fn owning(directory: &Directory) -> Self {
        let is_root = fs::metadata(directory.home.path()).unwrap().uid() == 0;
        if !is_root {
            return Self { binary: tool::siltstone().to_path_buf(), is_root };
        }
        // Where this was built, others may not be let in.
        let binary = directory.home.path().join("siltstone");
        fs::copy(tool::siltstone(), &binary).unwrap();
        let mut waiting = vec![directory.path()];
        while let Some(path) = waiting.pop() {
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            if path.is_dir() {
                waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        Self { binary, is_root }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.current_dir("/");
        command
    }
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_may_not_be_read_is_told_and_the_rest_is_done() {
    for name in ["bad-0", "bad-0/00000000000000000008.log", "bad-0/00000000000000000005.index"] {
        let directory = Directory::new();
        let somebody = Somebody::owning(&directory);
        allow(&directory.at(name), 0);
        for verb in ["verify", "recover"] {
            let outcome = run(somebody.command(), verb, &[&directory.path()]);
            assert_eq!(outcome.code, Some(2), "{verb} {name}: {outcome:?}");
            assert_named(&outcome, name.split('/').next_back().unwrap());
            let told = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(told.contains("Permission denied"), "{verb} {name}: {outcome:?}");
            assert_the_rest_is_done(verb, &outcome);
            assert!(!has_clean_marker(&directory.path()), "{verb} {name}");
        }
        allow(&directory.at(name), 0o755);
    }
}

#[test]
fn what_may_not_be_written_is_told_and_left_alone() {
    let directory = Directory::new();
    let somebody = Somebody::owning(&directory);
    let bad = directory.at("bad-0");
    for name in ["00000000000000000005.index", "leader-epoch-checkpoint"] {
        fs::remove_file(bad.join(name)).unwrap();
    }
    let before = file_sums(&bad);
    allow(&bad, 0o555);
    let outcome = run(somebody.command(), "recover", &[&directory.path()]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert_named(&outcome, "bad-0");
    assert!(format!("{outcome:?}").contains("Permission denied"), "{outcome:?}");
    assert_the_rest_is_done("recover", &outcome);
    assert!(!has_clean_marker(&directory.path()));
    assert_eq!(file_sums(&bad), before);
    allow(&bad, 0o755);
    let outcome = run(somebody.command(), "recover", &[&directory.path()]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

#[test]
fn read_only_media_are_read_and_not_recovered() {
    let directory = Directory::new();
    let other = Directory::new();
    let somebody = Somebody::owning(&directory);
    Somebody::owning(&other);
    for name in [".lock", "log-start-offset-checkpoint"] {
        fs::remove_file(directory.at(name)).ok();
    }
    let before = file_sums(&directory.path());
    let folders = [directory.at("bad-0"), directory.at("good-0"), directory.path()];
    for folder in &folders {
        allow(folder, 0o555);
    }
    for verb in READERS {
        let outcome = run(somebody.command(), verb, &[&directory.path()]);
        assert_eq!(outcome.code, Some(0), "{verb}: {outcome:?}");
        assert_the_rest_is_done(verb, &outcome);
    }
    let outcome = run(somebody.command(), "recover", &[&directory.path(), &other.path()]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert_named(&outcome, &directory.path().display().to_string());
    assert!(outcome.stderr.contains("Permission denied"), "{outcome:?}");
    assert!(has_clean_marker(&other.path()), "the other directory is not done: {outcome:?}");
    assert_eq!(file_sums(&directory.path()), before);
    for folder in &folders {
        allow(folder, 0o755);
    }
}

#[test]
fn files_that_come_and_go_while_they_are_read_stop_nobody() {
    const ROUNDS: usize = 12;
    let directory = Directory::new();
    let bad = directory.at("bad-0");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for (name, bytes) in log().files() {
                    fs::remove_file(bad.join(&name)).ok();
                    let moved = bad.with_file_name("bad-0.moved");
                    fs::rename(&bad, &moved).unwrap();
                    fs::rename(&moved, &bad).unwrap();
                    fs::write(bad.join(&name), bytes).unwrap();
                }
            }
        });
        let calls = READERS.into_iter().cycle().take(ROUNDS * READERS.len());
        let outcomes: Vec<(&str, Outcome)> = calls
            .map(|verb| (verb, run(limited(MEMORY_LIMIT), verb, &[&directory.path()])))
            .collect();
        is_over.store(true, Ordering::Relaxed);
        for (verb, outcome) in outcomes {
            assert_the_rest_is_done(verb, &outcome);
            if outcome.code == Some(2) {
                assert_named(&outcome, "bad-0");
            }
        }
    });
}
