//! Consumers that have no broker: they read remote storage and the local log through our readers.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use siltstone::index::AbortedTxn;
use siltstone::io::Disk;
use siltstone::log::{FetchOptions, Isolation, Log, LogConfig, OpenOptions};
use siltstone::record::control::{Control, EndMarker, parse_control};
use siltstone::record::validate::Batches;
use siltstone::record::{BatchReader, Record};
use siltstone::state::ProducerStateConfig;
use siltstone::tier::{
    APACHE_KAFKA_V1, DirectAnswer, DirectRequest, DirectView, RemoteView, SegmentLocations,
    get_exact, plan_direct_read, remote_read,
};

use crate::clients::TopicOffsets;

/// The log of a broker that was stopped, which has the offsets that the broker told.
pub fn open(dir: &Path, offsets: &TopicOffsets) -> Log {
    let config = LogConfig {
        segment_bytes: 16384,
        segment_index_bytes: 4096,
        index_interval_bytes: 512,
        remote_storage: true,
        ..LogConfig::default()
    };
    let options = OpenOptions {
        log_start_offset: offsets.start,
        producers: ProducerStateConfig {
            producer_id_expiration_ms: i64::from(i32::MAX),
            ..ProducerStateConfig::default()
        },
        ..OpenOptions::default()
    };
    let log = Log::open(Arc::new(Disk::new()), dir, config, &options).expect("a log");
    log.update_high_watermark(log.log_end_offset()).expect("a high watermark");
    let (local_start, stable) = (log.local_log_start_offset(), log.last_stable_offset());
    let found = (log.log_start_offset(), local_start, stable, log.log_end_offset());
    assert_eq!(found, (offsets.start, offsets.local_start, offsets.stable, offsets.end));
    log
}

/// Reads all that is to be seen, out of remote storage what is there.
pub fn read_through(
    remote: &RemoteView<'_>,
    log: &Log,
    offsets: &TopicOffsets,
    options: &FetchOptions,
) -> Vec<Value> {
    let is_committed = options.isolation == Isolation::Committed;
    let mut consumer = Consumer::new(if is_committed { offsets.stable } else { offsets.end });
    while consumer.offset < consumer.end {
        let offset = consumer.offset;
        let (bytes, aborted) = if offset <= offsets.tiered {
            let read = remote_read(remote, offset, options).expect("a read");
            (read.bytes, read.aborted)
        } else {
            let read = log.read(offset, options).expect("a read");
            (read.bytes, read.aborted)
        };
        assert_eq!(aborted.is_some(), is_committed, "at {offset}");
        consumer.take(&bytes, &aborted.unwrap_or_default());
    }
    consumer.records
}

/// Reads all that is in remote storage by itself, as plans say where.
pub fn read_directly(
    remote: &RemoteView<'_>,
    offsets: &TopicOffsets,
    isolation: Isolation,
) -> Vec<Value> {
    let view = DirectView {
        remote: *remote,
        local_log_start_offset: offsets.tiered + 1,
        high_watermark: offsets.end,
        last_stable_offset: offsets.stable,
        stored_format: APACHE_KAFKA_V1,
    };
    let mut consumer = Consumer::new(offsets.tiered + 1);
    while consumer.offset < consumer.end {
        let request = DirectRequest {
            offset: consumer.offset,
            max_bytes: 3000,
            isolation,
            wants_location: true,
            is_consumer: true,
            formats: &[APACHE_KAFKA_V1],
        };
        let answer = plan_direct_read(&request, &view).expect("a plan");
        let DirectAnswer::Read(read) = answer else { panic!("{request:?}: {answer:?}") };
        let log = SegmentLocations::of(remote.layout, read.segment).log;
        let bytes = get_exact(remote.target, &log, read.range.range()).expect("the range");
        consumer.take(&bytes, &read.aborted);
    }
    consumer.records
}

/// Makes of batches what a consumer makes of them.
struct Consumer {
    offset: i64,
    end: i64,
    records: Vec<Value>,
    batches: BatchReader,
}

impl Consumer {
    /// From offset 0 to before an end.
    fn new(end: i64) -> Self {
        let (offset, records) = (0, Vec::new());
        Consumer { offset, end, records, batches: BatchReader::new(1 << 20) }
    }

    /// Takes the answer to a fetch from its offset, and goes on behind.
    fn take(&mut self, bytes: &[u8], aborted: &[AbortedTxn]) {
        let from = self.offset;
        let mut begins = aborted.iter().peekable();
        let mut left_out = BTreeSet::new();
        for batch in Batches::new(bytes) {
            let batch = batch.expect("a batch");
            let header = batch.header;
            if header.base_offset >= self.end {
                break;
            }
            while let Some(txn) = begins.next_if(|txn| txn.first_offset <= header.last_offset()) {
                left_out.insert(txn.producer_id);
            }
            self.offset = self.offset.max(header.next_offset());
            if header.is_control() {
                let control = parse_control(&header, batch.bytes);
                if matches!(control, Control::End(EndMarker { is_abort: true, .. })) {
                    left_out.remove(&header.producer_id);
                }
                continue;
            }
            if header.is_transactional() && left_out.contains(&header.producer_id) {
                continue;
            }
            let records = &mut self.records;
            let read = self.batches.read(&header, batch.bytes, &mut |record| {
                if record.offset >= from {
                    records.push(shown(record));
                }
                ControlFlow::Continue(())
            });
            read.expect("records");
        }
        assert!(self.offset > from, "no batch at {from}");
    }
}

/// A record as Clients.java shows it.
fn shown(record: &Record<'_>) -> Value {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let headers: Vec<Value> =
        record.headers.map(|(key, value)| json!([text(key), value.map(text)])).collect();
    let (key, value) = (record.key.map(text), record.value.map(text));
    json!([record.offset, record.timestamp_ms, key, value, headers])
}
