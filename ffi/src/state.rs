//! What is known of producers, and all that one walk over a segment gives.

use std::ops::ControlFlow;

use engine::index::{AbortedTxn, TxnIndexBuilder};
use engine::record::control::parse_control;
use engine::record::scan::{ScannedBatch, Visitor, scan};
use engine::segment::rebuild::IndexRebuild;
use engine::state::{ProducerEntry, ProducerEvent, ReplayState, Snapshot, write_snapshot};
use engine::units::is_addressable;

use crate::bytes::{put, settings};
use crate::error::{Outcome, SiltError, Status, fits, guard};
use crate::log::log_function;
use crate::memory::{
    bytes_of, check_struct, fill, items_of, items_of_mut, put_whole, read_struct, u32_of, u64_of,
    write_struct,
};
use crate::types::{Producer, Scan, Scanned};

/// `SILT_SCAN_LEGACY`.
const LEGACY: u32 = 1;
/// `SILT_SCAN_OFFSETS`.
const OFFSETS: u32 = 2;
/// `SILT_SCAN_PRODUCERS`.
const PRODUCERS: u32 = 4;

fn producer_of(entry: &ProducerEntry) -> Producer {
    Producer {
        producer_id: entry.producer_id,
        last_offset: entry.last_offset,
        last_timestamp_ms: entry.last_timestamp,
        txn_first_offset: entry.txn_first_offset,
        last_sequence: entry.last_sequence,
        offset_delta: entry.offset_delta,
        coordinator_epoch: entry.coordinator_epoch,
        producer_epoch: entry.producer_epoch,
        reserved: 0,
    }
}

fn entry_of(producer: &Producer) -> ProducerEntry {
    ProducerEntry {
        producer_id: producer.producer_id,
        last_offset: producer.last_offset,
        last_timestamp: producer.last_timestamp_ms,
        txn_first_offset: producer.txn_first_offset,
        last_sequence: producer.last_sequence,
        offset_delta: producer.offset_delta,
        coordinator_epoch: producer.coordinator_epoch,
        producer_epoch: producer.producer_epoch,
    }
}

fn snapshot_of(producers: &[Producer]) -> Vec<u8> {
    let entries: Vec<ProducerEntry> = producers.iter().map(entry_of).collect();
    write_snapshot(&entries)
}

