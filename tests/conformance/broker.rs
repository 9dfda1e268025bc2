//! A real Kafka broker, started on a log directory and asked what it makes of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use siltstone_tests::file_sums;
use tempfile::TempDir;

/// Where the Java sources, the broker's settings and the class path's list are.
pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conformance");

/// How long a broker may take to start or to stop.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Kafka's jars.
pub struct Kafka {
    lib: PathBuf,
}

/// The offsets that a broker serves for a partition.
#[derive(Debug, PartialEq, Eq)]
pub struct Offsets {
    pub start: Option<i64>,
    pub local_start: Option<i64>,
    pub end: Option<i64>,
    pub last_stable: Option<i64>,
}

/// What a broker made of a log directory.
#[derive(Debug)]
pub struct Judgement {
    /// Log lines on recovery, rebuilding, truncation, corruption, and warnings of the log layer.
    pub repairs: Vec<String>,
    /// By partition.
    pub offsets: BTreeMap<String, Offsets>,
    /// Files of partitions that differ after the broker's clean stop.
    pub changed: Vec<String>,
}

impl Kafka {
    /// Kafka's jars from Maven, kept in the target directory; an error says what is missing.
    pub fn fetch() -> Result<Kafka, String> {
        for tool in ["java", "mvn"] {
            let found = Command::new(tool).arg("-version").output();
            found.map_err(|error| format!("{tool} cannot be run: {error}"))?;
        }
        let test = std::env::current_exe().expect("the path of this test");
        let target = test.ancestors().nth(3).expect("target/PROFILE/deps/TEST");
        let lib = target.join("kafka/lib");
        let pom = Path::new(SOURCES).join("pom.xml");
        let mark = target.join("kafka/pom.xml");
        let wanted = fs::read(&pom).expect("pom.xml");
        if fs::read(&mark).is_ok_and(|fetched| fetched == wanted) {
            return Ok(Kafka { lib });
        }
        let mut maven = Command::new("mvn");
        maven.args(["-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-f"]);
        maven.arg(&pom).arg(format!("-DoutputDirectory={}", lib.display()));
        let output = maven.output().expect("Maven ran before");
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout);
            return Err(format!("Maven cannot fetch Kafka: {text}"));
        }
        fs::write(mark, wanted).expect("room on the disk");
        Ok(Kafka { lib })
    }

    /// Starts a broker on `data`, asks it for its offsets and stops it. `topics` are the topics'
    /// configs; topics keep their remote settings only when there is a `remote` folder. `data` is
    /// what the broker leaves afterwards.
    pub fn judge(&self, data: &Path, topics: &Value, remote: Option<&Path>) -> Judgement {
        self.judge_while(data, topics, remote, |_| ())
    }

    /// The same, and does something with the broker at this address while it runs.
    pub fn judge_while(
        &self,
        data: &Path,
        topics: &Value,
        remote: Option<&Path>,
        meanwhile: impl FnOnce(&str),
    ) -> Judgement {
        let work = TempDir::with_prefix("siltstone-kafka-").expect("a temporary directory");
        let work = work.path();
        let topics_file = work.join("topics.json");
        let topics = topics_for(topics, remote.is_some());
        fs::write(&topics_file, topics.to_string()).expect("room on the disk");
        let before = file_sums(data);
        let metadata = work.join("metadata");
        self.java_source("Adopt.java", &[data, &metadata, &topics_file]);
        let ports = free_ports();
        let properties = work.join("broker.properties");
        let text = properties_text(node_of(data), data, &metadata, ports, remote);
        fs::write(&properties, text).expect("room on the disk");

        let log = work.join("broker.log");
        let mut broker = self.start(&properties, &log);
        broker.wait_until_started(&log);
        let address = format!("127.0.0.1:{}", ports[0]);
        let answer = self.java_source("Offsets.java", &[&address]);
        meanwhile(&address);
        broker.stop();
        let log = fs::read_to_string(&log).expect("the broker's log");
        Judgement {
            repairs: repairs(&log),
            offsets: answer.lines().map(offsets).collect(),
            changed: changed(&before, &file_sums(data)),
        }
    }

    /// What the console consumer prints of so many records of a partition, from its start on: a
    /// line each, with offset, key and value.
    pub fn console_consumer(
        &self,
        address: &str,
        topic: &str,
        isolation: &str,
        count: usize,
    ) -> Vec<String> {
        let mut java = self.java("error");
        java.arg("org.apache.kafka.tools.consumer.ConsoleConsumer");
        java.args(["--bootstrap-server", address, "--topic", topic, "--partition", "0"]);
        java.args(["--offset", "earliest", "--isolation-level", isolation]);
        java.args(["--max-messages", &count.to_string(), "--timeout-ms", "30000"]);
        for property in ["print.offset=true", "print.key=true"] {
            java.args(["--formatter-property", property]);
        }
        let output = java.output().expect("java ran before");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        // Among them its log lines, such as that it has waited for too long.
        text.lines().filter(|line| line.starts_with("Offset:")).map(str::to_owned).collect()
    }

    /// A virtual machine with Kafka's classes that logs from this level on.
    pub fn java(&self, level: &str) -> Command {
        let mut java = Command::new("java");
        java.args(["-Xmx512m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        java.arg("-Djava.awt.headless=true").arg(format!("-Dlog.level={level}"));
        java.arg(format!("-Dlog4j2.configurationFile={SOURCES}/log4j2.properties"));
        java.arg("-cp").arg(format!("{}/*", self.lib.display()));
        java.stdin(Stdio::null());
        java
    }

    fn java_source<A: AsRef<std::ffi::OsStr>>(&self, name: &str, arguments: &[A]) -> String {
        let mut java = self.java("error");
        java.arg(Path::new(SOURCES).join(name)).args(arguments);
        let output = java.output().expect("java ran before");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Starts a broker; what it logs goes to a new file.
    pub fn start(&self, properties: &Path, log: &Path) -> Broker {
        let mut java = self.java("info");
        let output = File::create(log).expect("a new file");
        java.stdout(output.try_clone().expect("a second descriptor")).stderr(output);
        Broker(java.arg("kafka.Kafka").arg(properties).spawn().expect("java ran before"))
    }
}

/// A broker that runs; it is killed when this is dropped.
pub struct Broker(Child);

impl Broker {
    /// Until it serves.
    pub fn wait_until_started(&mut self, log: &Path) {
        let begin = Instant::now();
        loop {
            let text = fs::read_to_string(log).unwrap_or_default();
            if text.contains("Kafka Server started") {
                return;
            }
            let ended = self.0.try_wait().expect("a child to wait for");
            let waiting = ended.is_none() && begin.elapsed() < TIME_LIMIT;
            assert!(waiting, "the broker did not start ({ended:?}):\n{}", tail(&text));
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Stops it cleanly.
    pub fn stop(mut self) {
        terminate(&mut self.0);
    }
}

/// Has a broker stop as it does cleanly; how it ended.
pub fn terminate(broker: &mut Child) -> ExitStatus {
    let pid = broker.id().to_string();
    let status = Command::new("kill").args(["-TERM", &pid]).status().expect("kill");
    assert!(status.success(), "kill: {status}");
    let begin = Instant::now();
    loop {
        if let Some(status) = broker.try_wait().expect("a child to wait for") {
            return status;
        }
        assert!(begin.elapsed() < TIME_LIMIT, "the broker did not stop");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // After a stop there is nothing left to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn topics_for(topics: &Value, with_remote: bool) -> Value {
    let belongs =
        |name: &str| with_remote || !(name.starts_with("remote.") || name.starts_with("local."));
    let topics = topics.as_object().expect("topics with configs").iter();
    let filtered = topics.map(|(topic, configs)| {
        let configs = configs.as_object().expect("configs").iter();
        let kept: Map<String, Value> = configs
            .filter(|(name, _)| belongs(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        (topic.clone(), Value::Object(kept))
    });
    Value::Object(filtered.collect())
}

/// Ports that were free a moment ago.
pub fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let held = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    held.map(|listener| listener.local_addr().expect("an address").port())
}

/// The number of the node that has this log directory.
fn node_of(data: &Path) -> usize {
    let own = fs::read_to_string(data.join("meta.properties")).expect("meta.properties");
    let node = own.lines().find_map(|line| line.strip_prefix("node.id=")).expect("node.id");
    node.parse().expect("a number")
}

/// The settings of a node that is broker and controller, with these ports.
pub fn properties_text(
    node: usize,
    data: &Path,
    metadata: &Path,
    [port, controller]: [u16; 2],
    remote: Option<&Path>,
) -> String {
    let read = |path: &Path| fs::read_to_string(path).expect("a file of properties");
    let mut text = read(&Path::new(SOURCES).join("broker.properties"))
        .replace("@PORT@", &port.to_string())
        .replace("@CONTROLLER@", &controller.to_string())
        .replace("@DATA@", &data.display().to_string())
        .replace("@METADATA@", &metadata.display().to_string())
        .replace("@NODE@", &node.to_string());
    if let Some(remote) = remote {
        let storage = read(&Path::new(SOURCES).join("remote.properties"));
        text += &storage.replace("@REMOTE@", &remote.display().to_string());
    }
    text
}

fn repairs(log: &str) -> Vec<String> {
    const SOURCES: [&str; 4] =
        ["kafka.log.LogManager", "internals.log.", "internals.epoch.", "internals.checkpoint."];
    const SIGNS: [&str; 12] = [
        "] WARN ",
        "] ERROR ",
        "Recovering unflushed",
        "Found invalid",
        "Corruption",
        "truncat",
        "Truncat",
        "Deleting",
        "stray",
        "rebuilding index",
        "Rebuilding",
        "anity",
    ];
    let of_logs = |line: &&str| {
        SOURCES.iter().any(|source| line.contains(source)) && !line.contains("__cluster_metadata")
    };
    let is_repair = |line: &&str| {
        let recovers_logs = line.contains("Recovering ") && line.contains(" logs");
        recovers_logs || SIGNS.iter().any(|sign| line.contains(sign))
    };
    log.lines().filter(of_logs).filter(is_repair).map(str::to_owned).collect()
}

fn offsets(line: &str) -> (String, Offsets) {
    let line: Value = serde_json::from_str(line).expect("a line of JSON");
    let offsets = Offsets {
        start: line["start"].as_i64(),
        local_start: line["localStart"].as_i64(),
        end: line["end"].as_i64(),
        last_stable: line["lastStable"].as_i64(),
    };
    (line["partition"].as_str().expect("a partition").to_owned(), offsets)
}

type Sums = [(String, u64, String)];

/// What a clean start and stop may not change. The files beside the partitions are not looked at; a
/// broker that becomes leader adds a line to the leader epochs, and snapshots that belong to no
/// segment go at each clean start.
fn changed(before: &Sums, after: &Sums) -> Vec<String> {
    let both: [BTreeMap<&str, &str>; 2] =
        [before, after].map(|sums| sums.iter().map(|(name, _, sum)| (&**name, &**sum)).collect());
    let mut names: Vec<&str> = both.iter().flat_map(BTreeMap::keys).copied().collect();
    names.sort_unstable();
    names.dedup();
    let differs = |name: &&str| {
        let [old, new] = both.each_ref().map(|sums| sums.get(name));
        let is_expected = name.ends_with("/leader-epoch-checkpoint")
            || name.ends_with("/partition.metadata") && old.is_none()
            || name.ends_with(".snapshot") && new.is_none();
        name.contains('/') && old != new && !is_expected
    };
    names.into_iter().filter(differs).map(str::to_owned).collect()
}

/// The last lines of a log.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
