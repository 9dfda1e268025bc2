//! Replicas that `siltstone rebuild-aux` made follow a real leader, join its in-sync replicas, and
//! lead: with what Kafka's own rebuild forgets.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use siltstone::index::TxnEntries;
use siltstone::io::Disk;
use siltstone::tier::{LocalTarget, ObjectTarget};
use siltstone_tests::tool;

use crate::clients::{Clients, TopicOffsets, until, with};
use crate::cluster::Cluster;
use crate::kafka;

/// Transactions that are aborted behind the rebuild: of records before it and behind it, and of
/// records before it alone.
const ABORTED: [(&str, usize); 2] = [("crossing", 7), ("whole", 5)];
/// Producers that have sent all they will before the rebuild.
const SEQUENCES: &str = "sequences";
/// Two leader epochs, and a log start within a remote segment.
const EPOCHS: &str = "epochs";
const EPOCHS_START: i64 = 30;
const TOPICS: [&str; 4] = ["crossing", "whole", SEQUENCES, EPOCHS];
/// No producer of the brokers gets such an id.
const PRODUCER: i64 = 1_000_000;

#[test]
fn a_rebuilt_replica_follows_and_leads_as_one_that_was_always_there() {
    // spec: tiered-faults T2, T4
    let Some(kafka) = kafka() else { return };
    let mut cluster = Cluster::new(kafka, 2);
    let mut clients = Clients::start(kafka, &cluster.addresses());
    start_both(&mut cluster, &mut clients);
    write_led_by_two(&cluster, &mut clients);
    cluster.stop(2);
    write_led_by_one(&cluster, &mut clients);
    let uploaded = remote_logs(&cluster);

    let offsets = TOPICS.map(|topic| clients.offsets(topic));
    rebuild(&cluster, &offsets);
    check_verified(&cluster);
    cluster.start(2);
    join(&cluster, &mut clients, &offsets);
    lead(&mut clients);

    check_aborted(&mut clients, "led by the rebuilt replica");
    check_aborted_index(&cluster, &offsets);
    check_sequences(&cluster, &mut clients);
    check_epochs(&cluster, &mut clients, &uploaded);

    // What the rebuilt replica uploads, and leaves to others, is right, too.
    for (topic, _) in ABORTED {
        clients.fill(topic, 30);
        clients.wait_for_uploads(&cluster, 2, topic);
    }
    cluster.stop(2);
    for topic in TOPICS {
        clients.wait_for_leader(topic, 1);
    }
    for (topic, _) in ABORTED {
        clients.wait_for_deletions(&cluster, 1, topic);
    }
    check_verified(&cluster);
    check_aborted(&mut clients, "led by the other one again");
    check_epochs(&cluster, &mut clients, &uploaded);
}

/// Starts both nodes; the topics of the brokers themselves are on node 1 alone.
fn start_both(cluster: &mut Cluster<'_>, clients: &mut Clients) {
    cluster.start(1);
    let metadata = cluster.partition(1, "__remote_log_metadata");
    until("the topic of remote metadata is there", || metadata.exists());
    clients.ask(json!({
        "do": "create",
        "topic": "__transaction_state",
        "replicas": [1],
        "configs": {"cleanup.policy": "compact"},
    }));
    cluster.start(2);
}

/// An order to the producer of a topic's transaction.
fn transaction(topic: &str, count: usize) -> Value {
    json!({
        "topic": topic,
        "producer": topic,
        "settings": {"transactional.id": topic, "enable.idempotence": "true",
                     "transaction.timeout.ms": "600000"},
        "text": "aborted",
        "count": count,
    })
}

