//! The plain structs of the header, field by field.

use std::ffi::{c_char, c_void};

use engine::state::EpochEntry;

use crate::dir::progress::ProgressFn;
use crate::handle::Handle;
use crate::log::LogObject;

/// `SILT_BUILD_IO_URING`.
pub const IO_URING_HERE: u32 = 1;

/// Declares the structs and, for the test that compares them with the header, tells their layouts.
macro_rules! c_structs {
    ($($(#[$doc:meta])* $c_name:literal $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            #[repr(C)]
            pub struct $name {
                $(pub $field: $type,)*
            }
        )*

        /// A line for each struct and field: its name, and size or position.
        #[cfg(feature = "test")]
        pub fn layouts() -> String {
            let mut lines = Vec::new();
            $(
                lines.push(format!("{} {}", $c_name, size_of::<$name>()));
                $(
                    let position = std::mem::offset_of!($name, $field);
                    lines.push(format!("{}.{} {position}", $c_name, stringify!($field)));
                )*
            )*
            lines.join("\n")
        }
    };
}
pub(crate) use c_structs;

c_structs! {
    /// `silt_build_info_t`.
    "silt_build_info_t" BuildInfo {
        struct_size: u32,
        abi_version: u32,
        flags: u32,
        reserved: u32,
        target: [u8; 48],
    }

    /// `silt_batch_t`.
    "silt_batch_t" Batch {
        base_offset: i64,
        last_offset: i64,
        base_timestamp_ms: i64,
        max_timestamp_ms: i64,
        producer_id: i64,
        position: u64,
        size_bytes: u32,
        crc: u32,
        leader_epoch: i32,
        base_sequence: i32,
        record_count: i32,
        producer_epoch: i16,
        magic: i8,
        codec: u8,
        flags: u32,
        reserved: u32,
    }

    /// `silt_end_marker_t`.
    "silt_end_marker_t" EndMarker {
        struct_size: u32,
        flags: u32,
        producer_id: i64,
        timestamp_ms: i64,
        base_offset: i64,
        coordinator_epoch: i32,
        leader_epoch: i32,
        producer_epoch: i32,
        reserved: u32,
    }

    /// `silt_rebuilt_t`.
    "silt_rebuilt_t" Rebuilt {
        struct_size: u32,
        batch_count: u32,
        valid_bytes: u64,
        next_offset: i64,
        max_timestamp_ms: i64,
        offset_index_size_bytes: u64,
        time_index_size_bytes: u64,
    }

    /// `silt_config_t`.
    "silt_config_t" Config {
        name: *const c_char,
        value: *const c_char,
    }

    /// `silt_log_options_t`.
    "silt_log_options_t" LogOptions {
        struct_size: u32,
        flags: u32,
        configs: *const Config,
        config_count: u32,
        io: u32,
        recovery_point: i64,
        log_start_offset: i64,
        now_ms: i64,
        topic_id: [u8; 16],
        open_files_max: u32,
        reserved: u32,
        producer_expiration_ms: i64,
    }

    /// `silt_append_t`.
    "silt_append_t" Append {
        struct_size: u32,
        leader_epoch: i32,
        now_ms: i64,
        origin: u32,
        transaction_version: i32,
        verification: u64,
    }

    /// `silt_appended_t`.
    "silt_appended_t" Appended {
        struct_size: u32,
        flags: u32,
        first_offset: i64,
        last_offset: i64,
        max_timestamp_ms: i64,
        log_append_time_ms: i64,
        log_start_offset: i64,
        size_bytes: u64,
    }

    /// `silt_offsets_t`.
    "silt_offsets_t" Offsets {
        struct_size: u32,
        segment_count: u32,
        log_start_offset: i64,
        local_log_start_offset: i64,
        high_watermark: i64,
        last_stable_offset: i64,
        log_end_offset: i64,
        recovery_point: i64,
        highest_remote_offset: i64,
        size_bytes: u64,
    }

    /// `silt_segment_t`.
    "silt_segment_t" Segment {
        base_offset: i64,
        size_bytes: u64,
        max_timestamp_ms: i64,
        reserved: i64,
    }

    /// `silt_epoch_t`.
    "silt_epoch_t" Epoch {
        start_offset: i64,
        epoch: i32,
        reserved: i32,
    }

    /// `silt_time_offset_t`.
    "silt_time_offset_t" TimeOffset {
        timestamp_ms: i64,
        offset: i64,
        leader_epoch: i32,
        reserved: i32,
    }

    /// `silt_aborted_t`.
    "silt_aborted_t" Aborted {
        producer_id: i64,
        first_offset: i64,
        last_offset: i64,
    }

    /// `silt_fetch_t`.
    "silt_fetch_t" Fetch {
        log: *const Handle<LogObject>,
        offset: i64,
        max_bytes: u32,
        up_to: u32,
        flags: u32,
        aborted_capacity: u32,
        aborted: *mut Aborted,
    }

    /// `silt_range_t`.
    "silt_range_t" Range {
        fd: i32,
        flags: u32,
        position: u64,
        size_bytes: u64,
        base_offset: i64,
        segment_base_offset: i64,
        lease: u64,
        truncations: u32,
        aborted_count: u32,
    }

    /// `silt_index_entry_t`.
    "silt_index_entry_t" IndexEntry {
        offset: i64,
        timestamp_ms: i64,
        position: i32,
        reserved: i32,
    }

    /// `silt_aborted_entry_t`.
    "silt_aborted_entry_t" AbortedEntry {
        producer_id: i64,
        first_offset: i64,
        last_offset: i64,
        last_stable_offset: i64,
    }

    /// `silt_append_item_t`.
    "silt_append_item_t" AppendItem {
        log: *const Handle<LogObject>,
        records: *mut u8,
        size_bytes: u64,
        now_ms: i64,
        leader_epoch: i32,
        origin: u32,
        transaction_version: i32,
        flags: u32,
    }

    /// `silt_append_result_t`.
    "silt_append_result_t" AppendResult {
        first_offset: i64,
        last_offset: i64,
        max_timestamp_ms: i64,
        log_append_time_ms: i64,
        log_start_offset: i64,
        size_bytes: u64,
        flags: u32,
        detail_code: i32,
    }

    /// `silt_op_t`.
    "silt_op_t" Op {
        user_data: u64,
        kind: u32,
        flags: u32,
        log: *const Handle<LogObject>,
        bytes: *mut c_void,
        size_bytes: u64,
        offset: i64,
        now_ms: i64,
        leader_epoch: i32,
        origin: u32,
        transaction_version: i32,
        max_bytes: u32,
        up_to: u32,
        aborted_capacity: u32,
        aborted: *mut Aborted,
        opaque: [u64; 4],
    }

    /// `silt_done_t`.
    "silt_done_t" Done {
        user_data: u64,
        kind: u32,
        status: i32,
        detail_code: i32,
        os_errno: i32,
        first_offset: i64,
        last_offset: i64,
        range: Range,
    }

    /// `silt_producer_t`.
    "silt_producer_t" Producer {
        producer_id: i64,
        last_offset: i64,
        last_timestamp_ms: i64,
        txn_first_offset: i64,
        last_sequence: i32,
        offset_delta: i32,
        coordinator_epoch: i32,
        producer_epoch: i16,
        reserved: i16,
    }

    /// `silt_scan_t`.
    "silt_scan_t" Scan {
        struct_size: u32,
        index_interval_bytes: u32,
        base_offset: i64,
        index_size_bytes_max: u32,
        producers_before_count: u32,
        producers_before: *const Producer,
        offset_index: *mut c_void,
        offset_index_capacity: u64,
        time_index: *mut c_void,
        time_index_capacity: u64,
        txn_index: *mut c_void,
        txn_index_capacity: u64,
        producers: *mut Producer,
        producers_capacity: u32,
        reserved: u32,
    }

    /// `silt_scanned_t`.
    "silt_scanned_t" Scanned {
        struct_size: u32,
        flags: u32,
        batch_count: u32,
        producer_count: u32,
        valid_bytes: u64,
        next_offset: i64,
        max_timestamp_ms: i64,
        offset_index_size_bytes: u64,
        time_index_size_bytes: u64,
        txn_index_size_bytes: u64,
        first_undecided_offset: i64,
    }

    /// `silt_topic_config_t`.
    "silt_topic_config_t" TopicConfig {
        topic: *const c_char,
        name: *const c_char,
        value: *const c_char,
    }

    /// `silt_engine_options_t`.
    "silt_engine_options_t" EngineOptions {
        struct_size: u32,
        flags: u32,
        configs: *const Config,
        topic_configs: *const TopicConfig,
        config_count: u32,
        topic_config_count: u32,
        cluster_id: *const c_char,
        node_id: i32,
        threads: u32,
        now_ms: i64,
        io: u32,
        open_files_max: u32,
        progress: ProgressFn,
        progress_ctx: *mut c_void,
    }

    /// `silt_new_log_t`.
    "silt_new_log_t" NewLog {
        struct_size: u32,
        flags: u32,
        configs: *const Config,
        config_count: u32,
        reserved: u32,
        topic_id: [u8; 16],
        dir: *const c_char,
        now_ms: i64,
    }

    /// `silt_engine_partition_t`.
    "silt_engine_partition_t" EnginePartition {
        topic: [u8; 252],
        partition: i32,
    }

    /// `silt_work_t`.
    "silt_work_t" Work {
        id: u64,
        kind: u32,
        reserved: u32,
    }

    /// `silt_engine_stats_t`.
    "silt_engine_stats_t" EngineStats {
        struct_size: u32,
        reserved: u32,
        logs: u64,
        future_logs: u64,
        shut_logs: u64,
        failed_logs: u64,
        uncleanable_logs: u64,
        offline_dirs: u64,
        segments: u64,
        size_bytes: u64,
        dirty_bytes: u64,
        open_segments: u64,
        open_files: u64,
        waiting_folders: u64,
        previous_broker_epoch: i64,
    }
}

impl From<&EpochEntry> for Epoch {
    fn from(entry: &EpochEntry) -> Self {
        Epoch { start_offset: entry.start_offset, epoch: entry.epoch, reserved: 0 }
    }
}

impl From<&Epoch> for EpochEntry {
    fn from(given: &Epoch) -> Self {
        EpochEntry { epoch: given.epoch, start_offset: given.start_offset }
    }
}

/// Says that a struct grows: its first size, and what is not 0 when nobody says anything.
macro_rules! growing {
    ($($name:ident, $first_size:literal { $($field:ident: $value:expr),* $(,)? };)*) => {
        $(
            const _: () = assert!(size_of::<$name>() >= $first_size);
            const _: () = assert!(size_of::<$name>() <= crate::memory::STRUCT_SIZE_MAX);
            // SAFETY: `repr(C)`, no padding (the fields add up to the size, which a test compares
            // with the header), the size first, numbers and pointers alone.
            unsafe impl crate::memory::Growing for $name {
                const INIT: Self = {
                    // SAFETY: every pattern of bits is a value.
                    const ZERO: $name = unsafe { std::mem::zeroed() };
                    $name { $($field: $value,)* ..ZERO }
                };
                const FIRST_SIZE: usize = $first_size;
            }
        )*
    };
}
pub(crate) use growing;

growing! {
    BuildInfo, 64 {};
    EndMarker, 48 { leader_epoch: -1 };
    Rebuilt, 48 { next_offset: -1, max_timestamp_ms: -1 };
    LogOptions, 72 {};
    Append, 24 {};
    Appended, 56 {
        first_offset: -1,
        last_offset: -1,
        max_timestamp_ms: -1,
        log_append_time_ms: -1,
        log_start_offset: -1,
    };
    Offsets, 72 {
        log_start_offset: -1,
        local_log_start_offset: -1,
        high_watermark: -1,
        last_stable_offset: -1,
        log_end_offset: -1,
        recovery_point: -1,
        highest_remote_offset: -1,
    };
    EngineOptions, 64 {};
    NewLog, 56 {};
    EngineStats, 112 { previous_broker_epoch: -1 };
    Scan, 96 {};
    Scanned, 72 { next_offset: -1, max_timestamp_ms: -1, first_undecided_offset: -1 };
}
