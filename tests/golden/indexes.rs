//! Index files: their entries, and what they answer.

use siltstone::index::{AbortedTxn, OffsetEntries, TimeEntries, TxnEntries};
use siltstone_tests::expect::{IndexEntry, Loaded, LoadedSegment, RawSegment, TimeIndexEntry};

use crate::{Partition, file_name, for_each_kit, partitions};

for_each_kit!(entries_are_kafkas);

fn entries_are_kafkas(kit: &str) {
    for partition in partitions(kit) {
        for segment in &partition.expectation.raw.segments {
            check_offset_index(&partition, segment);
            check_time_index(&partition, segment);
            check_txn_index(&partition, segment);
        }
    }
}

/// The entries in front of the zeros that fill a preallocated file.
fn check_offset_index(partition: &Partition, segment: &RawSegment) {
    let bytes = partition.read(&file_name(segment.base_offset, "index"));
    assert_eq!(bytes.is_some(), segment.index.is_some());
    let (Some(bytes), Some(want)) = (bytes, &segment.index) else { return };
    let label = format!("{} index {}", partition.label(), segment.base_offset);
    let entries = OffsetEntries::new(&bytes, segment.base_offset);
    assert_eq!(bytes.len() as u64, want.size, "{label}");
    assert_eq!(entries.count() as u64, want.slots, "{label}");
    assert_eq!(entries.stray_size_bytes() as u64, want.size - want.slots * 8, "{label}");
    let real = (want.slots - want.zero_tail_slots) as usize;
    let got: Vec<IndexEntry> = offset_rows(&entries).take(real).collect();
    assert_eq!(got, want.entries, "{label}");
    // As Kafka reads them, zeros are entries of the base offset.
    for entry in entries.iter().skip(real) {
        assert_eq!((entry.offset, entry.position), (segment.base_offset, 0), "{label}");
    }
}

fn check_time_index(partition: &Partition, segment: &RawSegment) {
    let bytes = partition.read(&file_name(segment.base_offset, "timeindex"));
    assert_eq!(bytes.is_some(), segment.timeindex.is_some());
    let (Some(bytes), Some(want)) = (bytes, &segment.timeindex) else { return };
    let label = format!("{} timeindex {}", partition.label(), segment.base_offset);
    let entries = TimeEntries::new(&bytes, segment.base_offset);
    assert_eq!(entries.count() as u64, want.slots, "{label}");
    assert_eq!(entries.stray_size_bytes() as u64, want.size - want.slots * 12, "{label}");
    let real = (want.slots - want.zero_tail_slots) as usize;
    let got: Vec<TimeIndexEntry> = time_rows(&entries).take(real).collect();
    assert_eq!(got, want.entries, "{label}");
}

fn check_txn_index(partition: &Partition, segment: &RawSegment) {
    let bytes = partition.read(&file_name(segment.base_offset, "txnindex"));
    assert_eq!(bytes.is_some(), segment.txnindex.is_some());
    let (Some(bytes), Some(want)) = (bytes, &segment.txnindex) else { return };
    let label = format!("{} txnindex {}", partition.label(), segment.base_offset);
    let entries = TxnEntries::new(&bytes);
    let got: Vec<_> = (0..entries.count())
        .map(|slot| {
            let (id, first, last, stable) = txn_row(entries.get(slot).expect(&label));
            (entries.version(slot).expect(&label), id, first, last, stable)
        })
        .collect();
    assert_eq!(&got, want, "{label}");
    assert!(entries.is_rising(), "{label}");
}

for_each_kit!(lookups_are_kafkas);

fn lookups_are_kafkas(kit: &str) {
    for partition in partitions(kit) {
        let Some(loaded) = partition.expectation.loaded.ok() else { continue };
        for segment in &loaded.segments {
            check_lookups(&format!("{} {}", partition.label(), segment.base_offset), segment);
        }
        check_aborted(&partition.label(), loaded);
    }
}

fn check_lookups(label: &str, segment: &LoadedSegment) {
    let base = segment.base_offset;
    let relative = |offset: i64| i32::try_from(offset - base).expect(label).to_be_bytes();
    let index: Vec<u8> = segment
        .index
        .iter()
        .flat_map(|&(offset, position)| {
            let position = i32::try_from(position).expect(label).to_be_bytes();
            [relative(offset), position].concat()
        })
        .collect();
    let entries = OffsetEntries::new(&index, base);
    for &(target, offset, position) in &segment.offset_index_lookup {
        let found = entries.lookup(target);
        if segment.index.is_sorted() {
            assert_eq!((found.offset, i64::from(found.position)), (offset, position), "{label}");
        } else {
            // A damaged index: any entry up to the target will do, a scan from there meets it.
            assert!(found.offset <= target.max(base), "{label}: {found:?} for {target}");
        }
    }
    let timeindex: Vec<u8> = segment
        .timeindex
        .iter()
        .flat_map(|&(timestamp, offset)| [&timestamp.to_be_bytes()[..], &relative(offset)].concat())
        .collect();
    let entries = TimeEntries::new(&timeindex, base);
    for &(target, timestamp, offset) in &segment.time_index_lookup {
        let found = entries.lookup(target);
        if segment.timeindex.is_sorted() {
            assert_eq!((found.timestamp_ms, found.offset), (timestamp, offset), "{label}");
        } else {
            assert!(found.timestamp_ms <= target, "{label}: {found:?} for {target}");
        }
    }
}

/// As a log does it: from the segment of the first offset on, until one says that there is nothing
/// more. Kafka quirk: what is asked of a segment begins at the log start offset, not at the first
/// offset asked for.
fn check_aborted(label: &str, loaded: &Loaded) {
    let files: Vec<(i64, Vec<u8>)> = loaded
        .segments
        .iter()
        .map(|segment| {
            let entries = segment.txnindex.iter().map(|&(_, id, first, last, stable)| AbortedTxn {
                producer_id: id,
                first_offset: first,
                last_offset: last,
                last_stable_offset: stable,
            });
            (segment.base_offset, entries.flat_map(|txn| txn.encode()).collect())
        })
        .collect();
    let start = loaded.log_start_offset;
    for (from, upper, want) in &loaded.collect_aborted_transactions {
        let first = files.iter().rposition(|(base, _)| base <= from).unwrap_or(files.len());
        let (mut slow, mut fast) = (Vec::new(), Vec::new());
        for (_, bytes) in &files[first..] {
            let entries = TxnEntries::new(bytes);
            let is_done = entries.collect_aborted(start, *upper, &mut slow).expect(label);
            assert_eq!(entries.collect_aborted_rising(start, *upper, &mut fast), is_done);
            if is_done {
                break;
            }
        }
        let rows: Vec<_> = slow.iter().copied().map(txn_row).collect();
        assert_eq!(&rows, want, "{label} {from}..{upper}");
        assert_eq!(slow, fast, "{label} {from}..{upper}");
    }
}

fn offset_rows(entries: &OffsetEntries<'_>) -> impl Iterator<Item = IndexEntry> {
    entries.iter().map(|entry| (entry.offset, i64::from(entry.position)))
}

fn time_rows(entries: &TimeEntries<'_>) -> impl Iterator<Item = TimeIndexEntry> {
    entries.iter().map(|entry| (entry.timestamp_ms, entry.offset))
}

fn txn_row(txn: AbortedTxn) -> (i64, i64, i64, i64) {
    (txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)
}
