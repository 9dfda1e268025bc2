//! What a broker uploads our readers read, record for record as its consumers do; and what is said
//! of its segments and its uploads is what it did.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use siltstone::io::Disk;
use siltstone::log::{FetchOptions, Isolation};
use siltstone::tier::{
    LocalTarget, MetadataCache, ObjectLayout, RemoteInventory, RemoteMetadata, RemoteSegment,
    RemoteSegmentState, RemoteTimestamp, RemoteView, TargetIndexes, read_metadata_log,
    remote_offset_for_timestamp,
};
use siltstone_tests::tool;

use crate::clients::{Clients, TopicOffsets, with};
use crate::cluster::Cluster;
use crate::kafka;
use crate::remote_reader::{open, read_directly, read_through};

/// What consumers saw of a topic.
struct Seen {
    topic: &'static str,
    offsets: TopicOffsets,
    /// With uncommitted and with committed data.
    records: [Vec<Value>; 2],
    /// Timestamps, and offset and timestamp of the first record that is as late.
    times: Vec<(i64, Value)>,
}

#[test]
fn what_a_broker_uploads_is_read_as_its_consumers_read_it() {
    let Some(kafka) = kafka() else { return };
    let mut cluster = Cluster::new(kafka, 1);
    let mut clients = Clients::start(kafka, &cluster.addresses());
    cluster.start(1);
    compressed(&mut clients);
    transactions(&mut clients);
    idempotent(&mut clients);
    undecided(&mut clients);
    let topics = ["compressed", "transactions", "idempotent", "undecided"];
    let seen = topics.map(|topic| see(&cluster, &mut clients, topic));
    let is_told_apart = |seen: &Seen| seen.records[0].len() > seen.records[1].len() + 30;
    assert_eq!(seen.each_ref().map(is_told_apart), [false, true, false, true]);
    drop(clients);
    cluster.stop(1);

    let store = Store::open(&cluster);
    store.check_inventory();
    for seen in &seen {
        store.check_reads(&cluster, seen);
    }
    check_plans(&cluster, &store, &seen);
}

/// Batches of every codec, in segments that leave the local disk.
fn compressed(clients: &mut Clients) {
    clients.create("compressed", &[1], &[("local.retention.bytes", "1")]);
    for round in 0..4 {
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
            clients.ask(json!({
                "do": "send",
                "topic": "compressed",
                "producer": codec,
                "settings": {"compression.type": codec},
                "text": format!("{codec}{round}"),
                "count": 7,
                "batches": 6,
            }));
        }
        // Without values.
        let order = json!({"topic": "compressed", "producer": "zstd", "count": 2});
        clients.ask(with(order, "send"));
    }
}

/// Transactions side by side across segments that leave the local disk; some are aborted.
fn transactions(clients: &mut Clients) {
    clients.create("transactions", &[1], &[("local.retention.bytes", "1")]);
    let order = |producer: &str, codec: &str| {
        json!({
            "topic": "transactions",
            "producer": producer,
            "settings": {"transactional.id": producer, "enable.idempotence": "true",
                         "transaction.timeout.ms": "600000", "compression.type": codec},
            "text": producer,
        })
    };
    let (first, second) = (order("first", "none"), order("second", "lz4"));
    for round in 0..8 {
        clients.ask(with(first.clone(), "begin"));
        clients.ask(with(second.clone(), "begin"));
        clients.ask(with(first.clone(), "send"));
        clients.ask(with(second.clone(), "send"));
        clients.fill("transactions", 6);
        clients.ask(with(first.clone(), "send"));
        clients.ask(with(first.clone(), if round % 3 == 1 { "abort" } else { "commit" }));
        clients.fill("transactions", 4);
        clients.ask(with(second.clone(), "send"));
        clients.ask(with(second.clone(), if round % 2 == 0 { "abort" } else { "commit" }));
    }
    clients.fill("transactions", 20);
}

/// Segments that stay on the local disk, too.
fn idempotent(clients: &mut Clients) {
    clients.create("idempotent", &[1], &[]);
    clients.ask(json!({
        "do": "send",
        "topic": "idempotent",
        "producer": "idempotent",
        "settings": {"enable.idempotence": "true"},
        "text": "idempotent",
        "batches": 70,
    }));
}

