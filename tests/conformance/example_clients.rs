//! Clients that know nothing of siltstone work with the broker of `examples/broker-cpp`: kcat,
//! Kafka's console tools and its Java clients.

use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::broker::Kafka;
use crate::clients::{Clients, until, with};
use crate::example_broker::{ExampleBroker, kcat, kcat_at};
use crate::kafka;

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

/// The values that a consumer has seen, up to the first blank.
fn names(records: &[Value]) -> Vec<&str> {
    let values = records.iter().map(|record| record[3].as_str().expect("a value"));
    values.map(|value| value.split(' ').next().expect("a part")).collect()
}

/// What `send` gives to records of this text, in order.
fn sent(text: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{text}-{number}")).collect()
}

#[test]
fn kcat_reads_back_what_it_wrote_with_every_codec() {
    let Some(mut broker) = ExampleBroker::start(&["--partitions", "3"]) else { return };
    let lines: Vec<String> = (0..2000).map(|number| format!("line {number}")).collect();
    let text = lines.join("\n") + "\n";
    for (number, &codec) in CODECS.iter().enumerate() {
        // An idempotent producer and one without an id, and all partitions.
        let idempotence = format!("enable.idempotence={}", number % 2 == 0);
        let partition = (number % 3).to_string();
        let arguments = ["-P", "-t", codec, "-p", &partition, "-z", codec, "-X", &idempotence];
        kcat(&broker, &arguments, &text);
    }
    broker.kill_and_restart();
    let read_back = |address: &str| {
        for (number, &codec) in CODECS.iter().enumerate() {
            let partition = (number % 3).to_string();
            let from = |offset: &str| {
                let topic = ["-C", "-q", "-e", "-t", codec, "-p", &partition, "-o", offset];
                kcat_at(address, &topic, "")
            };
            assert_eq!(from("beginning"), text, "{codec}");
            assert_eq!(from("-1"), "line 1999\n", "{codec}");
        }
    };
    read_back(&broker.address());
    let listed = kcat(&broker, &["-L"], "");
    assert!(listed.contains("5 topics:"), "{listed}");
    // Its directory is read while it runs, too.
    broker.verify();
    broker.stop();
    broker.restart();
    assert_eq!(kcat(&broker, &["-L"], ""), listed);
    broker.stop();
    broker.verify();
    let Some(kafka) = kafka() else { return };
    taken_over(kafka, &broker, read_back);
}

/// Kafka's own broker goes on with what the example has left, and has nothing to mend.
fn taken_over(kafka: &Kafka, broker: &ExampleBroker, read_back: impl FnOnce(&str)) {
    let judgement = kafka.judge_while(&broker.data(), &json!({}), None, read_back);
    assert_eq!(judgement.repairs, Vec::<String>::new(), "Kafka repaired");
    assert_eq!(judgement.changed, Vec::<String>::new(), "Kafka changed");
}

#[test]
fn the_console_tools_produce_and_consume() {
    let Some(kafka) = kafka() else { return };
    let Some(mut broker) = ExampleBroker::start(&["--flush-before-ack"]) else { return };
    let address = broker.address();
    let mut java = kafka.java("error");
    java.args(["org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", &address]);
    java.args(["--topic", "console", "--reader-property", "parse.key=true"]);
    java.stdin(Stdio::piped());
    let mut producer = java.spawn().expect("java ran before");
    let text: String = (0..30).map(|number| format!("key {number}\tvalue {number}\n")).collect();
    let mut stdin = producer.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("a producer that reads");
    drop(stdin);
    assert!(producer.wait().expect("a child to wait for").success());
    let expected: Vec<String> =
        (0..30).map(|number| format!("Offset:{number}\tkey {number}\tvalue {number}")).collect();
    for isolation in ["read_committed", "read_uncommitted"] {
        assert_eq!(kafka.console_consumer(&address, "console", isolation, 30), expected);
    }
    broker.stop();
    broker.verify();
}

