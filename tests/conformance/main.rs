//! Conformance: a real Kafka broker opens our directories, repairs nothing and serves the same offsets.
//!
//! Needs a JDK (17 or newer) and Maven, which fetches Kafka once into the target directory. Without them nothing is tested, with
//! a word about it, unless `SILTSTONE_CONFORMANCE` is set: then what is missing is a failure.

mod broker;

use std::sync::OnceLock;

use broker::Kafka;
use siltstone_tests::kits::{Kit, State};

/// Kafka's jars, or `None` when they cannot be had and need not be.
fn kafka() -> Option<&'static Kafka> {
    static KAFKA: OnceLock<Option<Kafka>> = OnceLock::new();
    let fetch = || match Kafka::fetch() {
        Ok(kafka) => Some(kafka),
        Err(missing) if std::env::var_os("SILTSTONE_CONFORMANCE").is_none() => {
            eprintln!("conformance is not tested: {missing}");
            None
        }
        Err(missing) => panic!("{missing}"),
    };
    KAFKA.get_or_init(fetch).as_ref()
}

/// What must hold of a directory that was made fit for a start.
fn assert_accepted(kafka: &Kafka, state: &State, unpacked: &siltstone_tests::kits::Unpacked) {
    let label = state.label();
    let remote = Some(unpacked.remote()).filter(|remote| remote.is_dir());
    let topics = &state.kit().case()["topics"];
    let judgement = kafka.judge(&unpacked.data(), topics, remote.as_deref());
    assert_eq!(judgement.repairs, Vec::<String>::new(), "{label}: Kafka repaired");
    assert_eq!(judgement.changed, Vec::<String>::new(), "{label}: Kafka changed");
    for partition in state.partitions() {
        let expectation = state.expectation(&partition).expect("an expectation");
        let offsets = &judgement.offsets[&partition];
        let label = format!("{label} {partition}: {offsets:?}");
        let Some(loaded) = expectation.loaded.ok() else { continue };
        assert_eq!(offsets.end, Some(loaded.log_end_offset), "{label}");
        assert_eq!(offsets.local_start, Some(loaded.local_log_start_offset), "{label}");
        // Without its remote tier a partition starts where its local log does.
        let start = match remote {
            Some(_) => loaded.log_start_offset,
            None => loaded.log_start_offset.max(loaded.local_log_start_offset),
        };
        assert_eq!(offsets.start, Some(start), "{label}");
        let stable = loaded.last_stable_offset_at_hw_eq_leo;
        assert_eq!(offsets.last_stable, Some(stable), "{label}");
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
