//! A recovery that is killed and started again comes to the same end as one that is not.
//!
//! `SILTSTONE_KILL_ROUNDS` says how often each directory goes through it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use siltstone_tests::file_sums;
use siltstone_tests::kits::Kit;
use siltstone_tests::tool::{run, siltstone};

use crate::{has_clean_marker, recover_options};

/// Kills in a row before a recovery is left to end.
const KILLS: u64 = 3;
/// So many rounds must have met a recovery that still ran.
const MANY_ROUNDS: u64 = 50;

#[test]
fn a_killed_recovery_of_transactions_ends_the_same() {
    kill_and_start_again("txn", "bare");
}

#[test]
fn a_killed_recovery_with_cuts_ends_the_same() {
    kill_and_start_again("compact", "crc");
}

#[test]
fn a_killed_recovery_of_large_logs_ends_the_same() {
    kill_and_start_again("basic", "torn");
}

fn kill_and_start_again(kit: &str, state: &str) {
    let rounds = std::env::var("SILTSTONE_KILL_ROUNDS")
        .map_or(5, |rounds| rounds.parse::<u64>().expect("a number in SILTSTONE_KILL_ROUNDS"));
    let state = Kit::open(kit).state(state);
    let unpacked = state.unpack();
    // It may have to be built first, which is no part of a recovery.
    let _ = siltstone();
    let begin = Instant::now();
    let outcome = run(recover_options(&state, &unpacked));
    let first = begin.elapsed();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let want = file_sums(&unpacked.data());
    // How long a recovery takes as far as is known: the first one may have had to wait for a core.
    let mut whole = first;
    let mut killed = 0;
    for seed in 0..rounds {
        let unpacked = state.unpack();
        let data = unpacked.data();
        for kill in 0..KILLS {
            let delay = whole.mul_f64(fraction(seed * KILLS + kill));
            let was_running = start_and_kill(&recover_options(&state, &unpacked), delay);
            killed += u64::from(was_running);
            whole = whole.mul_f64(if was_running { 1.1 } else { 0.9 }).min(first);
            assert_no_marker_beside_unfinished_work(&data, &want, seed);
        }
        let outcome = run(recover_options(&state, &unpacked));
        assert_eq!(outcome.code, Some(0), "round {seed}: {outcome:?}");
        assert_same(&file_sums(&data), &want, seed);
    }
    println!("{}: {killed} killed in {rounds} rounds of {whole:?} to {first:?}", state.label());
    // A few rounds may miss; many that do have tested nothing.
    assert!(rounds < MANY_ROUNDS || killed > rounds / 4, "{killed} killed in {rounds} rounds");
}

/// Whether it still ran when it was killed.
fn start_and_kill(arguments: &[String], delay: Duration) -> bool {
    let mut command = Command::new(siltstone());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("siltstone");
    std::thread::sleep(delay);
    let was_running = child.try_wait().expect("a child to wait for").is_none();
    child.kill().expect("a child to end");
    child.wait().expect("a child to wait for");
    was_running
}

type Sums = [(String, u64, String)];

fn assert_no_marker_beside_unfinished_work(data: &Path, want: &Sums, seed: u64) {
    if has_clean_marker(data) {
        assert_same(&file_sums(data), want, seed);
    }
}

fn assert_same(got: &Sums, want: &Sums, seed: u64) {
    let only = |a: &Sums, b: &Sums| -> Vec<String> {
        a.iter().filter(|sum| !b.contains(sum)).map(|(name, ..)| name.clone()).collect()
    };
    let parted = (only(got, want), only(want, got));
    assert_eq!(parted, (Vec::new(), Vec::new()), "round {seed}: here and there");
}

/// Numbers from 0 to 1 that are spread evenly and the same each time.
fn fraction(n: u64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    (n as f64 * GOLDEN).fract()
}
