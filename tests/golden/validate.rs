//! A producer's batch, as a real broker's log has it, must come out of our validation as the broker
//! wrote it: taken back to what the producer sent, and given its old place again.

use std::ops::ControlFlow;

use siltstone::record::TimestampType;
use siltstone::record::batch::BatchHeader;
use siltstone::record::codec::Codec;
use siltstone::record::validate::{
    AnalyseOptions, AppendOrigin, BatchView, Batches, Placement, ValidateOptions, Validator,
    analyse, set_last_offset, set_leader_epoch, set_max_timestamp,
};
use siltstone::record::{BatchReader, Record};

use crate::{Partition, file_name, for_each_kit, partitions};

for_each_kit!(batches_come_out_of_validation_as_kafka_wrote_them);

fn batches_come_out_of_validation_as_kafka_wrote_them(kit: &str) {
    let mut validator = Validator::new();
    let mut checked = 0;
    for partition in partitions(kit) {
        for segment in &partition.expectation.raw.segments {
            let log = partition.read(&file_name(segment.base_offset, "log")).expect("a log");
            for batch in Batches::new(&log).map_while(Result::ok) {
                let label = format!("{} at {}", partition.label(), batch.header.base_offset);
                // Damaged on purpose.
                if analyse(batch.bytes, &AnalyseOptions::follower(i32::MAX)).is_err() {
                    continue;
                }
                checked += usize::from(check(&label, &mut validator, &batch));
            }
        }
    }
    assert!(checked > 20, "{kit}: only {checked} batches");
}

/// Whether there was anything to check.
fn check(label: &str, validator: &mut Validator, batch: &BatchView<'_>) -> bool {
    match batch.header.magic {
        2 => check_batch(label, validator, batch),
        _ => check_messages(label, validator, batch),
    }
}

fn check_batch(label: &str, validator: &mut Validator, batch: &BatchView<'_>) -> bool {
    let header = &batch.header;
    // Compaction has been here: no producer sends such a batch.
    let is_compacted = header.count - 1 != header.last_offset_delta
        || header.delete_horizon_ms().is_some()
        || header.leader_epoch < 0;
    // Snapshots and metadata come from the quorum's own writer.
    if is_compacted || (header.is_control() && !header.has_producer_id()) {
        return false;
    }
    let options = ValidateOptions {
        origin: match header.is_control() {
            true => AppendOrigin::Coordinator,
            false => AppendOrigin::Client,
        },
        timestamp_type: header.timestamp_type(),
        leader_epoch: header.leader_epoch,
        ..ValidateOptions::default()
    };
    let mut sent = batch.bytes.to_vec();
    assert!(set_last_offset(&mut sent, i64::from(header.last_offset_delta)));
    assert!(set_leader_epoch(&mut sent, -1));
    if header.timestamp_type() == TimestampType::LogAppendTime {
        assert!(set_max_timestamp(&mut sent, TimestampType::CreateTime, header.base_timestamp));
    }
    let leader =
        AnalyseOptions::leader(options.origin, header.leader_epoch, options.max_message_bytes);
    let analysis = analyse(&sent, &leader).expect(label);
    assert_eq!(analysis.valid_bytes, batch.bytes.len(), "{label}");
    let codec = Codec::from_id(header.codec_id()).expect(label);
    assert_eq!(analysis.source_codec, codec, "{label}");
    let mut rebuilt = Vec::new();
    let (first, now) = (header.base_offset, header.max_timestamp);
    let validated =
        validator.validate_and_assign(&mut sent, &options, first, now, &mut rebuilt).expect(label);
    assert_eq!(validated.placement, Placement::InPlace(batch.bytes.len()), "{label}");
    assert!(sent == batch.bytes, "{label}: other bytes");
    assert_eq!(validated.last_offset, header.last_offset(), "{label}");
    assert_eq!(validated.max_timestamp_ms, header.max_timestamp, "{label}");
    assert_eq!(validated.first, *header, "{label}");
    true
}

