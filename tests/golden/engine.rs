//! An engine that opens what a broker left has the logs that Kafka's loader has: after a clean stop
//! and after a kill, all partitions of a directory at once. Closing it leaves the files that Kafka
//! leaves, and checkpoints that say the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use siltstone::dir::engine::{Engine, EngineOptions};
use siltstone::io::Disk;
use siltstone::log::LogConfig;
use siltstone::state::{OffsetCheckpoint, ProducerStateConfig};
use siltstone_tests::kits::{Kit, State};

use crate::live_reads::{config, files};
use crate::{Partition, for_each_kit};

for_each_kit!(an_opened_directory_has_kafkas_logs);

fn an_opened_directory_has_kafkas_logs(kit: &str) {
    let mut wrong = Vec::new();
    for name in ["clean", "unclean"] {
        let kit = Kit::open(kit);
        if kit.states().iter().any(|state| state.name() == name) {
            check(&kit.state(name), &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn check(state: &State, wrong: &mut Vec<String>) {
    let unpacked = state.unpack();
    let partitions: Vec<Partition> = state
        .partitions()
        .into_iter()
        .filter_map(|name| {
            let expectation = state.expectation(&name)?;
            Some(Partition { state: state.clone(), name, expectation })
        })
        .collect();
    let configs: BTreeMap<&str, LogConfig> =
        partitions.iter().map(|part| (key(part).0, config(&part.expectation))).collect();
    let config = |topic: &str| configs.get(topic).cloned().unwrap_or_default();
    let options = EngineOptions {
        threads: 2,
        producers: ProducerStateConfig {
            producer_id_expiration_ms: i64::from(i32::MAX),
            ..ProducerStateConfig::default()
        },
        ..EngineOptions::new(&config, state.at_ms())
    };
    let dirs = [unpacked.data()];
    let opened = Engine::open(Arc::new(Disk::new()), &dirs, &options);
    let (engine, report) = opened.expect("an engine");
    assert_eq!(report.dirs[0].was_clean, state.is_clean(), "{}", state.label());
    assert!(report.refused.is_empty(), "{}: {:?}", state.label(), report.refused);
    for part in &partitions {
        compare(&engine, part, wrong);
    }
    let report = engine.close(5, 2);
    assert!(report.dirs[0].is_clean, "{}: {:?}", state.label(), report.dirs[0].errors);
    let read = |name: &str| {
        let bytes = std::fs::read(unpacked.data().join(name)).expect("a checkpoint");
        OffsetCheckpoint::parse(&bytes).expect("lines")
    };
    let recovery_points = read("recovery-point-offset-checkpoint");
    let starts = read("log-start-offset-checkpoint");
    for part in &partitions {
        let Some(loaded) = part.expectation.loaded.ok() else { continue };
        let dir = unpacked.partition(&part.name);
        let before = wrong.len();
        files(state, &part.name, &dir, loaded, wrong);
        let (topic, partition) = key(part);
        let point = recovery_points.get(topic, partition);
        if point != Some(loaded.log_end_offset) {
            wrong.push(format!("the recovery point is {point:?} at the end"));
        }
        let first = loaded.segments.first().map_or(0, |segment| segment.base_offset);
        let is_written = configs[topic].remote_storage || loaded.log_start_offset > first;
        let start = starts.get(topic, partition);
        if start != is_written.then_some(loaded.log_start_offset) {
            wrong.push(format!("the log start is {start:?} at the end"));
        }
        for line in &mut wrong[before..] {
            *line = format!("{}: {line}", part.label());
        }
    }
}

fn key(part: &Partition) -> (&str, i32) {
    let (topic, partition) = part.name.rsplit_once('-').expect("a partition");
    (topic, partition.parse().expect("a number"))
}

fn compare(engine: &Engine, part: &Partition, wrong: &mut Vec<String>) {
    let (topic, partition) = key(part);
    let log = match engine.log(topic, partition) {
        Ok(Some(log)) => log,
        other => return wrong.push(format!("{}: {other:?}", part.label())),
    };
    let Some(loaded) = part.expectation.loaded.ok() else { return };
    let high_watermark = part.expectation.high_watermark_checkpoint.unwrap_or(0);
    let high_watermark = high_watermark.clamp(loaded.log_start_offset, loaded.log_end_offset);
    let got = (
        log.log_start_offset(),
        log.local_log_start_offset(),
        log.log_end_offset(),
        log.high_watermark(),
    );
    let want = (
        loaded.log_start_offset,
        loaded.local_log_start_offset,
        loaded.log_end_offset,
        high_watermark,
    );
    let epochs = log.leader_epochs();
    let epochs: Vec<(i32, i64)> =
        epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect();
    if got != want || epochs != loaded.leader_epochs {
        wrong.push(format!(
            "{}: start, local start, end, high watermark {got:?}, not {want:?}; epochs {epochs:?}, \
             not {:?}",
            part.label(),
            loaded.leader_epochs
        ));
    }
}
