//! A partition on a simulated disk, whole and with all its side files, to be damaged by the tests.

use std::path::{Path, PathBuf};

use super::super::{PartitionReport, VerifyOptions, verify_partition};
use crate::index::AbortedTxn;
use crate::io::Storage;
use crate::io::sim::SimDisk;
use crate::problem::Code;
use crate::record::BatchHeader;
use crate::record::builder::{BatchBuilder, BatchOptions, write_end_marker};
use crate::record::codec::Compressor;
use crate::record::control::{Control, EndMarker, parse_control};
use crate::segment::rebuild::{IndexRebuild, IndexSettings};
use crate::state::checkpoint::format_epochs;
use crate::state::{EpochEntry, EventKind, ProducerEvent, ReplayState};

pub(super) const DIR: &str = "/logs/orders-0";
pub(super) const TIME: i64 = 1_700_000_000_000;

/// A partition on a simulated disk, whole and with all its side files, to be damaged by the tests.
pub(super) struct Log {
    pub(super) disk: SimDisk,
    /// Base offset, bytes, and where each batch begins.
    segments: Vec<(i64, Vec<u8>, Vec<usize>)>,
    aborted: Vec<AbortedTxn>,
    state: ReplayState,
    snapshots: Vec<(i64, Vec<u8>)>,
    next: i64,
    epoch: i32,
}

impl Log {
    pub(super) fn new() -> Self {
        Log {
            disk: SimDisk::new(),
            segments: vec![(0, Vec::new(), Vec::new())],
            aborted: Vec::new(),
            state: ReplayState::new(),
            snapshots: Vec::new(),
            next: 0,
            epoch: 3,
        }
    }

    pub(super) fn options(&self, producer: i64, sequence: i32) -> BatchOptions {
        BatchOptions {
            base_offset: self.next,
            leader_epoch: self.epoch,
            producer_id: producer,
            producer_epoch: if producer < 0 { -1 } else { 5 },
            base_sequence: sequence,
            ..BatchOptions::default()
        }
    }

    /// Appends a batch with so many records.
    pub(super) fn batch(self, count: i32) -> Self {
        let options = self.options(-1, -1);
        self.append(options, count)
    }

    /// Appends a batch of a producer.
    pub(super) fn produce(self, producer: i64, sequence: i32, count: i32) -> Self {
        let options = self.options(producer, sequence);
        self.append(options, count)
    }

    /// Appends a batch of a transaction.
    pub(super) fn transact(self, producer: i64, sequence: i32, count: i32) -> Self {
        let options = self.options(producer, sequence);
        self.append(BatchOptions { is_transactional: true, ..options }, count)
    }

    pub(super) fn append(self, options: BatchOptions, count: i32) -> Self {
        let mut builder = BatchBuilder::new(options).unwrap();
        for record in 0..i64::from(count) {
            let offset = options.base_offset + record;
            builder.append(TIME + offset, Some(b"key"), Some(b"some value")).unwrap();
        }
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
        self.raw(&bytes)
    }

    /// Ends the transaction of a producer.
    pub(super) fn end(self, producer: i64, is_abort: bool) -> Self {
        let options = self.options(producer, -1);
        let timestamp_ms = TIME + self.next;
        let marker = EndMarker { is_abort, coordinator_epoch: 1, timestamp_ms };
        let mut bytes = Vec::new();
        write_end_marker(&options, &marker, &mut bytes).unwrap();
        self.raw(&bytes)
    }

