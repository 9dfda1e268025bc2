//! Requests that would take more than they may: the broker of `examples/broker-cpp` refuses them,
//! and has nothing of them left.

use crate::example_broker::ExampleBroker;
use crate::example_wire::{Client, Producer};

const CORRUPT_MESSAGE: i16 = 2;
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
