//! A log that is opened on what Kafka left answers as Kafka's log does: offsets, reads, timestamps,
//! aborted transactions, epochs, producers; and closing it leaves the files that Kafka leaves.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use siltstone::Kind;
use siltstone::io::Disk;
use siltstone::log::{FetchOptions, Isolation, Log, LogConfig, OpenOptions};
use siltstone::state::ProducerStateConfig;
use siltstone_tests::expect::{Expectation, Loaded};
use siltstone_tests::kits::{Kit, State};
use siltstone_tests::sha256;

use crate::for_each_kit;
use crate::state::has_kafkas_producers;

for_each_kit!(an_opened_log_answers_as_kafkas);

fn an_opened_log_answers_as_kafkas(kit: &str) {
    let mut wrong = Vec::new();
    for state in Kit::open(kit).states() {
        let unpacked = state.unpack();
        for name in state.partitions() {
            let Some(expectation) = state.expectation(&name) else { continue };
            let Some(loaded) = expectation.loaded.ok() else { continue };
            let label = format!("{} {name}", state.label());
            let dir = unpacked.data().join(&name);
            let log = open(&state, &dir, &expectation);
            let before = wrong.len();
            offsets(&log, loaded, &mut wrong);
            reads(&log, loaded, &mut wrong);
            timestamps(&log, loaded, &mut wrong);
            epochs(&log, loaded, &mut wrong);
            segments(&log, loaded, &mut wrong);
            log.close().expect("a clean stop");
            files(&state, &name, &dir, loaded, &mut wrong);
            for line in &mut wrong[before..] {
                *line = format!("{label}: {line}");
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The settings of a partition's topic.
pub(crate) fn config(expectation: &Expectation) -> LogConfig {
    let number =
        |name: &str| expectation.config.get(name).map(|value| value.parse::<u32>().expect(name));
    let defaults = LogConfig::default();
    LogConfig {
        segment_bytes: number("internal.segment.bytes").unwrap_or(defaults.segment_bytes),
        segment_index_bytes: number("segment.index.bytes").unwrap_or(defaults.segment_index_bytes),
        index_interval_bytes: number("index.interval.bytes")
            .unwrap_or(defaults.index_interval_bytes),
        remote_storage: expectation
            .config
            .get("remote.storage.enable")
            .is_some_and(|v| v == "true"),
        ..defaults
    }
}

pub(crate) fn open(state: &State, dir: &Path, expectation: &Expectation) -> Log {
    let options = OpenOptions {
        clean_shutdown: expectation.clean_shutdown_file,
        recovery_point: expectation.recovery_point_checkpoint.unwrap_or(0),
        log_start_offset: expectation.log_start_offset_checkpoint.unwrap_or(0),
        producers: ProducerStateConfig {
            producer_id_expiration_ms: i64::from(i32::MAX),
            ..ProducerStateConfig::default()
        },
        now_ms: state.at_ms(),
        ..OpenOptions::default()
    };
    Log::open(Arc::new(Disk::new()), dir, config(expectation), &options).expect("a log")
}

/// Adds a line where the two are not the same.
fn same(what: &str, got: &Value, want: &Value, wrong: &mut Vec<String>) {
    if got != want {
        wrong.push(format!("{what}: {got}, not {want}"));
    }
}

fn offsets(log: &Log, loaded: &Loaded, wrong: &mut Vec<String>) {
    let got = json!([
        log.log_start_offset(),
        log.local_log_start_offset(),
        log.log_end_offset(),
        log.high_watermark(),
    ]);
    let want = json!([
        loaded.log_start_offset,
        loaded.local_log_start_offset,
        loaded.log_end_offset,
        loaded.log_start_offset,
    ]);
    same("start, local start, end, high watermark", &got, &want, wrong);
    // What is made durable by recovery is known to be so.
    if log.recovery_point() != loaded.recovery_point {
        wrong.push(format!(
            "recovery point {}, not {}",
            log.recovery_point(),
            loaded.recovery_point
        ));
    }
    log.update_high_watermark(log.log_end_offset()).expect("a high watermark");
    let got = json!([log.last_stable_offset(), log.first_unstable_offset().expect("a log")]);
    let want = json!([loaded.last_stable_offset_at_hw_eq_leo, loaded.first_unstable_offset]);
    same("last stable and first unstable offset", &got, &want, wrong);
}

fn reads(log: &Log, loaded: &Loaded, wrong: &mut Vec<String>) {
    for row in &loaded.log_read {
        let isolation = match row[2].as_str().expect("an isolation") {
            "LOG_END" => Isolation::LogEnd,
            "TXN_COMMITTED" => Isolation::Committed,
            other => panic!("isolation {other}"),
        };
        let max_bytes = u32::try_from(row[1].as_u64().expect("a size")).expect("a size");
        let options = FetchOptions { max_bytes, isolation, min_one_message: true };
        let offset = row[0].as_i64().expect("an offset");
        let what = format!("read of {offset}, {max_bytes} bytes, {isolation:?}");
        let fetched = match log.locate(offset, &options) {
            Err(error) if error.kind() == Kind::OutOfRange => {
                same(&what, &json!("error:OffsetOutOfRangeException"), &row[3], wrong);
                continue;
            }
            other => other.unwrap_or_else(|error| panic!("{what}: {error}")),
        };
        let aborted = fetched.aborted.map(|list| {
            list.iter().map(|txn| (txn.producer_id, txn.first_offset)).collect::<Vec<_>>()
        });
        let size = fetched.range.as_ref().map_or(0, |range| range.size_bytes());
        let place = fetched.place;
        let got = json!([place.segment_base_offset, place.position, size, aborted]);
        same(&what, &got, &Value::from(row[3..].to_vec()), wrong);
        let copied = log.read(offset, &options).expect("the same");
        assert_eq!(u64::try_from(copied.bytes.len()).unwrap(), size, "{what}");
    }
    for (from, upper, want) in &loaded.collect_aborted_transactions {
        let got: Vec<_> = log
            .aborted_transactions(*from, *upper)
            .expect("an index")
            .iter()
            .map(|t| (t.producer_id, t.first_offset, t.last_offset, t.last_stable_offset))
            .collect();
        same(&format!("aborted from {from} to {upper}"), &json!(got), &json!(want), wrong);
    }
}

fn timestamps(log: &Log, loaded: &Loaded, wrong: &mut Vec<String>) {
    for row in &loaded.fetch_offset_by_timestamp {
        let target = row[0].as_i64().expect("a timestamp");
        let found = log.offset_for_timestamp(target).expect("an answer");
        let got = match found {
            None => json!([target, null]),
            Some(found) => {
                json!([target, found.timestamp_ms, found.offset, found.leader_epoch])
            }
        };
        // Without an epoch, Kafka's rows have -1 or null.
        let mut want = row.clone();
        if let Some(epoch) = want.get_mut(3)
            && *epoch == json!(-1)
            && found.is_some_and(|found| found.leader_epoch.is_none())
        {
            *epoch = Value::Null;
        }
        same("offset for a timestamp", &got, &Value::from(want), wrong);
    }
}

fn epochs(log: &Log, loaded: &Loaded, wrong: &mut Vec<String>) {
    let epochs = log.leader_epochs();
    let got: Vec<_> = epochs.entries().iter().map(|e| (e.epoch, e.start_offset)).collect();
    same("leader epochs", &json!(got), &json!(loaded.leader_epochs), wrong);
    for (epoch, found, end) in &loaded.end_offset_for {
        let got = log.end_offset_for_epoch(*epoch);
        same(&format!("end of epoch {epoch}"), &json!(got), &json!([found, end]), wrong);
    }
    for (offset, epoch) in &loaded.epoch_for_offset {
        let got = epochs.epoch_for_offset(*offset);
        same(&format!("epoch for {offset}"), &json!(got), &json!(epoch), wrong);
    }
}

fn segments(log: &Log, loaded: &Loaded, wrong: &mut Vec<String>) {
    let list = log.segments();
    let got: Vec<_> = list.iter().map(|s| (s.base_offset(), s.size_bytes())).collect();
    let want: Vec<_> = loaded.segments.iter().map(|s| (s.base_offset, s.size)).collect();
    same("segments", &json!(got), &json!(want), wrong);
}

pub(crate) fn files(
    state: &State,
    name: &str,
    dir: &Path,
    loaded: &Loaded,
    wrong: &mut Vec<String>,
) {
    let mut got: BTreeMap<String, Vec<u8>> = fs::read_dir(dir)
        .expect("the partition")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let name = path.file_name().expect("a name").display().to_string();
            (name, fs::read(&path).expect("a file"))
        })
        .collect();
    for sum in &loaded.files_after_close {
        let Some(bytes) = got.remove(&sum.0) else {
            wrong.push(format!("{} is missing", sum.0));
            continue;
        };
        let is_known = sha256(&bytes) == sum.2
            || (sum.0.ends_with(".snapshot") && has_kafkas_producers(&bytes, sum, loaded))
            // Kafka trusts damaged indexes after a clean stop; recovery puts them right.
            || (state.name().starts_with("clean-badindex") && sum.0.ends_with("index"));
        if !is_known {
            wrong.push(format!(
                "{} has {} bytes that are not Kafka's {}",
                sum.0,
                bytes.len(),
                sum.1
            ));
        }
    }
    wrong.extend(got.keys().map(|file| format!("{name}: {file} should not be there")));
}
