//! The plain structs of remote storage.

use std::ffi::c_char;

use crate::handle::Handle;
use crate::log::LogObject;
use crate::types::{Aborted, Epoch, c_structs, growing};

c_structs! {
    /// `silt_tier_columns_t`.
    "silt_tier_columns_t" TierColumns {
        struct_size: u32,
        partition_count: u32,
        segment_count: u64,
        now_ms: i64,
        base_offset: *const i64,
        start_bytes: *const u64,
        max_timestamp_ms: *const i64,
        segment_end: *const u64,
        active_size_bytes: *const u64,
        log_start_offset: *const i64,
        last_stable_offset: *const i64,
        copied_offset: *const i64,
        lineage_start_offset: *const i64,
        copy_lag_ms: *const i64,
        copy_lag_bytes: *const i64,
        damaged: *const u64,
        damaged_count: u64,
        eligible: *mut u8,
        reason: *mut u8,
        first_segment: *mut u64,
        eligible_count: *mut u64,
        stop: *mut u8,
        sum_bytes: *mut u64,
        oldest_timestamp_ms: *mut i64,
    }

    /// `silt_direct_request_t`.
    "silt_direct_request_t" DirectRequest {
        struct_size: u32,
        aborted_capacity: u32,
        start_offset: i64,
        end_offset: i64,
        log_size_bytes: u64,
        offset_index: *const u8,
        offset_index_size_bytes: u64,
        transaction_index: *const u8,
        transaction_index_size_bytes: u64,
        offset: i64,
        limit_offset: i64,
        max_bytes: u64,
        aborted: *mut Aborted,
    }

    /// `silt_direct_read_t`.
    "silt_direct_read_t" DirectRead {
        struct_size: u32,
        flags: u32,
        position: u64,
        size_bytes: u64,
        upper_bound_offset: i64,
        next_offset: i64,
        aborted_count: u32,
        reserved: u32,
    }

    /// `silt_remote_record_t`.
    "silt_remote_record_t" RemoteRecord {
        struct_size: u32,
        kind: u32,
        state: i32,
        partition: i32,
        broker_id: i32,
        size_bytes: i32,
        start_offset: i64,
        end_offset: i64,
        max_timestamp_ms: i64,
        event_timestamp_ms: i64,
        topic_id: [u8; 16],
        segment_id: [u8; 16],
        flags: u32,
        epoch_count: u32,
        epochs: *mut Epoch,
        topic: *mut c_char,
        custom: *mut u8,
        topic_size_bytes: u32,
        custom_size_bytes: i32,
        epoch_capacity: u32,
        topic_capacity: u32,
        custom_capacity: u32,
        reserved: u32,
    }

    /// `silt_upload_options_t`.
    "silt_upload_options_t" UploadOptions {
        struct_size: u32,
        flags: u32,
        now_ms: i64,
        topic_id: [u8; 16],
        segment_id: [u8; 16],
        broker_id: i32,
        reserved: u32,
    }

    /// `silt_part_t`.
    "silt_part_t" Part {
        part: u32,
        fd: i32,
        position: u64,
        size_bytes: u64,
        bytes: *const u8,
    }

    /// `silt_rebuild_t`.
    "silt_rebuild_t" Rebuild {
        log: *const Handle<LogObject>,
        dir: *const c_char,
        segment: *const RemoteRecord,
        log_start_offset: i64,
        next_offset: i64,
        first_open_offset: i64,
        bytes_read: u64,
        producer_count: u32,
        flags: u32,
    }

    /// `silt_rebuild_options_t`.
    "silt_rebuild_options_t" RebuildOptions {
        struct_size: u32,
        threads: u32,
        store_dir: *const c_char,
        prefix: *const c_char,
        held_bytes_max: u64,
        object_bytes_max: u64,
        now_ms: i64,
        partitions_max: u32,
        io: u32,
    }
}

impl Rebuild {
    /// As if nothing had come of it.
    pub fn forget_results(&mut self) {
        (self.next_offset, self.first_open_offset) = (-1, -1);
        (self.bytes_read, self.producer_count, self.flags) = (0, 0, 0);
    }
}

growing! {
    TierColumns, 184 {};
    DirectRequest, 96 {};
    DirectRead, 48 { upper_bound_offset: -1, next_offset: -1 };
    RemoteRecord, 144 { custom_size_bytes: -1 };
    UploadOptions, 56 {};
    RebuildOptions, 56 {};
}
