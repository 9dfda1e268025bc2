//! `siltstone scenario`: questions about remote storage in JSON files, answered and refused.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use siltstone_tests::cases::{cases, check_scenario};
use siltstone_tests::tool::{self, Outcome};

/// The scenarios of this project, answered and refused ones.
fn scenarios() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/scenarios.json");
    let bytes = std::fs::read(path).expect("the scenarios");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn list<'a>(scenarios: &'a Value, key: &str) -> &'a [Value] {
    scenarios[key].as_array().expect("a list")
}

/// Asks what a file asks that has these bytes.
fn ask(bytes: &[u8], options: &[&str]) -> Outcome {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), bytes).expect("a file");
    let path = file.path().to_str().expect("a path");
    tool::run(["scenario"].iter().chain(options).chain(&[path]))
}

/// Asks what a file asks that comes by standard input.
fn ask_by_input(path: &Path) -> Outcome {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" scenario --json - < \"$1\""]);
    tool::run_command(command.arg(tool::siltstone()).arg(path))
}

#[test]
fn every_scenario_has_its_right_answers_and_no_more() {
    let scenarios = scenarios();
    let answered = list(&scenarios, "answered");
    assert!(answered.len() > 10);
    for scenario in answered {
        let outcome = ask(scenario["scenario"].to_string().as_bytes(), &["--json"]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{scenario}");
        let mut found = outcome.json();
        let kind = found.as_object_mut().expect("an object").remove("type");
        assert_eq!(kind, Some("scenario".into()));
        assert_eq!(found, scenario["answers"], "{}", scenario["what"]);
        assert_eq!(outcome.stdout.lines().count(), 1);
    }
}

#[test]
fn the_scenarios_of_the_cases_have_their_right_answers() {
    let cases = cases("scenario");
    assert!(cases.len() >= 8);
    for case in &cases {
        assert_eq!(check_scenario(case), [""; 0], "{} {}", case.id(), case.kind());
    }
}

#[test]
fn people_get_a_line_for_each_answer() {
    let text = br#"{"epochs": [[0, 20], [1, 85]], "start_offset": 90}"#;
    let outcome = ask(text, &[]);
    assert_eq!(outcome.stdout, "aux epoch  1\ntarget epoch  1\nprevious offset  89\n");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("a file");
    let by_input = ask_by_input(file.path());
    assert_eq!(by_input.json(), ask(text, &["--json"]).json());
}

#[test]
fn what_cannot_be_asked_is_refused_with_its_reason() {
    let scenarios = scenarios();
    for scenario in list(&scenarios, "refused") {
        let (text, why) = (scenario["text"].as_str(), scenario["why"].as_str());
        let outcome = ask(text.expect("a text").as_bytes(), &["--json"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{scenario}");
        assert!(outcome.stderr.contains(why.expect("a reason")), "{scenario}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
    for (bytes, why) in [
        (&b"\xff\xfe"[..], "this is no JSON"),
        (&[b'['; 100_000], "recursion limit"),
        (&[0; 64], "this is no JSON"),
    ] {
        let outcome = ask(bytes, &[]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
    }
    for path in ["/nowhere/at/all.json", "/"] {
        let outcome = tool::run(["scenario", path]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(path), "{}", outcome.stderr);
    }
}

// A file beyond the limit was cut there, and called no JSON.
#[test]
fn a_file_that_is_too_large_is_refused_as_such() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("large.json");
    let question: &[u8] = br#"{"local_retention_ms": 7}"#;
    std::fs::write(&path, question).expect("a file");
    let limit = 64 << 20;
    let pad = |size: u64| {
        let blank = usize::try_from(size).expect("a size") - question.len();
        std::fs::write(&path, [question, &vec![b' '; blank]].concat()).expect("a file");
    };
    pad(limit);
    let fits = tool::run(["scenario".as_ref(), path.as_os_str()]);
    assert_eq!(fits.code, Some(0), "{fits:?}");
    pad(limit + 1);
    for outcome in [tool::run(["scenario".as_ref(), path.as_os_str()]), ask_by_input(&path)] {
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""));
        assert!(outcome.stderr.contains("larger than the 64 MiB"), "{}", outcome.stderr);
    }
}
