//! Cases: small damaged inputs, each with the right answer, made after public reports of damage to
//! Kafka-format storage.
//!
//! [`check`] runs `verify`, and `recover` where the case says what must come of it, on a fresh copy
//! and compares every key that the case expects: verdict, codes, positions, offsets, counts,
//! memory, and that reading changed nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::archive::Archive;
use crate::tool::{self, Outcome};

/// What the process itself may take on top of the limit of a case.
const MEMORY_SLACK_BYTES: u64 = 16 << 20;

/// One case.
#[derive(Clone, Debug)]
pub struct Case(Value);

impl Case {
    /// Its id, such as `S020`.
    #[must_use]
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// The kind of damage.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// What is asked: `verify` (and `recover`), `plan-uploads`, `scenario` or `recipe` (which has
    /// no data).
    #[must_use]
    pub fn op(&self) -> &str {
        self.text("op")
    }

    /// The right answer.
    #[must_use]
    pub fn expect(&self) -> &Map<String, Value> {
        self.0["expect"].as_object().expect("what the case expects")
    }

    /// The options that go with the input, as the command line takes them.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let arguments = self.0["args"].as_object().into_iter().flatten();
        arguments
            .flat_map(|(name, value)| [format!("--{}", name.replace('_', "-")), plain(value)])
            .collect()
    }

    /// A fresh copy of the input: the folder that holds it, and its name in there.
    ///
    /// # Panics
    ///
    /// When the case has no data, or the disk says no.
    #[must_use]
    pub fn unpack(&self) -> (TempDir, String) {
        let path = self.text("path");
        let name = path.rsplit('/').next().expect("a name").to_owned();
        let dir = TempDir::with_prefix("siltstone-case-").expect("a temporary directory");
        archive().unpack(path, &dir.path().join(&name));
        (dir, name)
    }

    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("a case without {key}: {}", self.0["id"]))
    }
}

/// All cases of one kind of question.
///
/// # Panics
///
/// When `cases.json` is not of its form.
#[must_use]
pub fn cases(op: &str) -> Vec<Case> {
    let list = archive().read("cases.json").expect("cases.json");
    let list: Value = serde_json::from_slice(&list).expect("JSON in cases.json");
    let list = list["cases"].as_array().expect("a list of cases");
    list.iter().cloned().map(Case).filter(|case| case.op() == op).collect()
}

/// Everything that is wrong with the answers of `siltstone verify` and `recover` to a case; empty
/// when all is right.
///
/// # Panics
///
/// When the command line cannot be run at all.
#[must_use]
pub fn check(case: &Case, recover_options: &[&str]) -> Vec<String> {
    let (dir, name) = case.unpack();
    let path = dir.path().join(name);
    let mut wrong = Wrong::default();
    let before = crate::file_sums(&path);
    let outcome = call("verify", case, &[], &path);
    wrong.health("verify", case, &outcome);
    wrong.unless(crate::file_sums(&path) == before, || "verify changed its input".into());
    let answer = outcome.json();
    wrong.unless(answer.is_object(), || format!("verify gave no JSON: {}", outcome.stderr));
    wrong.verdict(case, &outcome);
    wrong.codes(case, &answer);
    wrong.place(case, &answer);
    wrong.values(case, &answer);
    if let Some(after) = case.expect().get("after_recover") {
        wrong.recovery(case, after, recover_options, &path);
    }
    wrong.0
}

/// Everything that is wrong with the answers of `siltstone scenario` to a case.
///
/// # Panics
///
/// When the command line cannot be run at all.
#[must_use]
pub fn check_scenario(case: &Case) -> Vec<String> {
    let (dir, name) = case.unpack();
    let path = dir.path().join(name).join("scenario.json");
    let mut wrong = Wrong::default();
    let outcome = tool::run(["scenario".as_ref(), "--json".as_ref(), path.as_os_str()]);
    wrong.unless(outcome.code == Some(0), || format!("exit {:?}", outcome.code));
    let answer = outcome.json();
    let is_asked = |key: &str| key != "must_not" && key != "note";
    for (key, right) in case.expect().iter().filter(|(key, _)| is_asked(key)) {
        let found = &answer[key];
        wrong.unless(found == right, || format!("{key}: {found}, not {right}"));
    }
    wrong.0
}

fn archive() -> &'static Archive {
    static ARCHIVE: OnceLock<Archive> = OnceLock::new();
    ARCHIVE.get_or_init(|| Archive::open("cases.tar.zst"))
}

