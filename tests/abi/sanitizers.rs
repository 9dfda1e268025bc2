//! The C programs by other compilers, and under tools that see what nobody checks for.
//!
//! The library itself is built as ever: what it does in memory of its own is Rust's to keep in
//! order. Here it is what goes over the border: memory of the host, objects, descriptors, threads.

use std::fs;
use std::process::Command;

use rayon::prelude::*;
use siltstone_tests::tool::needed;

use crate::programs::{Compiler, PROGRAMS, Program, SYSTEM};

const CLANG: Compiler = ("clang", "clang++");

/// Those in which threads meet.
const THREADED: [&str; 3] = ["threads.c", "ring.c", "index.c"];

/// Whether a program of this machine runs.
fn found(tool: &'static str) -> Option<()> {
    let output = Command::new(tool).arg("--version").output();
    needed(tool, output.map(drop).map_err(|error| format!("{tool} cannot be run: {error}")))
}

#[test]
fn clang_takes_the_programs_as_gcc_does() {
    if found("clang").is_none() {
        return;
    }
    for name in PROGRAMS {
        Program::compiled_by(CLANG, name, &[]).run_in_a_directory();
    }
    Program::compiled_by(CLANG, "unload.c", &[]);
}

#[test]
fn no_program_touches_what_is_not_its_own() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for name in PROGRAMS {
        Program::compiled_by(SYSTEM, name, &flags).run_in_a_directory();
    }
}

#[test]
fn no_threads_of_a_host_meet_unseen() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("suppressions");
    // What the library orders by its own atomics and futexes is not seen, so neither is looked at
    // what it calls in the C library. Its own orders of threads are tried by model checkers.
    fs::write(&file, "called_from_lib:libsiltstone.so\n").expect("written");
    let options = format!("suppressions={} exitcode=66", file.display());
    for name in THREADED {
        let program = Program::compiled_by(SYSTEM, name, &["-fsanitize=thread"]);
        program.run_under(&[], &[("TSAN_OPTIONS", &options), ("SILT_SLOWER", "4")]);
    }
}

/// Pointers into the middle of what they keep are Rust's normal ones (to what is counted, or with a
/// mark in their lowest bits), so what is only possibly lost is none.
const VALGRIND: [&str; 7] = [
    "valgrind",
    "--error-exitcode=9",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite,indirect",
    "--show-leak-kinds=definite,indirect",
    "--track-fds=yes",
    "--child-silent-after-fork=yes",
];

#[test]
fn valgrind_finds_no_leak_and_no_wrong_access() {
    if found("valgrind").is_none() {
        return;
    }
    PROGRAMS.par_iter().for_each(|name| {
        let program = Program::compiled_by(SYSTEM, name, &[]);
        // A backtrace of a panic that is asked for would take longer than all the rest.
        let environment = [("SILT_SLOWER", "50"), ("RUST_BACKTRACE", "0")];
        let told = program.run_under(&VALGRIND, &environment);
        let files = told.lines().find_map(|line| line.split_once("FILE DESCRIPTORS: "));
        let words: Vec<&str> = files.expect("what is open").1.split([' ', '(']).collect();
        let [open, standard] = [0, 3].map(|at| words.get(at).copied().unwrap_or_default());
        let count = |word: &str| word.parse::<usize>().expect("a number");
        let inherited = told.matches("<inherited from parent>").count();
        assert_eq!(count(open), count(standard) + inherited, "{name}: {told}");
    });
}
