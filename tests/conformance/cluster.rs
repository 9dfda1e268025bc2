//! Brokers with remote storage in a folder that they share: made anew, started and stopped one by
//! one.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::broker::{Broker, Kafka, SOURCES, free_ports, properties_text};

/// Any will do.
const CLUSTER_ID: &str = "MkU3OEVBNTcwNTJENDM2Qg";

/// Nodes from 1 on; the first is the controller, too.
pub struct Cluster<'a> {
    kafka: &'a Kafka,
    home: TempDir,
    controller: u16,
    ports: [u16; 2],
    brokers: [Option<Broker>; 2],
}

impl<'a> Cluster<'a> {
    /// So many nodes, none of which runs.
    pub fn new(kafka: &'a Kafka, count: usize) -> Self {
        let home = TempDir::with_prefix("siltstone-cluster-").expect("a temporary directory");
        let [controller, ports @ ..] = free_ports::<3>();
        let cluster = Cluster { kafka, home, controller, ports, brokers: [None, None] };
        fs::create_dir(cluster.remote()).expect("a new folder");
        std::thread::scope(|scope| {
            for node in 1..=count {
                let cluster = &cluster;
                scope.spawn(move || cluster.format(node));
            }
        });
        cluster
    }

    fn path(&self, name: &str, node: usize) -> PathBuf {
        self.home.path().join(format!("{name}-{node}"))
    }

    /// The folder of remote storage.
    pub fn remote(&self) -> PathBuf {
        self.home.path().join("remote")
    }

    /// The log directory of a node.
    pub fn data(&self, node: usize) -> PathBuf {
        self.path("data", node)
    }

    /// Where a node has the cluster's metadata.
    pub fn metadata(&self, node: usize) -> PathBuf {
        self.path("metadata", node)
    }

    /// The directory of a topic's one partition.
    pub fn partition(&self, node: usize, topic: &str) -> PathBuf {
        self.data(node).join(format!("{topic}-0"))
    }

    /// The base offsets of its segments on the disk of a node.
    pub fn bases(&self, node: usize, topic: &str) -> Vec<i64> {
        let entries = fs::read_dir(self.partition(node, topic)).expect("a partition");
        let mut bases: Vec<i64> = entries
            .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
            .filter_map(|name| name.strip_suffix(".log")?.parse().ok())
            .collect();
        bases.sort_unstable();
        bases
    }

    /// The port of a node's clients.
    pub fn port(&self, node: usize) -> u16 {
        self.ports[node - 1]
    }

    /// Where clients find the nodes.
    pub fn addresses(&self) -> String {
        self.ports.map(|port| format!("127.0.0.1:{port}")).join(",")
    }

    /// What a node has logged since it was started last.
    pub fn log(&self, node: usize) -> String {
        fs::read_to_string(self.path("log", node)).expect("a log")
    }

    fn format(&self, node: usize) {
        let (data, metadata) = (self.data(node), self.metadata(node));
        let ports = [self.port(node), self.controller];
        let mut text = properties_text(node, &data, &metadata, ports, Some(&self.remote()));
        let more = Path::new(SOURCES).join("tiered.properties");
        text += &fs::read_to_string(more).expect("a file of properties");
        if node > 1 {
            text += &format!(
                "process.roles=broker\nlisteners=PLAINTEXT://127.0.0.1:{}\n\
                 controller.quorum.voters=1@127.0.0.1:{}\n",
                self.port(node),
                self.controller
            );
        }
        let properties = self.path("properties", node);
        fs::write(&properties, text).expect("room on the disk");
        let mut java = self.kafka.java("error");
        java.args(["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"]).arg(properties);
        let output = java.output().expect("java ran before");
        let told = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&told));
    }

    /// Starts a node and waits for it.
    pub fn start(&mut self, node: usize) {
        let log = self.path("log", node);
        let mut broker = self.kafka.start(&self.path("properties", node), &log);
        broker.wait_until_started(&log);
        self.brokers[node - 1] = Some(broker);
    }

    /// Stops a node cleanly.
    pub fn stop(&mut self, node: usize) {
        self.brokers[node - 1].take().expect("a broker that runs").stop();
    }
}
