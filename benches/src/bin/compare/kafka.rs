//! Kafka's own classes on the same work: `benches/kafka-peer`, where Java and Maven are there.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use siltstone_benches::Result;

use crate::bench::Bench;

/// Medians by name, in bytes, items or partitions a second, or in seconds; and the largest share of
/// a round in which its thread waited for a core.
#[derive(Debug, Default)]
pub(crate) struct Figures(BTreeMap<String, (f64, f64)>);

impl Figures {
    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).map(|(median, _)| *median)
    }

    /// How long each has waited.
    pub(crate) fn waited(&self) -> Vec<(String, f64)> {
        self.0.iter().map(|(name, (_, waited))| (name.clone(), *waited)).collect()
    }
}

/// The groups that make many files.
const MANY_FILES: [&str; 2] = ["load", "aux"];

/// Each runs in a process of its own; with the word of the rows that need it.
const GROUPS: [(&str, &[&str]); 11] = [
    ("recover", &["recover a segment", "verify"]),
    ("load", &["recover 2,000", "load 2,000"]),
    ("aux", &["rebuild 1,000", "load 10,000"]),
    ("snapshot", &["snapshot"]),
    ("txn", &["transaction"]),
    ("append", &["append prebuilt", "append as", "durable"]),
    ("read", &["locate", "offset for a timestamp"]),
    ("index", &["index look-up", "append one offset"]),
    ("upload", &["upload scan of"]),
    ("memory", &["memory of"]),
    ("compact", &["compaction of"]),
];

/// Builds and runs the groups whose rows are wanted; nothing where Java or Maven are missing.
pub(crate) fn run(bench: &Bench) -> Result<Figures> {
    let mut figures = Figures::default();
    if !has("java", "-version") || !has("mvn", "-version") {
        println!("Kafka's classes are not run: Java or Maven is missing");
        return Ok(figures);
    }
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("kafka-peer");
    let build = std::env::current_exe()?.with_file_name("kafka-peer");
    let target = format!("-Dpeer.build={}", build.display());
    let maven = ["--quiet", "--batch-mode", "package", target.as_str()];
    if !Command::new("mvn").args(maven).current_dir(&home).status()?.success() {
        return Err("Kafka's classes cannot be built".into());
    }
    for (group, words) in GROUPS {
        let wanted = words.iter().any(|word| {
            bench.words.is_empty()
                || bench.words.iter().any(|row| row.contains(word) || word.contains(row.as_str()))
        });
        if wanted {
            figures.0.extend(measure(bench, &build, group)?);
            bench.clear()?;
        }
    }
    Ok(figures)
}

fn has(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn measure(bench: &Bench, build: &Path, group: &str) -> Result<BTreeMap<String, (f64, f64)>> {
    let classes = format!("{0}/kafka-peer-1.jar:{0}/lib/*", build.display());
    let output = Command::new("java")
        .args(["-Xmx2g", "-Xms1g", "-XX:+UseG1GC", "-XX:MaxDirectMemorySize=256m", "-cp", &classes])
        .arg("peer.Main")
        .args([group, if bench.is_quick { "quick" } else { "full" }])
        .arg(if MANY_FILES.contains(&group) { bench.many_files() } else { bench.work.clone() })
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("Kafka's classes, {group}: {}", output.status).into());
    }
    let mut figures = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        println!("kafka: {line}");
        let mut fields = line.split('\t');
        if let (Some(name), Some(Ok(median))) = (fields.next(), fields.next().map(str::parse)) {
            let waited = fields.next_back().and_then(|share| share.parse().ok()).unwrap_or(0.0);
            figures.insert(name.to_owned(), (median, waited));
        }
    }
    Ok(figures)
}
