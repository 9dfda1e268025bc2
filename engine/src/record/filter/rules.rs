//! Who says what stays?

use crate::error::Result;
use crate::record::{BatchHeader, Record};

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// It goes, without a look at its records.
    Delete,
    /// It goes when none of its records stays.
    DeleteEmpty,
    /// Its header stays in any case: it says something of a producer, or how far the log goes.
    RetainEmpty,
}

/// The verdict on a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchVerdict {
    /// What becomes of it.
    pub retention: Retention,
    /// Whether it is the marker of a transaction of which nothing is left: if it stays, it gets a
    /// delete horizon, after which it may go.
    pub is_marker_of_empty_txn: bool,
}

/// Says which batches and records stay.
pub trait FilterRules {
    /// The verdict on a batch, of which all bytes are given. Batches come in the order of the log.
    ///
    /// # Errors
    /// What makes the filter give up.
    fn judge_batch(&mut self, header: &BatchHeader, batch: &[u8]) -> Result<BatchVerdict>;

    /// Whether a record of the batch that was judged last stays.
    fn keeps_record(&mut self, header: &BatchHeader, record: &Record<'_>) -> bool;

    /// The same for records that follow each other, one verdict each in order: rules that look
    /// something up can look for all of them at once.
    fn keep_records(
        &mut self,
        header: &BatchHeader,
        records: &[Record<'_>],
        see: &mut dyn FnMut(&Record<'_>, bool),
    ) {
        for record in records {
            let keeps = self.keeps_record(header, record);
            see(record, keeps);
        }
    }
}