log_function! {
    fn silt_log_producers(out: *mut Producer, capacity: u32, count: *mut u32) |it| {
        let found: Vec<Producer> = it.log.with_producers(|state| {
            state.producers().map(|producer| producer_of(&producer.entry())).collect()
        })?;
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, found.into_iter()) }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_snapshot_write(
    producers: *const Producer,
    count: u32,
    bytes: *mut u8,
    capacity: u64,
    size_bytes: *mut u64,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's array.
        let producers = unsafe { items_of(producers, u64::from(count))? };
        // SAFETY: the caller's array.
        let room = unsafe { items_of_mut(bytes, capacity)? };
        let snapshot = snapshot_of(producers);
        // SAFETY: the caller's number.
        unsafe { put_whole(room, &snapshot, size_bytes, "the snapshot does not fit its array") }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_snapshot_read(
    bytes: *const u8,
    size_bytes: u64,
    out: *mut Producer,
    capacity: u32,
    count: *mut u32,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's bytes.
        let bytes = unsafe { bytes_of(bytes, size_bytes)? };
        let snapshot = Snapshot::read(bytes).map_err(engine::Error::from)?;
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, snapshot.iter().map(|entry| producer_of(&entry))) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// All that a segment tells, gathered batch by batch.
struct Walk {
    base_offset: i64,
    indexes: IndexRebuild,
    aborted: TxnIndexBuilder,
    producers: ReplayState,
    batch_count: u32,
    next_offset: i64,
    /// Why the walk ended before the bytes did, if it is not theirs to decide.
    flags: u32,
}

impl Visitor for Walk {
    fn batch(&mut self, batch: ScannedBatch<'_>) -> engine::Result<ControlFlow<()>> {
        let header = batch.header;
        if header.magic < 2 {
            self.flags |= LEGACY;
            return Ok(ControlFlow::Break(()));
        }
        if !is_addressable(self.base_offset, header.last_offset()) {
            self.flags |= OFFSETS;
            return Ok(ControlFlow::Break(()));
        }
        let control = header.is_control().then(|| parse_control(header, batch.bytes));
        if let Some(event) = ProducerEvent::of_batch(header, control) {
            let Ok(completed) = self.producers.apply(&event) else {
                self.flags |= PRODUCERS;
                return Ok(ControlFlow::Break(()));
            };
            if let Some(completed) = completed.filter(|completed| completed.aborted) {
                self.aborted.append(&AbortedTxn {
                    producer_id: completed.producer_id,
                    first_offset: completed.first_offset,
                    last_offset: completed.last_offset,
                    last_stable_offset: completed.last_stable_offset,
                })?;
            }
        }
        self.indexes.batch(header, batch.position)?;
        self.batch_count += 1;
        self.next_offset = self.next_offset.max(header.next_offset());
        Ok(ControlFlow::Continue(()))
    }
}

/// Walks through a segment.
fn walk(mut bytes: &[u8], wanted: &Scan, before: &[Producer]) -> Outcome<(Walk, u64)> {
    let snapshot = snapshot_of(before);
    let snapshot = Snapshot::read(&snapshot).map_err(engine::Error::from)?;
    let base_offset = wanted.base_offset;
    let settings = settings(wanted.index_interval_bytes, wanted.index_size_bytes_max);
    let mut walk = Walk {
        base_offset,
        indexes: IndexRebuild::new(base_offset, settings)?,
        aborted: TxnIndexBuilder::new(),
        // None of them is forgotten here.
        producers: ReplayState::from_snapshot(&snapshot, 0, i64::MAX),
        batch_count: 0,
        next_offset: base_offset,
        flags: 0,
    };
    let end = scan(&mut bytes, 0, u64::MAX, &mut walk)?;
    Ok((walk, end.position))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_segment_scan(
    bytes: *const u8,
    size_bytes: u64,
    wanted: *const Scan,
    out: *mut Scanned,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's bytes.
        let bytes = unsafe { bytes_of(bytes, size_bytes)? };
        // SAFETY: a struct of the header.
        let wanted = unsafe { read_struct(wanted)? };
        // SAFETY: a struct of the header.
        unsafe { check_struct(out)? };
        // SAFETY: the caller's array.
        let before =
            unsafe { items_of(wanted.producers_before, u64::from(wanted.producers_before_count))? };
        let (walk, valid_bytes) = walk(bytes, &wanted, before)?;
        // SAFETY: the caller's array.
        let offsets = unsafe {
            items_of_mut::<u8>(wanted.offset_index.cast(), wanted.offset_index_capacity)?
        };
        // SAFETY: the caller's array.
        let times =
            unsafe { items_of_mut::<u8>(wanted.time_index.cast(), wanted.time_index_capacity)? };
        // SAFETY: the caller's array.
        let txns =
            unsafe { items_of_mut::<u8>(wanted.txn_index.cast(), wanted.txn_index_capacity)? };
        // SAFETY: the caller's array.
        let slots =
            unsafe { items_of_mut(wanted.producers, u64::from(wanted.producers_capacity))? };
        let indexes = walk.indexes.finish()?;
        let entries = walk.producers.producers().entries();
        let scanned = Scanned {
            struct_size: 0,
            flags: walk.flags,
            batch_count: walk.batch_count,
            producer_count: u32_of(entries.len()),
            valid_bytes,
            next_offset: walk.next_offset,
            max_timestamp_ms: indexes.max_timestamp,
            offset_index_size_bytes: u64_of(indexes.offset_index.len()),
            time_index_size_bytes: u64_of(indexes.time_index.len()),
            txn_index_size_bytes: u64_of(walk.aborted.as_bytes().len()),
            first_undecided_offset: walk.producers.first_undecided_offset().unwrap_or(-1),
        };
        // SAFETY: a struct of the header.
        unsafe { write_struct(out, &scanned)? };
        for (slot, entry) in slots.iter_mut().zip(entries) {
            *slot = producer_of(entry);
        }
        let are_told = slots.is_empty() || entries.len() <= slots.len();
        let are_put = put(offsets, &indexes.offset_index)
            & put(times, &indexes.time_index)
            & put(txns, walk.aborted.as_bytes());
        fits(are_put && are_told, "a result does not fit its array")
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}