/// A transaction that is open when the broker stops, and segments behind it.
fn undecided(clients: &mut Clients) {
    clients.create("undecided", &[1], &[]);
    let order = json!({
        "topic": "undecided",
        "producer": "open",
        "settings": {"transactional.id": "open", "enable.idempotence": "true",
                     "transaction.timeout.ms": "600000"},
        "text": "open",
    });
    clients.fill("undecided", 40);
    clients.ask(with(order.clone(), "begin"));
    clients.ask(with(order, "send"));
    clients.fill("undecided", 40);
}

/// Waits until the broker has uploaded what it may, and reads.
fn see(cluster: &Cluster<'_>, clients: &mut Clients, topic: &'static str) -> Seen {
    clients.wait_for_uploads(cluster, 1, topic);
    if ["compressed", "transactions"].contains(&topic) {
        clients.wait_for_deletions(cluster, 1, topic);
    }
    let records = [false, true].map(|is_committed| clients.read(topic, is_committed, 0));
    let timestamps = records[0].iter().step_by(9).filter_map(|record| record[1].as_i64());
    let last = records[0].iter().filter_map(|record| record[1].as_i64()).max();
    let timestamps: Vec<i64> = timestamps.chain(last.map(|last| last + 1)).collect();
    let found = clients.ask(json!({"do": "times", "topic": topic, "timestamps": timestamps}));
    let found = found.as_array().expect("records").iter().cloned();
    let times = timestamps.into_iter().zip(found).collect();
    Seen { topic, offsets: clients.offsets(topic), records, times }
}

/// What the broker left in remote storage, and what it said of that.
struct Store {
    target: LocalTarget,
    layout: ObjectLayout,
    metadata: RemoteMetadata,
}

impl Store {
    fn open(cluster: &Cluster<'_>) -> Self {
        let target = LocalTarget::new(Arc::new(Disk::new()), cluster.remote());
        let mut metadata = RemoteMetadata::new();
        let dir = cluster.partition(1, "__remote_log_metadata");
        let report = read_metadata_log(&Disk::new(), &dir, &mut metadata).expect("a log");
        metadata.mark_loaded();
        assert!(report.problems.is_empty() && report.refused.is_empty(), "{report:?}");
        assert!(report.dropped.is_empty(), "{report:?}");
        Store { target, layout: ObjectLayout::default(), metadata }
    }

    fn cache(&self, topic: &str) -> &MetadataCache {
        let found = self.metadata.find(topic, 0);
        assert_eq!(found.len(), 1, "{topic}");
        found[0]
    }

    /// The objects alone tell what the broker said of them.
    fn check_inventory(&self) {
        let inventory = RemoteInventory::list(&self.target, &self.layout).expect("a listing");
        assert_eq!(inventory.others, []);
        let found = inventory.read_segments(&self.target, &self.layout).expect("segments");
        let caches = self.metadata.partitions();
        let told: Vec<&RemoteSegment> = caches.iter().flat_map(|cache| cache.list_all()).collect();
        assert!(told.iter().all(|it| it.state == RemoteSegmentState::CopyFinished), "{told:?}");
        // What no object tells.
        let bare = |segment: &RemoteSegment| {
            let (broker_id, event_timestamp_ms, custom_metadata) = (-1, -1, None);
            RemoteSegment { broker_id, event_timestamp_ms, custom_metadata, ..segment.clone() }
        };
        let by_id = |segment: RemoteSegment| (segment.id.clone(), segment);
        let told: BTreeMap<_, _> = told.into_iter().map(|it| by_id(bare(it))).collect();
        let found: BTreeMap<_, _> = found.into_iter().map(by_id).collect();
        assert!(told.len() > 12, "{} segments are few", told.len());
        assert_eq!(found, told);
    }

