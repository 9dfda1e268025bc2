//! What a compacted log says of its keys, read plainly: for tests that compare before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use siltstone::log::{FetchOptions, Isolation, Log};
use siltstone::record::BatchReader;
use siltstone::record::batch::compute_crc;
use siltstone::record::control::{Control, parse_control};
use siltstone::record::validate::Batches;

/// A record, or the marker that ends a transaction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Its offset.
    pub offset: i64,
    /// The producer, -1 for none.
    pub producer_id: i64,
    /// Of a marker: whether the transaction is aborted.
    pub abort: Option<bool>,
    /// Whether it is a record of a transaction.
    pub is_transactional: bool,
    /// The key; none of a marker.
    pub key: Option<Vec<u8>>,
    /// The value; none of a marker.
    pub value: Option<Vec<u8>>,
}

/// Everything that a log holds, in order.
///
/// # Panics
///
/// When the log cannot be read, or its offsets do not rise.
#[must_use]
pub fn lines(log: &Log) -> Vec<Line> {
    let (lines, fault) = lines_to_a_fault(log);
    assert_eq!(fault, None, "a log that can be read");
    lines
}

/// What a log holds up to where it cannot be read, in order, and what is wrong there, if anything
/// is.
///
/// # Panics
///
/// When its offsets do not rise.
#[must_use]
pub fn lines_to_a_fault(log: &Log) -> (Vec<Line>, Option<String>) {
    let mut lines: Vec<Line> = Vec::new();
    let mut reader = BatchReader::new(1 << 26);
    let mut offset = log.log_start_offset();
    let options =
        FetchOptions { max_bytes: u32::MAX, isolation: Isolation::LogEnd, min_one_message: true };
    while offset < log.log_end_offset() {
        let bytes = match log.read(offset, &options) {
            Ok(fetched) => fetched.bytes,
            Err(error) => return (lines, Some(error.to_string())),
        };
        if bytes.is_empty() {
            break;
        }
        for batch in Batches::new(&bytes) {
            let Ok(batch) = batch else { return (lines, Some("no batch".to_owned())) };
            let header = batch.header;
            if compute_crc(batch.bytes) != header.crc {
                return (lines, Some("a checksum is wrong".to_owned()));
            }
            assert!(header.base_offset >= offset, "{} after {offset}", header.base_offset);
            offset = header.next_offset();
            let abort = match parse_control(&header, batch.bytes) {
                Control::End(marker) if header.is_control() => Some(marker.is_abort),
                _ => None,
            };
            reader
                .read(&header, batch.bytes, &mut |record| {
                    lines.push(Line {
                        offset: record.offset,
                        producer_id: header.producer_id,
                        abort,
                        is_transactional: header.is_transactional(),
                        key: record.key.filter(|_| abort.is_none()).map(<[u8]>::to_vec),
                        value: record.value.filter(|_| abort.is_none()).map(<[u8]>::to_vec),
                    });
                    ControlFlow::Continue(())
                })
                .expect("records");
        }
    }
    (lines, None)
}

/// The last value of each key, without those that were deleted last, and the producers whose
/// transaction is not decided.
pub type View = (BTreeMap<Vec<u8>, Vec<u8>>, BTreeSet<i64>);

/// The lines that belong to no aborted transaction, and the producers that have not decided.
#[must_use]
pub fn committed(lines: &[Line]) -> (Vec<&Line>, BTreeSet<i64>) {
    let mut open: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut aborted = BTreeSet::new();
    for line in lines {
        match line.abort {
            Some(abort) => {
                let ended = open.remove(&line.producer_id).unwrap_or_default();
                aborted.extend(ended.into_iter().filter(|_| abort));
            }
            None if line.is_transactional => {
                open.entry(line.producer_id).or_default().push(line.offset);
            }
            None => {}
        }
    }
    let kept = lines.iter().filter(|line| line.abort.is_none() && !aborted.contains(&line.offset));
    (kept.collect(), open.into_keys().collect())
}

/// What the lines say of their keys.
#[must_use]
pub fn view(lines: &[Line]) -> View {
    let (kept, open) = committed(lines);
    let mut last = BTreeMap::new();
    for line in kept {
        let Some(key) = &line.key else { continue };
        match &line.value {
            Some(value) => last.insert(key.clone(), value.clone()),
            None => last.remove(key),
        };
    }
    (last, open)
}
