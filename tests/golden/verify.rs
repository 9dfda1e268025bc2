//! A check of what Kafka wrote finds what was done to it and nothing else, and tells of a log what
//! Kafka's own classes tell.

use std::collections::BTreeSet;

use siltstone::dir::verify::{PartitionFolder, Surroundings, survey_log_dir, verify_partitions};
use siltstone::io::{Disk, MapMode, Storage};
use siltstone::log::verify::Depth;
use siltstone::log::{PartitionReport, VerifyOptions, verify_partition};
use siltstone::problem::{Code, Severity};
use siltstone_tests::expect::Expectation;
use siltstone_tests::kits::{Kit, State};

use crate::for_each_kit;

for_each_kit!(a_check_finds_what_was_done_and_nothing_else);

/// Producers expire after this in every expectation.
const EXPIRATION_MS: i64 = 2_147_483_647;

fn a_check_finds_what_was_done_and_nothing_else(kit: &str) {
    let mut wrong = Vec::new();
    for state in Kit::open(kit).states() {
        let unpacked = state.unpack();
        let disk = Disk::new();
        for name in state.partitions() {
            let Some(expectation) = state.expectation(&name) else { continue };
            let dir = unpacked.partition(&name);
            let options = VerifyOptions {
                now_ms: state.at_ms(),
                producer_id_expiration_ms: EXPIRATION_MS,
                ..VerifyOptions::default()
            };
            let options = Surroundings::of(&disk, &dir).apply(&options);
            let report = verify_partition(&disk, &dir, &options).expect("a report");
            let mut say = |what: String| wrong.push(format!("{} {name}: {what}", state.label()));
            compare_facts(&report, &expectation, &mut say);
            compare_problems(&state, &name, &report, &expectation, &mut say);
            // Maps, and headers alone, give the same but for the records.
            let flat = VerifyOptions { maps: MapMode::Always, depth: Depth::Batches, ..options };
            let flat = verify_partition(&disk, &dir, &flat).expect("a report");
            if (&flat.problems, flat.log_end_offset) != (&report.problems, report.log_end_offset) {
                say(format!("headers alone give {:?}", flat.problems));
            }
        }
        assert_eq!((disk.counters().writes, disk.counters().syncs), (0, 0), "it only reads");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn compare_facts(
    report: &PartitionReport,
    expectation: &Expectation,
    say: &mut impl FnMut(String),
) {
    if let Some(loaded) = expectation.loaded.ok() {
        let got = (report.log_start_offset, report.log_end_offset, report.last_stable_offset);
        let want = (
            loaded.local_log_start_offset,
            loaded.log_end_offset,
            loaded.last_stable_offset_at_hw_eq_leo,
        );
        if got != want {
            say(format!("start, end and stable offset {got:?}, not {want:?}"));
        }
    }
    let (mut batches, mut records) = (0, Vec::new());
    for segment in &expectation.raw.segments {
        let valid = segment.batches.iter().take_while(|batch| batch.valid).count();
        let end = segment.batches.get(valid).map_or(i64::MAX, |bad| bad.base_offset);
        batches += valid as u64;
        let readable = segment.records.iter().filter(|record| record.offset < end);
        records.extend(readable.map(|record| (record.offset, record.timestamp)));
        if valid < segment.batches.len() || segment.read_problem.is_some() {
            break;
        }
    }
    if (report.batches, report.records) != (batches, records.len() as u64) {
        let got = (report.batches, report.records);
        say(format!("batches and records {got:?}, not {:?}", (batches, records.len())));
    }
    let lists = report.lists.as_ref().expect("few records");
    let got: Vec<(i64, i64)> =
        lists.offsets.iter().copied().zip(lists.timestamps.iter().copied()).collect();
    if got != records {
        say("the records are other ones".to_owned());
    }
    let file: Vec<(i32, i64)> = expectation.raw.leader_epochs.clone().unwrap_or_default();
    let file: Vec<_> = file.into_iter().filter(|entry| entry.1 <= report.log_end_offset).collect();
    let got: Vec<_> = report.epochs.iter().map(|e| (e.epoch, e.start_offset)).collect();
    if !file.is_empty() && got != file {
        say(format!("epochs {got:?}, not {file:?}"));
    }
}

/// What a state may have, beside what a broker leaves in any state.
fn allowed(state: &str) -> BTreeSet<Code> {
    let was_killed = BTreeSet::from([
        Code::IndexZeroPadding,
        Code::TimeindexZeroPadding,
        Code::TimeindexShort,
        Code::ZeroTail,
    ]);
    let no_index = BTreeSet::from([Code::IndexMissing, Code::TxnindexMissing]);
    match state {
        "torn" | "crc" => was_killed,
        _ if state.contains("unclean") && !state.ends_with("recovered") => was_killed,
        "noindex" => &was_killed | &no_index,
        "bare" => {
            &(&was_killed | &no_index)
                | &BTreeSet::from([Code::SnapshotMismatch, Code::EpochMissing])
        }
        "clean-noindex" => no_index,
        _ => BTreeSet::new(),
    }
}

fn compare_problems(
    state: &State,
    partition: &str,
    report: &PartitionReport,
    expectation: &Expectation,
    say: &mut impl FnMut(String),
) {
    let mut allowed = allowed(state.name());
    // A clean stop, or a replica that truncated, leaves one that belongs to no segment any more.
    allowed.insert(Code::StraySnapshot);
    let last =
        expectation.raw.segments.last().map(|segment| format!("{:020}", segment.base_offset));
    let is_active = |file: &str| last.as_ref().is_some_and(|base| file.starts_with(base));
    let note = |file: &str| damage(state, &format!("{partition}/{file}"));
    let mut found = BTreeSet::new();
    for problem in &report.problems {
        let file = problem.file.as_str();
        let of_active = matches!(
            problem.code,
            Code::IndexZeroPadding
                | Code::TimeindexZeroPadding
                | Code::TimeindexShort
                | Code::ZeroTail
        );
        if let Some(note) = note(file)
            && fits(&note, problem.code)
        {
            found.insert(file);
        } else if !allowed.contains(&problem.code) || (of_active && !is_active(file)) {
            say(format!("{problem}"));
        }
        let is_log = file.ends_with(".log");
        if is_log != (problem.severity == Severity::Corrupt) {
            say(format!("{problem} is {:?}", problem.severity));
        }
    }
    for file in state.files(partition) {
        if let Some(note) = note(&file)
            && !note.starts_with("untouched")
            && !found.contains(file.as_str())
        {
            say(format!("{file} was damaged ({note}), and nothing was found"));
        }
    }
}

/// What was done to a file, as `case.json` has it.
fn damage(state: &State, path: &str) -> Option<String> {
    // What the broker did not repair is still there.
    let name = match state.name() {
        "clean-badindex-recovered" => "clean-badindex",
        other => other,
    };
    let note = state.kit().case()["states"][name]["note"][path].as_str()?.to_owned();
    let was_cut = state.name().ends_with("recovered")
        && state.expectation(path.split('/').next()?).is_none_or(|expectation| {
            let file = path.rsplit('/').next().unwrap_or_default();
            expectation.raw.files.iter().any(|sum| {
                let is_whole = sum.1 % if file.ends_with(".index") { 8 } else { 12 } == 0;
                sum.0 == file && is_whole && note.contains("bytes appended")
            })
        });
    (!was_cut).then_some(note)
}

/// Whether a problem is what a damage of this kind looks like.
fn fits(note: &str, code: Code) -> bool {
    let kinds: &[(&str, &[Code])] = &[
        ("cut ", &[Code::TornBatch]),
        ("last byte cut", &[Code::TornBatch]),
        ("zero bytes appended", &[Code::ZeroTail]),
        ("random bytes appended", &[Code::BadLength, Code::TornBatch, Code::CrcMismatch]),
        ("zeroed from", &[Code::CrcMismatch]),
        ("flipped", &[Code::CrcMismatch]),
        ("length no multiple", &[Code::IndexSize]),
        ("last entry", &[Code::IndexZeroPadding, Code::TimeindexZeroPadding, Code::TimeindexShort]),
    ];
    kinds.iter().any(|(kind, codes)| note.contains(kind) && codes.contains(&code))
}

#[test]
fn whole_log_directories_give_the_same_on_any_number_of_threads() {
    let state = Kit::open("txn").state("crc");
    let unpacked = state.unpack();
    let survey = survey_log_dir(&Disk::new(), &unpacked.data()).expect("a directory");
    assert!(survey.problems.is_empty() && !survey.is_clean && !survey.is_locked);
    assert_eq!(survey.partitions.len(), state.partitions().len());
    let options = VerifyOptions { now_ms: state.at_ms(), ..VerifyOptions::default() };
    let run = |threads: usize| {
        let reports = std::sync::Mutex::new(Vec::new());
        let each = |folder: &PartitionFolder, report: siltstone::Result<PartitionReport>| {
            assert_eq!(report.as_ref().expect("a report").path, folder.path);
            reports.lock().expect("no panic").push(report.expect("a report"));
        };
        verify_partitions(&Disk::new(), &survey.partitions, &options, threads, &each)
            .expect("nothing cancelled");
        reports.into_inner().expect("no panic")
    };
    let alone = run(1);
    assert_eq!(alone.len(), survey.partitions.len());
    for threads in [2, 3, 64] {
        assert_eq!(run(threads), alone, "{threads} threads");
    }
}
