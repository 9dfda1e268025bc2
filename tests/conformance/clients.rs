//! Clients of a cluster: one process of Java that does as it is told. See Clients.java.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::broker::{Kafka, SOURCES, TIME_LIMIT, tail};
use crate::cluster::Cluster;

/// The process. It ends when this is dropped.
pub struct Clients {
    home: TempDir,
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// The offsets that a leader tells. Ends are exclusive, but for what is tiered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicOffsets {
    pub start: i64,
    pub local_start: i64,
    /// The last one in remote storage, -1 for none.
    pub tiered: i64,
    pub stable: i64,
    pub end: i64,
}

impl Clients {
    /// Starts the process, which need not find a broker yet.
    pub fn start(kafka: &Kafka, addresses: &str) -> Self {
        let home = TempDir::with_prefix("siltstone-clients-").expect("a temporary directory");
        let mut java = kafka.java("error");
        java.arg(Path::new(SOURCES).join("Clients.java")).arg(addresses);
        java.stdin(Stdio::piped()).stdout(Stdio::piped());
        java.stderr(File::create(home.path().join("errors")).expect("a new file"));
        let mut child = java.spawn().expect("java ran before");
        let orders = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Clients { home, child, orders, answers }
    }

    /// What is answered to an order, or why it failed.
    pub fn try_ask(&mut self, order: &Value) -> Result<Value, String> {
        let sent = writeln!(self.orders, "{order}").and_then(|()| self.orders.flush());
        // Among the answers are lines of Kafka's log.
        let answer = self.answers.by_ref().map_while(Result::ok).find(|it| it.starts_with('{'));
        let (Ok(()), Some(answer)) = (sent, answer) else {
            let errors = fs::read_to_string(self.home.path().join("errors")).unwrap_or_default();
            panic!("the clients ended at {order}:\n{}", tail(&errors));
        };
        let answer: Value = serde_json::from_str(&answer).expect("a line of JSON");
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["answer"].clone()),
        }
    }

    /// The same, of an order that cannot fail.
    pub fn ask(&mut self, order: Value) -> Value {
        self.try_ask(&order).unwrap_or_else(|error| panic!("{order}: {error}"))
    }

    /// Makes a topic of small segments on these nodes, the first of which is to lead it.
    pub fn create(&mut self, topic: &str, replicas: &[usize], more: &[(&str, &str)]) {
        let mut configs = json!({
            "remote.storage.enable": "true",
            "internal.segment.bytes": "16384",
            "segment.index.bytes": "4096",
            "index.interval.bytes": "512",
            "file.delete.delay.ms": "500",
            "retention.ms": "-1",
        });
        for (name, value) in more {
            configs[name] = json!(value);
        }
        let order = json!({"topic": topic, "replicas": replicas, "configs": configs});
        self.ask(with(order, "create"));
        self.wait_for_leader(topic, replicas[0]);
    }

    /// Waits until a node leads a topic.
    pub fn wait_for_leader(&mut self, topic: &str, node: usize) {
        let order = json!({"do": "partition", "topic": topic});
        let leads = |told: Value| told["leader"] == node;
        until(&format!("{topic} is led by {node}"), || self.try_ask(&order).is_ok_and(leads));
    }

    /// The offsets of a topic.
    pub fn offsets(&mut self, topic: &str) -> TopicOffsets {
        let told = self.ask(json!({"do": "offsets", "topic": topic}));
        let offset = |name: &str| told[name].as_i64().expect(name);
        TopicOffsets {
            start: offset("start"),
            local_start: offset("local_start"),
            tiered: offset("tiered"),
            stable: offset("stable"),
            end: offset("end"),
        }
    }

    /// Sends so many batches of five records each by a producer without an id.
    pub fn fill(&mut self, topic: &str, batches: usize) {
        let order = json!({"producer": "fill", "topic": topic, "text": "fill", "batches": batches});
        self.ask(with(order, "send"));
    }

    /// What a consumer sees from an offset on, with committed data alone or with all.
    pub fn read(&mut self, topic: &str, is_committed: bool, from: i64) -> Vec<Value> {
        let isolation = if is_committed { "read_committed" } else { "read_uncommitted" };
        let order = json!({"topic": topic, "isolation": isolation, "from": from});
        self.ask(with(order, "read")).as_array().expect("records").clone()
    }

    /// Waits until all that may be uploaded is, by the segments on the leader's disk.
    pub fn wait_for_uploads(&mut self, cluster: &Cluster<'_>, leader: usize, topic: &str) {
        until(&format!("{topic} is uploaded"), || {
            let offsets = self.offsets(topic);
            let bases = cluster.bases(leader, topic);
            let decided = bases.iter().rev().find(|base| **base <= offsets.stable);
            decided.is_some_and(|base| offsets.tiered == base - 1)
        });
    }

    /// Waits until the leader has the segment alone that it writes to.
    pub fn wait_for_deletions(&mut self, cluster: &Cluster<'_>, leader: usize, topic: &str) {
        until(&format!("{topic} has no old segment on the disk"), || {
            Some(&self.offsets(topic).local_start) == cluster.bases(leader, topic).last()
        });
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An order to do something.
pub fn with(mut order: Value, what: &str) -> Value {
    order["do"] = json!(what);
    order
}

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < TIME_LIMIT, "not within {TIME_LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}
