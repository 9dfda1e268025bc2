//! Producers and aborted transactions by the thousand.

use siltstone::index::{AbortedTxn, TxnIndexBuilder};
use siltstone::state::ProducerEntry;

use crate::batches::FIRST_TIMESTAMP_MS;

/// Producers, each with one batch and no open transaction.
#[must_use]
pub fn producers(count: u32) -> Vec<ProducerEntry> {
    let producer = |number: u32| ProducerEntry {
        producer_id: 100_000 + i64::from(number) * 7,
        last_offset: 1_000_000 + i64::from(number),
        last_timestamp: FIRST_TIMESTAMP_MS + i64::from(number),
        txn_first_offset: -1,
        last_sequence: number.cast_signed() * 3,
        offset_delta: 2,
        coordinator_epoch: -1,
        producer_epoch: 1,
    };
    (0..count).map(producer).collect()
}

/// The bytes of a transaction index.
#[must_use]
pub fn transactions(count: u32) -> Vec<u8> {
    let mut index = TxnIndexBuilder::new();
    for number in 0..count {
        let first_offset = i64::from(number) * 10;
        let txn = AbortedTxn {
            producer_id: i64::from(number % 1000),
            first_offset,
            last_offset: first_offset + 5,
            last_stable_offset: first_offset + 6,
        };
        index.append(&txn).expect("last offsets rise");
    }
    index.into_bytes()
}