/// Sends a batch of producer number `id`; the answer.
fn send_raw(
    (cluster, node): (&Cluster<'_>, usize),
    clients: &mut Clients,
    (id, epoch): (i64, i16),
    (sequence, count): (i32, usize),
) -> (String, i64) {
    let told = clients.ask(json!({
        "do": "send_raw",
        "port": cluster.port(node),
        "topic": SEQUENCES,
        "producer_id": PRODUCER + id,
        "epoch": epoch,
        "sequence": sequence,
        "count": count,
        "text": format!("producer {id}"),
    }));
    (told["error"].as_str().expect("a code").to_owned(), told["base"].as_i64().expect("an offset"))
}

/// An order to a real producer that stays open for long.
fn kept() -> Value {
    json!({
        "do": "send",
        "topic": SEQUENCES,
        "producer": "kept",
        "settings": {"enable.idempotence": "true"},
        "text": "kept",
    })
}

/// What is written in the first leader epoch: more than a segment.
fn write_led_by_two(cluster: &Cluster<'_>, clients: &mut Clients) {
    for topic in TOPICS {
        clients.create(topic, &[2, 1], &[("local.retention.bytes", "1")]);
    }
    for (topic, _) in ABORTED {
        clients.ask(with(transaction(topic, 5), "begin"));
        clients.ask(with(transaction(topic, 5), "send"));
    }
    for (at, producer) in [(0, (1, 0)), (5, (2, 0)), (10, (3, 1)), (15, (4, 0))] {
        let answer = send_raw((cluster, 2), clients, producer, (0, 5));
        assert_eq!(answer, ("NONE".to_owned(), at));
    }
    clients.ask(kept());
    for topic in TOPICS {
        clients.fill(topic, 30);
    }
}

/// What is written in the second one, so that the first local segment begins in it, and what is
/// below that is in remote storage alone.
fn write_led_by_one(cluster: &Cluster<'_>, clients: &mut Clients) {
    for topic in TOPICS {
        clients.wait_for_leader(topic, 1);
        clients.fill(topic, 30);
    }
    for (topic, count) in ABORTED {
        if count > 5 {
            clients.ask(with(transaction(topic, count - 5), "send"));
        }
        clients.ask(with(transaction(topic, 0), "abort"));
        until(&format!("{topic} is decided"), || {
            let offsets = clients.offsets(topic);
            offsets.stable == offsets.end
        });
    }
    let order = json!({"do": "delete_records", "topic": EPOCHS, "before": EPOCHS_START});
    clients.ask(order);
    for topic in TOPICS {
        clients.wait_for_uploads(cluster, 1, topic);
        clients.wait_for_deletions(cluster, 1, topic);
    }
}

/// The names of the logs in remote storage.
fn remote_logs(cluster: &Cluster<'_>) -> BTreeSet<String> {
    let target = LocalTarget::new(Arc::new(Disk::new()), cluster.remote());
    let objects = target.list("").expect("a listing").into_iter().map(|object| object.name);
    objects.filter(|name| name.ends_with(".log")).collect()
}

/// Node 2 loses its replicas and gets them from remote storage.
fn rebuild(cluster: &Cluster<'_>, offsets: &[TopicOffsets]) {
    let (remote, data) = (cluster.remote(), cluster.data(2));
    for (topic, offsets) in TOPICS.iter().zip(offsets) {
        fs::remove_dir_all(cluster.partition(2, topic)).expect("a replica");
        let outcome = tool::run([
            "rebuild-aux",
            "--json",
            "--remote",
            &remote.display().to_string(),
            "--log-start-offset",
            &offsets.start.to_string(),
            "--partition",
            &format!("{topic}-0"),
            &data.display().to_string(),
        ]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let told = outcome.json();
        assert_eq!(
            (&told["status"], &told["next_offset"]),
            (&json!("rebuilt"), &json!(offsets.local_start))
        );
    }
}

/// The replicas of node 2 catch up from where they were rebuilt.
fn join(cluster: &Cluster<'_>, clients: &mut Clients, offsets: &[TopicOffsets]) {
    for (topic, offsets) in TOPICS.iter().zip(offsets) {
        let order = json!({"do": "partition", "topic": topic});
        until(&format!("{topic} is in sync"), || {
            clients.ask(order.clone())["isr"] == json!([1, 2])
        });
        assert_eq!(cluster.bases(2, topic), [offsets.local_start], "{topic}");
    }
    // Kafka did not do it again.
    for sign in ["Reset fetch offset", "Updated the epoch cache", "Couldn't build the state"] {
        assert!(!cluster.log(2).contains(sign), "{sign}");
    }
}

fn lead(clients: &mut Clients) {
    for topic in TOPICS {
        clients.ask(json!({"do": "elect", "topic": topic}));
        clients.wait_for_leader(topic, 2);
    }
}

/// Nothing is found that Kafka's own rebuild would have left on node 2.
fn check_verified(cluster: &Cluster<'_>) {
    let [remote, data] = [cluster.remote(), cluster.data(2)].map(|it| it.display().to_string());
    let outcome = tool::run(["verify", "--json", "--remote", &remote, &data]);
    let lines = outcome.json_lines().into_iter();
    let of_remote: Vec<Value> = lines.filter(|line| line["type"] == "remote").collect();
    assert_eq!(of_remote, [] as [Value; 0]);
    assert!(matches!(outcome.code, Some(0 | 1)), "{outcome:?}");
}

fn begins_with(text: &str) -> impl Fn(&&Value) -> bool {
    move |record| record[3].as_str().is_some_and(|value| value.starts_with(text))
}

/// Readers of committed data see all but the aborted records.
fn check_aborted(clients: &mut Clients, when: &str) {
    for (topic, count) in ABORTED {
        let all = clients.read(topic, false, 0);
        assert_eq!(all.iter().filter(begins_with("aborted")).count(), count, "{topic}, {when}");
        let committed = clients.read(topic, true, 0);
        assert_eq!(committed.iter().find(begins_with("aborted")), None, "{topic}, {when}");
        let wanted = all.iter().filter(begins_with("fill"));
        assert!(committed.iter().eq(wanted), "{topic}, {when}");
    }
}

/// The transaction index says where each transaction began.
fn check_aborted_index(cluster: &Cluster<'_>, offsets: &[TopicOffsets]) {
    for ((topic, _), offsets) in ABORTED.iter().zip(offsets) {
        let name = format!("{:020}.txnindex", offsets.local_start);
        let index = fs::read(cluster.partition(2, topic).join(name)).expect("an index");
        let mut found = Vec::new();
        let entries = TxnEntries::new(&index);
        entries.collect_aborted(0, i64::MAX, &mut found).expect("entries");
        let found: Vec<_> = found.iter().map(|txn| (txn.first_offset, txn.last_offset)).collect();
        // The marker was the last record.
        assert_eq!(found, [(0, offsets.end - 1)], "{topic}");
    }
}

/// What producers sent before the rebuild is known.
fn check_sequences(cluster: &Cluster<'_>, clients: &mut Clients) {
    let at = (cluster, 2);
    let is = |code: &str, base: i64| (code.to_owned(), base);
    let end = clients.offsets(SEQUENCES).end;
    assert_eq!(send_raw(at, clients, (1, 0), (0, 5)), is("NONE", 0), "the same batch again");
    let gap = send_raw(at, clients, (2, 0), (99, 1));
    assert_eq!(gap, is("OUT_OF_ORDER_SEQUENCE_NUMBER", -1));
    let fenced = send_raw(at, clients, (3, 0), (5, 1));
    assert_eq!(fenced, is("INVALID_PRODUCER_EPOCH", -1));
    assert_eq!(clients.offsets(SEQUENCES).end, end, "something was appended");
    assert_eq!(send_raw(at, clients, (4, 0), (5, 1)), is("NONE", end), "the next batch");
    assert_eq!(send_raw(at, clients, (4, 0), (0, 5)), is("NONE", 15), "the one before again");
    assert_eq!(clients.ask(kept()), json!([end + 1, end + 5]), "the producer that stayed");
    let seen = clients.read(SEQUENCES, true, 0);
    let count = |id: i64| seen.iter().filter(begins_with(&format!("producer {id}-"))).count();
    assert_eq!([1, 2, 3, 4].map(count), [5, 5, 5, 6]);
}

/// Nothing of the older epoch is lost, though leaders have had time to delete it.
fn check_epochs(cluster: &Cluster<'_>, clients: &mut Clients, uploaded: &BTreeSet<String>) {
    std::thread::sleep(Duration::from_secs(3));
    let offsets = clients.offsets(EPOCHS);
    assert_eq!(offsets.start, EPOCHS_START);
    let records = clients.read(EPOCHS, false, EPOCHS_START);
    let found: Vec<_> = records.iter().filter_map(|record| record[0].as_i64()).collect();
    assert_eq!(found, (EPOCHS_START..offsets.end).collect::<Vec<_>>());
    assert!(uploaded.is_subset(&remote_logs(cluster)), "remote segments were deleted");
}