#[test]
fn consumers_of_committed_data_see_committed_transactions_alone() {
    let Some(kafka) = kafka() else { return };
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    let mut clients = Clients::start(kafka, &broker.address());
    let configs = json!({"internal.segment.bytes": "16384", "compression.type": "zstd"});
    clients.ask(with(json!({"topic": "txn", "replicas": [1], "configs": configs}), "create"));
    clients.wait_for_leader("txn", 1);
    let refused = with(json!({"topic": "bad", "replicas": [1], "configs": {"no": "1"}}), "create");
    let refused = clients.try_ask(&refused).expect_err("a setting that is none");
    assert!(refused.contains("InvalidConfigurationException"), "{refused}");

    let settings = json!({"transactional.id": "t", "enable.idempotence": "true"});
    let order = |text: &str| {
        let settings = settings.clone();
        json!({"producer": "p", "topic": "txn", "settings": settings, "text": text, "count": 40})
    };
    for (text, end) in [("first", "commit"), ("second", "abort"), ("third", "commit")] {
        clients.ask(with(order(text), "begin"));
        clients.ask(with(order(text), "send"));
        clients.ask(with(order(text), end));
    }
    clients.ask(with(order("open"), "begin"));
    clients.ask(with(order("open"), "send"));
    let committed = [sent("first", 40), sent("third", 40)].concat();
    assert_eq!(names(&clients.read("txn", true, 0)), committed);
    let all = [sent("first", 40), sent("second", 40), sent("third", 40), sent("open", 40)].concat();
    assert_eq!(names(&clients.read("txn", false, 0)), all);

    // A transaction goes on after a kill.
    broker.kill_and_restart();
    clients.ask(with(order("more"), "send"));
    assert_eq!(names(&clients.read("txn", true, 0)), committed);
    clients.ask(with(order("open"), "commit"));
    let committed = [committed, sent("open", 40), sent("more", 40)].concat();
    assert_eq!(names(&clients.read("txn", true, 0)), committed);

    // Another producer takes over: what was open is aborted, and the first one may do nothing more.
    clients.ask(with(order("lost"), "begin"));
    clients.ask(with(order("lost"), "send"));
    let mut other = order("other");
    other["producer"] = json!("q");
    for step in ["begin", "send", "commit"] {
        clients.ask(with(other.clone(), step));
    }
    let fenced = clients.try_ask(&with(order("lost"), "commit")).expect_err("it was fenced");
    assert!(fenced.contains("Fenced") || fenced.contains("InvalidProducerEpoch"), "{fenced}");
    let committed = [committed, sent("other", 40)].concat();
    assert_eq!(names(&clients.read("txn", true, 0)), committed);
    broker.stop();
    taken_over(kafka, &broker, |address| {
        let told = kafka.console_consumer(address, "txn", "read_committed", committed.len());
        let value = |line: &String| line.rsplit('\t').next().map(str::to_owned);
        let values: Option<Vec<String>> = told.iter().map(value).collect();
        let values = values.expect("lines with a value");
        let first = |value: &String| value.split(' ').next().map(str::to_owned);
        assert_eq!(values.iter().filter_map(first).collect::<Vec<_>>(), committed);
    });
}

#[test]
fn what_is_acknowledged_survives_kills_under_load() {
    const SENDS: usize = 600;
    const KILLS: usize = 4;
    let Some(kafka) = kafka() else { return };
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    let mut clients = Clients::start(kafka, &broker.address());
    let configs = json!({"internal.segment.bytes": "262144"});
    clients.ask(with(json!({"topic": "load", "replicas": [1], "configs": configs}), "create"));
    clients.wait_for_leader("load", 1);
    let acknowledged = &AtomicUsize::new(0);
    let mut clients = std::thread::scope(|scope| {
        let producer = scope.spawn(move || {
            let settings = json!({"enable.idempotence": "true", "reconnect.backoff.max.ms": "100"});
            for number in 0..SENDS {
                let order = json!({"producer": "p", "topic": "load", "settings": settings,
                    "text": format!("load-{number}"), "count": 20});
                clients.ask(with(order, "send"));
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
            clients
        });
        for kill in 1..=KILLS {
            let due = kill * SENDS / (KILLS + 1);
            until("some sends were acknowledged", || acknowledged.load(Ordering::SeqCst) >= due);
            broker.kill_and_restart();
        }
        producer.join().expect("all sends are acknowledged")
    });
    let expected: Vec<String> =
        (0..SENDS).flat_map(|number| sent(&format!("load-{number}"), 20)).collect();
    assert_eq!(names(&clients.read("load", true, 0)), expected);
    broker.stop();
}
