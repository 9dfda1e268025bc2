//! The command line under test: found or built once, run with a time limit, its exit and peak
//! memory looked at.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use wait4::Wait4;

/// No call of a test needs longer on its small inputs.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What a call of the command line did.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code; `None` when a signal or the time limit ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether the time limit ended it.
    pub timed_out: bool,
    /// Peak resident memory in bytes.
    pub memory_bytes: u64,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Outcome {
    /// The first JSON object on standard output, or null.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut values = serde_json::Deserializer::from_str(&self.stdout).into_iter();
        values.next().and_then(Result::ok).unwrap_or(Value::Null)
    }

    /// Standard output, one JSON value a line.
    ///
    /// # Panics
    /// When a line is none.
    #[must_use]
    pub fn json_lines(&self) -> Vec<Value> {
        let value = |line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON: {error}: {line}"))
        };
        self.stdout.lines().map(value).collect()
    }

    /// Whether it ended by itself and without a panic.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        !self.timed_out && self.code.is_some_and(|code| code < 101)
    }
}

/// The `siltstone` binary: the one that `SILTSTONE_BIN` names, else built beside this test.
///
/// # Panics
///
/// When it cannot be built.
#[must_use]
pub fn siltstone() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("SILTSTONE_BIN") {
        Some(path) => PathBuf::from(path),
        None => build(),
    })
}

/// Runs `siltstone` with these arguments.
///
/// # Panics
///
/// When it cannot be started.
pub fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Outcome {
    let mut command = Command::new(siltstone());
    command.args(arguments);
    run_command(&mut command)
}

/// Runs a command to its end, or to the time limit.
///
/// # Panics
///
/// When it cannot be started.
pub fn run_command(command: &mut Command) -> Outcome {
    let mut stdout = tempfile::tempfile().expect("a temporary file");
    let mut stderr = tempfile::tempfile().expect("a temporary file");
    command.stdin(Stdio::null());
    command.stdout(stdout.try_clone().expect("a second descriptor"));
    command.stderr(stderr.try_clone().expect("a second descriptor"));
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let begin = Instant::now();
    let mut timed_out = false;
    let usage = loop {
        if let Some(usage) = child.try_wait4().expect("a child to wait for") {
            break usage;
        }
        if !timed_out && begin.elapsed() > TIME_LIMIT {
            timed_out = true;
            child.kill().expect("a child to end");
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    Outcome {
        code: usage.status.code(),
        signal: usage.status.signal(),
        timed_out,
        memory_bytes: usage.rusage.maxrss,
        stdout: read_back(&mut stdout),
        stderr: read_back(&mut stderr),
    }
}

fn read_back(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().expect("a file to read again");
    file.read_to_end(&mut bytes).expect("a file to read again");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn build() -> PathBuf {
    build_package(&["--package", "siltstone-cli", "--bin", "siltstone"]).join("siltstone")
}

/// Builds another package with the profile of the test itself, since tests cannot name what it
/// makes; the folder where that lies.
///
/// # Panics
///
/// When it cannot be built.
#[must_use]
pub fn build_package(arguments: &[&str]) -> PathBuf {
    let profile_dir = profile_dir();
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(["build", "--quiet"]).args(arguments);
    command.arg("--target-dir").arg(profile_dir.parent().expect("target"));
    if profile_dir.ends_with("release") {
        command.arg("--release");
    }
    let status = command.status().expect("cargo");
    assert!(status.success(), "{arguments:?} cannot be built: {status}");
    profile_dir
}

/// The folder where cargo puts what it builds with the profile of this test.
///
/// # Panics
///
/// When the test lies elsewhere than cargo puts it.
#[must_use]
pub fn profile_dir() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.ancestors().nth(2).expect("target/PROFILE/deps/TEST").to_path_buf()
}

/// Builds the C library with what is for tests alone; the folder where it lies. All tests ask for
/// the same one, so that none has it built again.
#[must_use]
pub fn build_library() -> PathBuf {
    build_package(&["--package", "siltstone-ffi", "--features", "siltstone-ffi/test"])
}

/// What a test needs from outside, or `None`, with a word about it, when it cannot be had and need
/// not be: without `SILTSTONE_CONFORMANCE` in the environment.
///
/// # Panics
///
/// When it is needed and cannot be had.
pub fn needed<T>(what: &str, found: Result<T, String>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(missing) => {
            let is_required = std::env::var_os("SILTSTONE_CONFORMANCE").is_some();
            assert!(!is_required, "{missing}");
            eprintln!("{what} is not tested: {missing}");
            None
        }
    }
}