    /// Our readers see what the consumers saw.
    fn check_reads(&self, cluster: &Cluster<'_>, seen: &Seen) {
        let Seen { topic, offsets, .. } = seen;
        let log = open(&cluster.partition(1, topic), offsets);
        let epochs = log.leader_epochs();
        let indexes = TargetIndexes { target: &self.target, layout: &self.layout };
        let remote = RemoteView {
            cache: self.cache(topic),
            epochs: &epochs,
            log_start_offset: offsets.start,
            log_end_offset: offsets.end,
            target: &self.target,
            layout: &self.layout,
            indexes: &indexes,
            local: &log,
        };
        for (is_committed, wanted) in [false, true].into_iter().zip(&seen.records) {
            let label = format!("{topic}, committed: {is_committed}");
            let isolation =
                if is_committed { Isolation::Committed } else { Isolation::HighWatermark };
            for max_bytes in [1, 5000] {
                let options = FetchOptions { max_bytes, isolation, min_one_message: true };
                let read = read_through(&remote, &log, offsets, &options);
                assert_same(&read, wanted, &format!("{label}, by {max_bytes} bytes"));
            }
            let tiered = |record: &&Value| record[0].as_i64() <= Some(offsets.tiered);
            let wanted: Vec<Value> = wanted.iter().filter(tiered).cloned().collect();
            assert!(wanted.len() > 100, "{label}: {} records are few", wanted.len());
            let read = read_directly(&remote, offsets, isolation);
            assert_same(&read, &wanted, &format!("{label}, directly"));
        }
        for (timestamp_ms, wanted) in &seen.times {
            let local_base = Some(offsets.local_start);
            let told = remote_offset_for_timestamp(&remote, *timestamp_ms, 0, local_base);
            let found = match told.expect("an answer") {
                RemoteTimestamp::Found(found) => found,
                RemoteTimestamp::TryLocal => {
                    log.offset_for_timestamp(*timestamp_ms).expect("an answer")
                }
            };
            let found = found.map_or((-1, -1), |record| (record.offset, record.timestamp_ms));
            assert_eq!(&json!(found), wanted, "{topic} at {timestamp_ms}");
        }
    }
}

fn assert_same(read: &[Value], wanted: &[Value], label: &str) {
    let mut pairs = read.iter().zip(wanted);
    assert_eq!(
        pairs.find(|(read, wanted)| read != wanted),
        None,
        "{label}: the first that differs"
    );
    assert_eq!(read.len(), wanted.len(), "{label}");
}

/// As long as nothing counts as copied, just the segments are planned that the broker uploaded, as
/// far as they are on its disk still; and none, when remote storage is looked at.
fn check_plans(cluster: &Cluster<'_>, store: &Store, seen: &[Seen]) {
    let remote = cluster.remote().display().to_string();
    let all = plan(cluster, &[]);
    let rest = plan(cluster, &["--remote", &remote]);
    for Seen { topic, offsets, .. } in seen {
        let mut uploaded: Vec<(i64, i64)> = store
            .cache(topic)
            .list_all()
            .iter()
            .filter(|segment| segment.start_offset >= offsets.local_start)
            .map(|segment| (segment.start_offset, segment.end_offset))
            .collect();
        uploaded.sort_unstable();
        let is_kept = offsets.local_start == offsets.start;
        assert_eq!(uploaded.len() > 1, is_kept, "{topic}: {uploaded:?}");
        assert_eq!(all[*topic]["candidates"], json!(uploaded), "{topic}");
        assert_eq!(rest[*topic]["candidates"], json!([]), "{topic}");
        assert_eq!(rest[*topic]["highest_remote_offset"], offsets.tiered, "{topic}");
        assert_eq!(rest[*topic]["last_stable_offset"], offsets.stable, "{topic}");
        let stop = if *topic == "undecided" { "above_last_stable" } else { "active" };
        assert_eq!((&all[*topic]["stop"], &rest[*topic]["stop"]), (&json!(stop), &json!(stop)));
    }
}

/// The plans of all partitions, by topic.
fn plan(cluster: &Cluster<'_>, options: &[&str]) -> BTreeMap<String, Value> {
    let paths = [cluster.metadata(1), cluster.data(1)].map(|path| path.display().to_string());
    let arguments = ["plan-uploads", "--json", "--metadata", &paths[0], &paths[1]];
    let outcome = tool::run(arguments.iter().chain(options));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines = outcome.json_lines().into_iter();
    lines.map(|line| (line["topic"].as_str().expect("a topic").to_owned(), line)).collect()
}