    /// Appends these bytes as they are.
    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        let header = BatchHeader::parse(bytes).unwrap();
        if header.has_producer_id() {
            let kind = match parse_control(&header, bytes) {
                Control::End(end) if header.is_control() => EventKind::Marker {
                    abort: end.is_abort,
                    coordinator_epoch: end.coordinator_epoch,
                    timestamp: end.timestamp_ms,
                },
                _ => EventKind::Data { transactional: header.is_transactional() },
            };
            let event = ProducerEvent {
                producer_id: header.producer_id,
                producer_epoch: header.producer_epoch,
                base_sequence: header.base_sequence,
                last_sequence: header.last_sequence(),
                base_offset: header.base_offset,
                last_offset: header.last_offset(),
                max_timestamp: header.max_timestamp,
                kind,
            };
            if let Some(done) = self.state.apply(&event).unwrap().filter(|done| done.aborted) {
                self.aborted.push(AbortedTxn {
                    producer_id: done.producer_id,
                    first_offset: done.first_offset,
                    last_offset: done.last_offset,
                    last_stable_offset: done.last_stable_offset,
                });
            }
        }
        self.next = self.next.max(header.next_offset());
        let (_, log, starts) = self.segments.last_mut().unwrap();
        starts.push(log.len());
        log.extend(bytes);
        self
    }

    pub(super) fn roll(mut self) -> Self {
        self.snapshots.push((self.next, self.state.snapshot()));
        self.segments.push((self.next, Vec::new(), Vec::new()));
        self
    }

    /// Writes all files.
    pub(super) fn write(self) -> Written {
        let path = |name: &str| PathBuf::from(DIR).join(name);
        let put = |name: &str, bytes: Vec<u8>| self.disk.put(&path(name), bytes, None).unwrap();
        for (at, (base, log, starts)) in self.segments.iter().enumerate() {
            let settings = IndexSettings { interval_bytes: 100, max_size_bytes: 4096 };
            let mut rebuild = IndexRebuild::new(*base, settings).unwrap();
            for start in starts {
                let header = BatchHeader::parse(&log[*start..]).unwrap();
                rebuild.batch(&header, *start as u64).unwrap();
            }
            let indexes = rebuild.finish().unwrap();
            let end = self.segments.get(at + 1).map_or(i64::MAX, |next| next.0);
            let aborted = self.aborted.iter().filter(|txn| (*base..end).contains(&txn.last_offset));
            let aborted: Vec<u8> = aborted.flat_map(AbortedTxn::encode).collect();
            put(&format!("{base:020}.log"), log.clone());
            put(&format!("{base:020}.index"), indexes.offset_index);
            put(&format!("{base:020}.timeindex"), indexes.time_index);
            if !aborted.is_empty() {
                put(&format!("{base:020}.txnindex"), aborted);
            }
        }
        for (offset, bytes) in &self.snapshots {
            put(&format!("{offset:020}.snapshot"), bytes.clone());
        }
        let entry = EpochEntry { epoch: self.epoch, start_offset: 0 };
        put("leader-epoch-checkpoint", format_epochs(&[entry]));
        put("partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ".to_vec());
        let starts = self.segments.into_iter().map(|(_, _, starts)| starts).collect();
        Written { disk: self.disk, starts }
    }
}

/// A partition whose files are on the disk.
pub(super) struct Written {
    pub(super) disk: SimDisk,
    pub(super) starts: Vec<Vec<usize>>,
}

impl Written {
    pub(super) fn path(name: &str) -> PathBuf {
        Path::new(DIR).join(name)
    }

    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        self.disk.read(&Self::path(name), u64::MAX).unwrap()
    }

    pub(super) fn put(&self, name: &str, bytes: Vec<u8>) {
        self.disk.put(&Self::path(name), bytes, None).unwrap();
    }

    pub(super) fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.read(name);
        change(&mut bytes);
        self.put(name, bytes);
    }

    pub(super) fn remove(&self, name: &str) {
        self.disk.remove_file(&Self::path(name)).unwrap();
    }

    pub(super) fn verify_with(&self, options: &VerifyOptions<'_>) -> PartitionReport {
        verify_partition(&self.disk, Path::new(DIR), options).unwrap()
    }

    pub(super) fn verify(&self) -> PartitionReport {
        self.verify_with(&VerifyOptions { now_ms: TIME, ..VerifyOptions::default() })
    }

    pub(super) fn codes(&self) -> Vec<Code> {
        self.verify().problems.iter().map(|problem| problem.code).collect()
    }
}