fn call(verb: &str, case: &Case, more: &[&str], path: &Path) -> Outcome {
    let mut arguments = vec![verb.to_owned(), "--json".to_owned()];
    arguments.extend(more.iter().map(|&option| option.to_owned()));
    arguments.extend(case.options());
    arguments.push(path.display().to_string());
    tool::run(arguments)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn strings(value: Option<&Value>) -> BTreeSet<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The codes of a list of findings.
fn codes(findings: &Value) -> BTreeSet<&str> {
    findings.as_array().into_iter().flatten().filter_map(|one| one["code"].as_str()).collect()
}

#[derive(Default)]
struct Wrong(Vec<String>);

/// Members of `expect` that are compared with the member of the same name in the answer.
const VALUES: [&str; 17] = [
    "log_start_offset",
    "log_end_offset",
    "last_stable_offset",
    "batches",
    "records",
    "visible_records",
    "max_timestamp",
    "epochs",
    "aborted",
    "open",
    "committed_offsets",
    "data_offsets",
    "offsets",
    "timestamps",
    "delete_horizon",
    "survivors_after",
    "topic_partition",
];

impl Wrong {
    fn unless(&mut self, right: bool, say: impl FnOnce() -> String) {
        if !right {
            self.0.push(say());
        }
    }

    fn equal(&mut self, what: &str, got: &Value, want: &Value) {
        self.unless(got == want, || format!("{what}: want {want}, got {got}"));
    }

    fn health(&mut self, verb: &str, case: &Case, outcome: &Outcome) {
        self.unless(outcome.is_healthy(), || format!("{verb} crashed: {outcome:?}"));
        let limits = strings(case.expect().get("must_not")).into_iter().filter_map(|rule| {
            rule.strip_prefix("allocate>")?.strip_suffix("MiB")?.parse::<u64>().ok()
        });
        for limit_mib in limits {
            let used = outcome.memory_bytes.saturating_sub(idle_memory_bytes());
            self.unless(used <= (limit_mib << 20) + MEMORY_SLACK_BYTES, || {
                format!("{verb} took {used} bytes of memory, allowed are {limit_mib} MiB")
            });
        }
    }

    fn verdict(&mut self, case: &Case, outcome: &Outcome) {
        let verdict = case.text_of_expect("verdict");
        let allowed: &[i32] = match verdict {
            "ok" => &[0],
            "repairable" | "corrupt" => &[1],
            "refused" => &[1, 2],
            _ => &[0, 1, 2],
        };
        let fits = outcome.code.is_some_and(|code| allowed.contains(&code));
        self.unless(fits, || format!("exit {:?} does not fit the verdict {verdict}", outcome.code));
    }

    fn codes(&mut self, case: &Case, answer: &Value) {
        let problems = codes(&answer["problems"]);
        let want = strings(case.expect().get("codes"));
        self.unless(want.is_subset(&problems), || {
            format!("codes: want {want:?}, got {problems:?}")
        });
        let notices = &codes(&answer["notices"]) | &problems;
        let want = strings(case.expect().get("notices"));
        self.unless(want.is_subset(&notices), || {
            format!("notices: want {want:?}, got {notices:?}")
        });
    }

    /// The first problem of the file that the case names, else the first of all.
    fn place(&mut self, case: &Case, answer: &Value) {
        let Some(place) = case.expect().get("at") else { return };
        let file = place["file"].as_str().unwrap_or_default();
        let problems = answer["problems"].as_array().map(Vec::as_slice).unwrap_or_default();
        let in_file = |problem: &&Value| {
            let path = problem["file"].as_str().unwrap_or_default();
            path.rsplit('/').next() == Some(file)
        };
        let first = problems.iter().find(in_file).or(problems.first()).unwrap_or(&Value::Null);
        for key in ["position", "offset"] {
            if let Some(want) = place.get(key) {
                self.equal(&format!("at.{key}"), &first[key], want);
            }
        }
    }

    fn values(&mut self, case: &Case, answer: &Value) {
        for key in VALUES {
            if let Some(want) = case.expect().get(key) {
                self.unless(answer.get(key).is_some(), || format!("{key} is not told"));
                self.equal(key, &answer[key], want);
            }
        }
        let producers = case.expect().get("producers").and_then(Value::as_object);
        for (id, fields) in producers.into_iter().flatten() {
            for (key, want) in fields.as_object().into_iter().flatten() {
                let got = &answer["producers"][id][key];
                self.equal(&format!("producers.{id}.{key}"), got, want);
            }
        }
    }

    fn recovery(&mut self, case: &Case, after: &Value, options: &[&str], path: &Path) {
        let outcome = call("recover", case, options, path);
        self.health("recover", case, &outcome);
        for (file, want) in after["sizes"].as_object().into_iter().flatten() {
            let size = fs::metadata(path.join(file)).map_or(Value::Null, |data| data.len().into());
            self.equal(&format!("size of {file}"), &size, want);
        }
        for file in strings(after.get("absent")) {
            self.unless(!path.join(file).exists(), || format!("{file} is still there"));
        }
        for file in strings(after.get("present")) {
            self.unless(path.join(file).exists(), || format!("{file} was not made"));
        }
        if let Some(want) = after.get("segments") {
            self.equal("segments", &Value::from(segments(path)), want);
        }
        let checked = call("verify", case, &[], path);
        self.unless(checked.code == Some(0), || {
            format!("verify after recover exits {:?}: {}", checked.code, checked.stdout)
        });
        let answer = checked.json();
        for key in ["log_end_offset", "log_start_offset"] {
            if let Some(want) = after.get(key) {
                self.equal(&format!("after recover {key}"), &answer[key], want);
            }
        }
        let once = crate::file_sums(path);
        let again = call("recover", case, options, path);
        self.health("recover", case, &again);
        self.unless(crate::file_sums(path) == once, || "a second recover changed files".into());
    }
}

impl Case {
    fn text_of_expect(&self, key: &str) -> &str {
        self.expect().get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// The base offsets of the segments in a partition directory, sorted.
fn segments(path: &Path) -> Vec<i64> {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().display().to_string());
    let mut bases: Vec<i64> =
        names.filter_map(|name| name.strip_suffix(".log")?.parse().ok()).collect();
    bases.sort_unstable();
    bases
}

/// What a call takes that does nothing.
fn idle_memory_bytes() -> u64 {
    static IDLE: OnceLock<u64> = OnceLock::new();
    *IDLE.get_or_init(|| tool::run(["--version"]).memory_bytes)
}
