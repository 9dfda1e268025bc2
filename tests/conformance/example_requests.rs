//! Requests that would take more than they may: the broker of `examples/broker-cpp` refuses them,
//! and has nothing of them left.

use std::fs;

use crate::clients::until;
use crate::example_broker::{ExampleBroker, kcat};
use crate::example_wire::{Body, Client, Fetch, Producer, answer, frame};

const CORRUPT_MESSAGE: i16 = 2;
const INVALID_REQUEST: i16 = 42;
const OUT_OF_ORDER_SEQUENCE: i16 = 45;
const INVALID_PRODUCER_EPOCH: i16 = 47;
const INVALID_RECORD: i16 = 87;

const NOBODY: Producer = Producer { id: -1, epoch: -1 };

#[test]
fn records_that_are_no_batch_change_nothing() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    let mut client = Client::of(&broker);
    assert_eq!(client.create("topic", 1, None), 0);
    let batch = NOBODY.batch(-1, false);
    assert_eq!(client.produce("topic", None, Some(&batch)), (0, 0));
    let (header, short) = (&batch[..30], &batch[..batch.len() - 1]);
    for records in [None, Some(&[][..]), Some(header), Some(short)] {
        assert_eq!(client.produce("topic", None, records), (INVALID_RECORD, -1), "{records:?}");
        assert_eq!(client.end("topic", false), 1);
    }
    assert_eq!(client.produce("topic", None, Some(&batch)), (0, 1));
    broker.stop();
}

#[test]
fn who_claims_to_be_a_producer_does_not_hinder_it() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    let mut client = Client::of(&broker);
    assert_eq!(client.create("topic", 1, None), 0);
    let producer = client.init("t");
    assert_eq!(client.add("t", producer, "topic"), 0);
    let later = Producer { epoch: 5, ..producer }.batch(0, true);
    assert_eq!(client.produce("topic", Some("t"), Some(&later)), (INVALID_PRODUCER_EPOCH, -1));
    for mut damaged in [later, producer.batch(0, true)] {
        *damaged.last_mut().expect("a batch") ^= 1;
        assert_eq!(client.produce("topic", Some("t"), Some(&damaged)), (CORRUPT_MESSAGE, -1));
    }
    assert_eq!(client.produce("topic", Some("t"), Some(&producer.batch(7, true))), (0, 0));
    assert_eq!(client.commit("t", producer), 0);
    broker.stop();
}

#[test]
fn producers_that_are_silent_for_long_are_forgotten() {
    let options = ["--producer-expiration-ms", "5000", "--housekeeping-ms", "100"];
    let Some(mut broker) = ExampleBroker::start(&options) else { return };
    let mut client = Client::of(&broker);
    assert_eq!(client.create("topic", 1, None), 0);
    let producer = Producer { id: 7, epoch: 0 };
    assert_eq!(client.produce("topic", None, Some(&producer.batch(0, false))), (0, 0));
    let mut later = || client.produce("topic", None, Some(&producer.batch(100, false)));
    assert_eq!(later().0, OUT_OF_ORDER_SEQUENCE);
    // One that nobody knows may begin with any number.
    until("the producer was forgotten", || later() == (0, 1));
    broker.stop();
}

#[test]
fn ids_are_not_longer_than_they_may() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    let init = |size: usize| {
        // A flexible version, whose texts have no largest size by themselves.
        let size_plus_one = u32::try_from(size + 1).expect("a small size");
        let seven_bits = |shift: u32| u8::try_from(size_plus_one >> shift & 0x7f).expect("7 bits");
        let body = Body::default().raw(&[0, seven_bits(0) | 0x80, seven_bits(7) | 0x80]);
        let body = body.raw(&[seven_bits(14)]).raw(&vec![b'a'; size]).i32(1000).raw(&[0]);
        answer(&broker, &frame(22, 2, &body.0))
    };
    let error = |answer: &[u8]| i16::from_be_bytes([answer[13], answer[14]]);
    assert_eq!(error(&init(1000)), 0);
    assert_eq!(error(&init(1001)), INVALID_REQUEST);
    assert_eq!(error(&init(32_767)), INVALID_REQUEST);
    for size in [32_768, 40_000] {
        assert_eq!(init(size), b"", "{size}");
    }
    broker.stop();
}

#[test]
fn a_partition_is_asked_for_once_in_a_fetch() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    assert_eq!(Client::of(&broker).create("topic", 2, None), 0);
    let fetch = |partitions: &[i32]| {
        let fetch = Fetch { topic: "topic", partitions, max_bytes: 1000, max_wait_ms: 0 };
        answer(&broker, &fetch.frame())
    };
    assert_ne!(fetch(&[1, 0]), b"");
    assert_eq!(fetch(&[1, 0, 1]), b"");
    broker.stop();
}

#[test]
fn folders_that_belong_to_no_topic_are_left_alone() {
    let Some(mut broker) = ExampleBroker::start(&[]) else { return };
    assert_eq!(Client::of(&broker).create("orders", 3, None), 0);
    broker.stop();
    let folder = |name: &str| broker.data().join(name);
    let strays = ["orders-20261130", "orders-3", "x-2147483647", "late-1", "no topic-0"];
    for name in strays {
        fs::create_dir(folder(name)).expect("a new folder");
    }
    // As if a kill had come between the folders of the topic.
    for name in ["orders-1", "orders-2"] {
        fs::remove_dir_all(folder(name)).expect("a partition");
    }
    let settings = folder("topic-settings");
    for is_written_down in [true, false] {
        if !is_written_down {
            broker.stop();
            fs::remove_dir(broker.data().join("orders-3")).expect("an empty folder");
            fs::remove_file(&settings).expect("the settings");
        }
        broker.restart();
        let listed = kcat(&broker, &["-L"], "");
        assert!(listed.contains(" 1 topics:\n"), "{listed}");
        assert!(listed.contains("topic \"orders\" with 3 partitions:\n"), "{listed}");
    }
    // A topic takes no folder over that is not its own, and leaves none of its own then.
    assert_ne!(Client::of(&broker).create("late", 2, None), 0);
    assert!(!broker.data().join("late-0").exists());
    broker.stop();
    for name in strays.iter().filter(|name| **name != "orders-3") {
        let mut files = fs::read_dir(broker.data().join(name)).expect("the folder");
        assert!(files.next().is_none(), "{name}");
    }
}

#[test]
fn a_topic_that_cannot_be_made_leaves_nothing() {
    // Its logs need more open files than there may be.
    let Some(mut broker) = ExampleBroker::start_under("ulimit -n 100", &[]) else { return };
    let mut client = Client::of(&broker);
    assert_ne!(client.create("many", 200, None), 0);
    let names = || {
        let entries = fs::read_dir(broker.data()).expect("the log directory");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
    };
    assert!(names().all(|name| !name.starts_with("many-")), "{:?}", names().collect::<Vec<_>>());
    assert_eq!(client.create("many", 1, None), 0);
    assert_eq!(client.produce("many", None, Some(&NOBODY.batch(-1, false))), (0, 0));
    assert_eq!(names().filter(|name| name.starts_with("many-")).count(), 1);
    broker.stop();
    broker.verify();
}
