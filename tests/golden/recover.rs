//! Recovery leaves the files that Kafka's own loader leaves.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use siltstone::io::Disk;
use siltstone::log::recover::Silent;
use siltstone::log::recover::{Plan, RecoverOptions, analyse, commit, prepare};
use siltstone::segment::rebuild::IndexSettings;
use siltstone_tests::expect::Expectation;
use siltstone_tests::kits::{Kit, State};
use siltstone_tests::sha256;

use crate::for_each_kit;

for_each_kit!(recovered_files_are_kafkas);

/// Producers expire after this in every expectation.
const EXPIRATION_MS: i64 = 2_147_483_647;

fn recovered_files_are_kafkas(kit: &str) {
    let mut wrong = Vec::new();
    for state in Kit::open(kit).states() {
        let unpacked = state.unpack();
        for name in state.partitions() {
            let Some(expectation) = state.expectation(&name) else { continue };
            let dir = unpacked.data().join(&name);
            let plan = recover(&dir, &options(&state, &expectation));
            let label = format!("{} {name}", state.label());
            if let Some(refusal) = &plan.refusal {
                wrong.push(format!("{label}: refused: {}", refusal.reason));
                continue;
            }
            let Some(loaded) = expectation.loaded.ok() else { continue };
            let outcome = &plan.outcome;
            let ends =
                (outcome.log_start_offset, outcome.log_end_offset, outcome.last_stable_offset);
            let want = (
                loaded.log_start_offset,
                loaded.log_end_offset,
                loaded.last_stable_offset_at_hw_eq_leo,
            );
            if ends != want {
                wrong.push(format!("{label}: start, end and stable offset {ends:?}, not {want:?}"));
            }
            compare(&label, &state, &dir, &expectation, &mut wrong);
            let again = recover(&dir, &options(&state, &expectation));
            if !again.is_empty() {
                wrong.push(format!("{label}: a second recovery still does {:?}", again.actions));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn options(state: &State, expectation: &Expectation) -> RecoverOptions {
    let config =
        |name: &str| expectation.config.get(name).map(|value| value.parse::<u64>().expect(name));
    RecoverOptions {
        clean_shutdown: expectation.clean_shutdown_file,
        recovery_point: expectation.recovery_point_checkpoint.unwrap_or(0),
        log_start_offset: expectation.log_start_offset_checkpoint.unwrap_or(0),
        allow_loss: true,
        discard_lost: true,
        remote_storage: expectation
            .config
            .get("remote.storage.enable")
            .is_some_and(|v| v == "true"),
        index: IndexSettings {
            interval_bytes: config("index.interval.bytes").unwrap_or(4096),
            max_size_bytes: usize::try_from(config("segment.index.bytes").unwrap_or(10_485_760))
                .unwrap(),
        },
        now_ms: state.at_ms(),
        producer_expiration_ms: EXPIRATION_MS,
        ..RecoverOptions::default()
    }
}

fn recover(dir: &Path, options: &RecoverOptions) -> Plan {
    let disk = Disk::new();
    let mut plan = analyse(&disk, dir, options, &Silent).expect("a plan");
    prepare(&disk, &mut plan).expect("files beside");
    commit(&disk, &plan).expect("a new state");
    plan
}

fn compare(
    label: &str,
    state: &State,
    dir: &Path,
    expectation: &Expectation,
    wrong: &mut Vec<String>,
) {
    let loaded = expectation.loaded.ok().expect("a loaded log");
    let mut got: BTreeMap<String, Vec<u8>> = fs::read_dir(dir)
        .expect("the partition")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| {
            (
                entry.file_name().into_string().expect("a name"),
                fs::read(entry.path()).expect("a file"),
            )
        })
        .collect();
    for sum in &loaded.files_after_close {
        let Some(bytes) = got.remove(&sum.0) else {
            wrong.push(format!("{label}: {} is missing", sum.0));
            continue;
        };
        if sha256(&bytes) == sum.2 {
            continue;
        }
        let known = (sum.0.ends_with(".snapshot")
            && crate::state::has_kafkas_producers(&bytes, sum, loaded))
            || (state.name().starts_with("clean-badindex")
                && is_as_before(label, state, &sum.0, &bytes));
        if !known {
            wrong.push(format!(
                "{label}: {} has {} bytes that are not Kafka's {}",
                sum.0,
                bytes.len(),
                sum.1
            ));
        }
    }
    for name in got.keys() {
        wrong.push(format!("{label}: {name} should not be there"));
    }
}

/// Whether a repaired index is that of the state before it was damaged, or that which Kafka made of
/// none.
fn is_as_before(label: &str, state: &State, file: &str, bytes: &[u8]) -> bool {
    let partition = label.rsplit(' ').next().expect("a partition");
    let clean = state.kit().state("clean").read(&format!("data/{partition}/{file}"));
    let rebuilt =
        state.kit().state("clean-noindex").expectation(partition).and_then(|expectation| {
            let loaded = expectation.loaded.ok()?.files_after_close.clone();
            loaded.into_iter().find(|sum| sum.0 == file).map(|sum| sum.2)
        });
    clean.as_deref() == Some(bytes) || rebuilt.is_some_and(|sum| sum == sha256(bytes))
}
