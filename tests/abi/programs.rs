//! C programs: compiled against the header, linked with the library, run.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use siltstone_tests::sources::root;
use siltstone_tests::tool::{build_library, run_command};

use crate::cases;

const FLAGS: [&str; 7] = [
    "-std=c99",
    "-D_POSIX_C_SOURCE=200809L",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wstrict-prototypes",
    "-Werror",
];

const CPP_FLAGS: [&str; 5] = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Those that get an empty directory and print that all is well.
pub const PROGRAMS: [&str; 14] = [
    "library.c",
    "log.c",
    "index.c",
    "engine.c",
    "ring.c",
    "state.c",
    "tier.c",
    "upload.c",
    "replica.c",
    "dir.c",
    "threads.c",
    "leaks.c",
    "wrapper.cpp",
    GENERATED,
];

/// The one that is made by the table of cases.
const GENERATED: &str = "cases.c";

/// The names of a compiler, for C and for C++.
pub type Compiler = (&'static str, &'static str);

/// The compiler of the system.
pub const SYSTEM: Compiler = ("cc", "c++");

/// The shared library, built once.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build_library().join("libsiltstone.so"))
}

/// A program that was compiled.
pub struct Program {
    dir: tempfile::TempDir,
}

impl Program {
    /// From a file of `tests/abi/c`.
    pub fn from_file(name: &str, flags: &[&str]) -> Self {
        Program::compiled_by(SYSTEM, name, flags)
    }

    /// The same by a certain compiler.
    pub fn compiled_by(compiler: Compiler, name: &str, flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let file = if name == GENERATED {
            let file = dir.path().join(name);
            fs::write(&file, cases::program()).expect("written");
            file
        } else {
            root().join("tests/abi/c").join(name)
        };
        compile(compiler, &file, dir.path(), flags);
        Program { dir }
    }

    /// From a text.
    pub fn from_text(name: &str, code: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join(format!("{name}.c"));
        fs::write(&file, code).expect("written");
        compile(SYSTEM, &file, dir.path(), &[]);
        Program { dir }
    }

    /// Runs it to its end, which must be a good one; what it printed.
    pub fn run(&self, arguments: &[&Path]) -> String {
        let mut command = Command::new(self.dir.path().join("program"));
        command.args(arguments);
        let outcome = run_command(&mut command);
        assert_eq!((outcome.code, outcome.signal), (Some(0), None), "{}", outcome.stderr);
        outcome.stdout
    }

    /// The same with an empty directory as its argument.
    pub fn run_in_a_directory(&self) {
        let home = tempfile::tempdir().expect("a folder");
        assert_eq!(self.run(&[home.path()]), "ok\n");
    }

    /// The same under a tool, with what that wants to have in the environment; what it told.
    pub fn run_under(&self, tool: &[&str], environment: &[(&str, &str)]) -> String {
        let home = tempfile::tempdir().expect("a folder");
        let program = self.dir.path().join("program");
        let mut words = tool.iter().map(OsStr::new).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().expect("the program at least"));
        command.args(words).arg(home.path()).envs(environment.iter().copied());
        let outcome = run_command(&mut command);
        let told = (outcome.code, outcome.signal, outcome.stdout.as_str());
        assert_eq!(told, (Some(0), None, "ok\n"), "{}", outcome.stderr);
        outcome.stderr
    }
}

fn compile(compiler: Compiler, file: &Path, dir: &Path, flags: &[&str]) {
    let folder = library().parent().expect("the folder of the library");
    let is_cpp = file.extension().is_some_and(|suffix| suffix == "cpp");
    let mut command = Command::new(if is_cpp { compiler.1 } else { compiler.0 });
    command.args(if is_cpp { CPP_FLAGS.as_slice() } else { FLAGS.as_slice() });
    command.args(["-g", "-o"]).arg(dir.join("program")).arg(file);
    command.arg("-I").arg(root().join("include")).arg("-L").arg(folder);
    command.arg("-I").arg(root().join("tests/abi/c"));
    command.arg(format!("-Wl,-rpath,{}", folder.display()));
    command.args(flags).args(["-lsiltstone", "-lpthread", "-ldl"]);
    let output = command.output().expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn versions_checksums_and_batches() {
    assert_eq!(Program::from_file("library.c", &[]).run(&[]), "ok\n");
}

#[test]
fn a_log_lives_and_takes_no_nonsense() {
    Program::from_file("log.c", &[]).run_in_a_directory();
}

#[test]
fn indexes_by_themselves_outlive_their_files_and_their_names() {
    Program::from_file("index.c", &[]).run_in_a_directory();
}

#[test]
fn engines_hold_logs_that_outlive_them() {
    Program::from_file("engine.c", &[]).run_in_a_directory();
}

#[test]
fn one_walk_gives_all_that_a_segment_tells() {
    Program::from_file("state.c", &[]).run_in_a_directory();
}

#[test]
fn rings_run_what_waits_when_they_are_polled() {
    Program::from_file("ring.c", &[]).run_in_a_directory();
}

#[test]
fn remote_storage_is_scanned_and_read() {
    Program::from_file("tier.c", &[]).run_in_a_directory();
}

#[test]
fn segments_are_uploaded_and_replicas_rebuilt() {
    Program::from_file("upload.c", &[]).run_in_a_directory();
}

#[test]
fn replicas_decide_by_the_rules_of_the_engine() {
    Program::from_file("replica.c", &[]).run_in_a_directory();
}

#[test]
fn directories_at_rest_are_looked_at_and_repaired() {
    Program::from_file("dir.c", &[]).run_in_a_directory();
}

// Not under the tools of sanitizers.rs, which see what is wrong with it.
#[test]
fn what_is_used_after_its_end_is_told() {
    Program::from_file("closed.c", &[]).run_in_a_directory();
}

#[test]
fn one_appends_and_many_read() {
    Program::from_file("threads.c", &[]).run_in_a_directory();
}

#[test]
fn the_cpp_wrapper_closes_what_it_owns_and_throws_what_fails() {
    Program::from_file("wrapper.cpp", &[]).run_in_a_directory();
}

#[test]
fn files_that_another_process_tears_give_statuses_and_no_signal() {
    for name in ["torn.c", "torn.cpp"] {
        let program = Program::from_file(name, &[]);
        let home = tempfile::tempdir().expect("a folder");
        // As often as SILT_TRIES says, which may be for longer than other programs have.
        let mut command = Command::new(program.dir.path().join("program"));
        let output = command.arg(home.path()).output().expect("the program");
        let told = (output.status.code(), String::from_utf8_lossy(&output.stdout));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(told, (Some(0), "ok\n".into()), "{name}: {errors}");
    }
}

#[test]
fn what_is_closed_leaves_nothing_open_or_mapped() {
    Program::from_file("leaks.c", &[]).run_in_a_directory();
}

#[test]
fn the_library_can_be_unloaded_and_leaves_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let program = Program::from_file("unload.c", &[]);
    assert_eq!(program.run(&[library(), home.path()]), "ok\n");
}