/// Offset, timestamp, key, value.
type Seen = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

fn read(label: &str, header: &BatchHeader, bytes: &[u8]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut see = |record: &Record<'_>| {
        let own = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        seen.push((record.offset, record.timestamp_ms, own(record.key), own(record.value)));
        ControlFlow::Continue(())
    };
    BatchReader::new(64 << 20).read(header, bytes, &mut see).expect(label);
    seen
}

/// An entry keeps its format where that is asked for, and holds the same records as a batch.
fn check_messages(label: &str, validator: &mut Validator, entry: &BatchView<'_>) -> bool {
    let header = &entry.header;
    let records = read(label, header, entry.bytes);
    let first = records.first().map(|record| record.0).expect(label);
    let count = i64::try_from(records.len()).expect("64 bits");
    // Compaction has been here.
    if header.base_offset - first != count - 1 {
        return false;
    }
    let options = ValidateOptions {
        target_magic: header.magic,
        timestamp_type: header.timestamp_type(),
        leader_epoch: 3,
        ..ValidateOptions::default()
    };
    let now = header.max_timestamp;
    let mut sent = entry.bytes.to_vec();
    assert!(set_last_offset(&mut sent, count - 1));
    if header.timestamp_type() == TimestampType::LogAppendTime {
        assert!(set_max_timestamp(&mut sent, TimestampType::CreateTime, now - 1));
    }
    let mut kept = sent.clone();
    let mut rebuilt = Vec::new();
    let validated =
        validator.validate_and_assign(&mut kept, &options, first, now, &mut rebuilt).expect(label);
    let is_kept = header.magic > 0 || header.codec_id() == 0;
    assert_eq!(validated.size_may_have_changed, !is_kept, "{label}");
    if is_kept {
        assert!(kept == entry.bytes, "{label}: other bytes");
    }
    let written = validated.bytes(&kept, &rebuilt).to_vec();
    assert_eq!(read(label, &validated.first, &written), records, "{label}");

    let converting = ValidateOptions { target_magic: 2, ..options };
    rebuilt.clear();
    let validated = validator
        .validate_and_assign(&mut sent, &converting, first, now, &mut rebuilt)
        .expect(label);
    assert_eq!(validated.stats.converted_records, records.len() as u64, "{label}");
    assert_eq!((validated.first.magic, validated.first.leader_epoch), (2, 3), "{label}");
    assert_eq!(read(label, &validated.first, &rebuilt), records, "{label}");
    true
}

for_each_kit!(a_whole_log_passes_as_a_fetch_answer);

/// A follower that fetches a log from its start takes all of it, byte for byte.
fn a_whole_log_passes_as_a_fetch_answer(kit: &str) {
    for partition in partitions(kit) {
        for segment in &partition.expectation.raw.segments {
            if segment.read_problem.is_some() || segment.batches.iter().any(|batch| !batch.valid) {
                continue;
            }
            let label = format!("{} segment {}", partition.label(), segment.base_offset);
            let log = partition.read(&file_name(segment.base_offset, "log")).expect(&label);
            check_answer(&label, &partition, &log, segment.batches_end);
        }
    }
}

fn check_answer(label: &str, partition: &Partition, log: &[u8], batches_end: u64) {
    let analysis = match analyse(log, &AnalyseOptions::follower(i32::MAX)) {
        Ok(analysis) => analysis,
        // Zeros behind the batches are the end of a file, but no end of an answer.
        Err(error) if batches_end < log.len() as u64 => {
            let whole = &log[..usize::try_from(batches_end).expect("64 bits")];
            analyse(whole, &AnalyseOptions::follower(i32::MAX))
                .unwrap_or_else(|_| panic!("{label}: {error:?}"))
        }
        Err(error) => panic!("{label} of {}: {error:?}", partition.name),
    };
    assert_eq!(analysis.valid_bytes as u64, batches_end, "{label}");
    assert!(analysis.is_monotonic, "{label}");
}
