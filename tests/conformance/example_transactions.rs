//! Transactions whose end does not go well: the broker of `examples/broker-cpp` lives on, and what
//! was decided stays so.

use std::fs::{self, OpenOptions};
use std::io::Write;

use crate::clients::until;
use crate::example_broker::ExampleBroker;
use crate::example_wire::{Client, Producer};

const INVALID_TXN_STATE: i16 = 48;
const INVALID_PRODUCER_ID_MAPPING: i16 = 49;
const CONCURRENT_TRANSACTIONS: i16 = 51;

#[test]
fn a_marker_that_the_log_refuses_is_tried_again() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    let mut client = Client::of(&broker);
    // The record has place, the marker at the end of its transaction has none.
    let setting = ("max.message.bytes", "70");
    assert_eq!(client.create("small", 1, Some(setting)), 0);
    assert_eq!(client.create("other", 1, None), 0);
    let producer = client.init("t");
    for topic in ["small", "other"] {
        assert_eq!(client.add("t", producer, topic), 0);
        let records = producer.batch(0, true);
        assert_eq!(client.produce(topic, Some("t"), Some(&records)), (0, 0));
    }
    assert_eq!(client.commit("t", producer), 0);
    let is_decided = |client: &mut Client| {
        assert_eq!((client.end("small", true), client.end("small", false)), (0, 1));
        assert_eq!((client.end("other", true), client.end("other", false)), (2, 2));
        assert_eq!(client.commit("t", producer), CONCURRENT_TRANSACTIONS);
        assert_eq!(client.add("t", producer, "other"), CONCURRENT_TRANSACTIONS);
        assert_eq!(client.try_init("t").expect("an answer").0, CONCURRENT_TRANSACTIONS);
        let more = producer.batch(1, true);
        assert_eq!(client.produce("small", Some("t"), Some(&more)), (INVALID_TXN_STATE, -1));
    };
    is_decided(&mut client);

    // The next start knows all partitions again, and the one that has its marker takes another.
    broker.kill_and_restart();
    let mut client = Client::of(&broker);
    until("the other partition was tried again", || client.end("other", true) == 3);
    assert_eq!((client.end("small", true), client.end("small", false)), (0, 1));
    assert_eq!(client.commit("t", producer), CONCURRENT_TRANSACTIONS);
    broker.stop();
    let settings = broker.data().join("topic-settings");
    let text = fs::read_to_string(&settings).expect("the settings");
    assert!(text.contains("small max.message.bytes=70\n"), "{text}");
    fs::write(&settings, text.replace("=70\n", "=700\n")).expect("room on the disk");
    broker.restart();
    let mut client = Client::of(&broker);
    until("the transaction has ended", || client.end("small", true) == 2);
    assert_eq!(client.commit("t", producer), 0);
    assert_eq!(client.add("t", producer, "small"), 0);
    broker.stop();
    broker.verify();
}

#[test]
fn a_transaction_ends_without_a_partition_that_knows_a_later_epoch() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    let mut client = Client::of(&broker);
    assert_eq!(client.create("topic", 1, None), 0);
    let producer = client.init("t");
    assert_eq!(client.add("t", producer, "topic"), 0);
    let later = Producer { epoch: 5, ..producer };
    assert_eq!(client.produce("topic", None, Some(&later.batch(0, false))), (0, 0));
    for _ in 0..2 {
        assert_eq!(client.commit("t", producer), 0);
    }
    broker.kill_and_restart();
    let mut client = Client::of(&broker);
    assert_eq!(client.commit("t", producer), 0);
    assert_eq!((client.end("topic", true), client.end("topic", false)), (1, 1));
    broker.stop();
}

#[test]
fn what_the_journal_has_no_place_for_has_not_happened() {
    // As on a full disk: files have a largest size, and what would make one larger fails.
    let limits = "trap '' XFSZ; ulimit -f 64";
    let Some(mut broker) = ExampleBroker::start_under(limits, &[]) else { return };
    let long = |number: usize| format!("{number:0900}");
    let mut given = Vec::new();
    let mut client = Client::of(&broker);
    while let Some((error, producer)) = client.try_init(&long(given.len())) {
        assert_eq!(error, 0);
        given.push((long(given.len()), producer));
        assert!(given.len() < 200, "all have place");
    }
    let refused = long(given.len());
    assert!(given.len() > 20, "{}", given.len());
    // What is shorter has place still, and nothing of the other one stands before it.
    let mut client = Client::of(&broker);
    given.push(("short".to_owned(), client.init("short")));
    let told = |client: &mut Client| {
        for (id, producer) in &given {
            assert_eq!(client.commit(id, *producer), INVALID_TXN_STATE, "{id}");
        }
        let unknown = Producer { id: -1, epoch: -1 };
        assert_eq!(client.commit(&refused, unknown), INVALID_PRODUCER_ID_MAPPING);
    };
    told(&mut client);
    broker.kill_and_restart();
    told(&mut Client::of(&broker));
    broker.stop();
}

#[test]
fn zeros_behind_the_journal_are_no_entries() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    let producer = Client::of(&broker).init("t");
    broker.stop();
    let journal = broker.data().join("transactions");
    let mut journal = OpenOptions::new().append(true).open(journal).expect("the journal");
    journal.write_all(&[0; 100]).expect("room on the disk");
    for epoch in 1..3 {
        broker.restart();
        assert_eq!(Client::of(&broker).init("t"), Producer { epoch, ..producer });
        broker.stop();
    }
}
