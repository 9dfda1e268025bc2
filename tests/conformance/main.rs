//! Conformance: a real Kafka broker opens our directories, repairs nothing and serves the same
//! offsets; our readers read what it uploads, and it goes on with replicas that we
//! rebuilt.
//!
//! And the other way round: Kafka's clients and kcat work with the broker of `examples/broker-cpp`.
//!
//! Needs a JDK (17 or newer) and Maven, which fetches Kafka once into the target directory; for the
//! example CMake, a C++ compiler and kcat. `SILTSTONE_CONFORMANCE` says how much is run:
//!
//! | value | what is run |
//! |---|---|
//! | not set | the killed state of each kit; without those programs nothing, with a word about it |
//! | `required` | the same, but what is missing is a failure |
//! | `all` | every state of every kit; what is missing is a failure |

mod broker;
mod clients;
mod cluster;
mod example_broker;
mod example_clients;
mod example_nonsense;
mod example_requests;
mod example_transactions;
mod example_wire;
mod live;
mod remote_reader;
mod tiered_reads;
mod tiered_rebuild;

use std::sync::OnceLock;

use broker::{Kafka, Offsets};
use siltstone_tests::expect::Expectation;
use siltstone_tests::kits::{Kit, State, Unpacked};
use siltstone_tests::tool;

/// Kafka's jars, or `None` when they cannot be had and need not be.
fn kafka() -> Option<&'static Kafka> {
    static KAFKA: OnceLock<Option<Kafka>> = OnceLock::new();
    KAFKA.get_or_init(|| tool::needed("conformance", Kafka::fetch())).as_ref()
}

/// What must hold of a directory that is fit for a start.
fn assert_accepted(kafka: &Kafka, state: &State, unpacked: &Unpacked) {
    let label = state.label();
    let remote = Some(unpacked.remote()).filter(|remote| remote.is_dir());
    let topics = &state.kit().case()["topics"];
    let judgement = kafka.judge(&unpacked.data(), topics, remote.as_deref());
    assert_eq!(judgement.repairs, Vec::<String>::new(), "{label}: Kafka repaired");
    assert_eq!(judgement.changed, Vec::<String>::new(), "{label}: Kafka changed");
    for partition in state.partitions() {
        let expectation = state.expectation(&partition).expect("an expectation");
        let got = &judgement.offsets[&partition];
        let want = served(&expectation, remote.is_some());
        assert_eq!(got, &want, "{label} {partition}");
    }
}

/// The offsets that a broker serves after Kafka's own recovery.
fn served(expectation: &Expectation, with_remote: bool) -> Offsets {
    let Some(loaded) = expectation.loaded.ok() else {
        // Kafka cannot load the one partition that has too many index entries; nothing in its log
        // is wrong.
        let segments = &expectation.raw.segments;
        let first = segments.first().expect("a segment").base_offset;
        let last = segments.iter().rev().find_map(|segment| segment.batches.last());
        let end = last.expect("a batch").last_offset + 1;
        return Offsets {
            start: Some(first),
            local_start: Some(first),
            end: Some(end),
            last_stable: Some(end),
        };
    };
    // Without its remote tier a partition starts where its local log does.
    let start = match with_remote {
        true => loaded.log_start_offset,
        false => loaded.log_start_offset.max(loaded.local_log_start_offset),
    };
    Offsets {
        start: Some(start),
        local_start: Some(loaded.local_log_start_offset),
        end: Some(loaded.log_end_offset),
        last_stable: Some(loaded.last_stable_offset_at_hw_eq_leo),
    }
}

#[test]
fn a_directory_that_kafka_stopped_cleanly_is_accepted() {
    let Some(kafka) = kafka() else { return };
    let state = Kit::open("cluster").state("n2-clean");
    assert_accepted(kafka, &state, &state.unpack());
}

#[test]
fn a_directory_that_was_not_recovered_is_told_apart() {
    let Some(kafka) = kafka() else { return };
    let state = Kit::open("cluster").state("n2-unclean");
    let unpacked = state.unpack();
    let judgement = kafka.judge(&unpacked.data(), &state.kit().case()["topics"], None);
    assert_ne!(judgement.repairs, Vec::<String>::new());
    assert_ne!(judgement.changed, Vec::<String>::new());
}

/// One test for each kit, with the state that a kill left.
macro_rules! recovered_kits {
    ($($kit:ident: $killed:literal)*) => {
        mod kafka_finds_nothing_to_repair_after_recovery {
            $(#[test] fn $kit() { super::recover_and_start(stringify!($kit), $killed); })*
        }
    };
}

recovered_kits! {
    basic: "unclean"
    cluster: "n2-unclean"
    compact: "unclean"
    legacy: "bare"
    tiered: "unclean"
    tinyindex: "unclean"
    txn: "unclean"
}

fn recover_and_start(kit: &str, killed: &str) {
    let Some(kafka) = kafka() else { return };
    let kit = Kit::open(kit);
    let states = match std::env::var("SILTSTONE_CONFORMANCE").as_deref() {
        Ok("all") => kit.states(),
        _ => vec![kit.state(killed)],
    };
    for state in states {
        let unpacked = state.unpack();
        recover(&state, &unpacked);
        assert_accepted(kafka, &state, &unpacked);
    }
}

fn recover(state: &State, unpacked: &Unpacked) {
    let outcome = tool::run([
        "recover",
        "--topic-configs",
        &unpacked.case_file().display().to_string(),
        "--now-ms",
        &state.at_ms().to_string(),
        "--producer-id-expiration-ms",
        "2147483647",
        "--allow-loss",
        &unpacked.data().display().to_string(),
    ]);
    assert_eq!(outcome.code, Some(0), "{}: {outcome:?}", state.label());
}
