//! The plain structs of the header, field by field.

use std::ffi::c_char;

use crate::handle::Handle;
use crate::log::LogObject;
use crate::memory::Growing;

/// `SILT_BUILD_IO_URING`.
pub const IO_URING_HERE: u32 = 1;

/// `silt_build_info_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BuildInfo {
    pub struct_size: u32,
    pub abi_version: u32,
    pub flags: u32,
    pub reserved: u32,
    pub target: [u8; 48],
}

impl BuildInfo {
    pub const ZERO: Self =
        BuildInfo { struct_size: 0, abi_version: 0, flags: 0, reserved: 0, target: [0; 48] };
}

/// `silt_batch_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Batch {
    pub base_offset: i64,
    pub last_offset: i64,
    pub base_timestamp_ms: i64,
    pub max_timestamp_ms: i64,
    pub producer_id: i64,
    pub position: u64,
    pub size_bytes: u32,
    pub crc: u32,
    pub leader_epoch: i32,
    pub base_sequence: i32,
    pub record_count: i32,
    pub producer_epoch: i16,
    pub magic: i8,
    pub codec: u8,
    pub flags: u32,
    pub reserved: u32,
}

/// `silt_rebuilt_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Rebuilt {
    pub struct_size: u32,
    pub batch_count: u32,
    pub valid_bytes: u64,
    pub next_offset: i64,
    pub max_timestamp_ms: i64,
    pub offset_index_size_bytes: u64,
    pub time_index_size_bytes: u64,
}

/// `silt_config_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Config {
    pub name: *const c_char,
    pub value: *const c_char,
}

/// `silt_log_options_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LogOptions {
    pub struct_size: u32,
    pub flags: u32,
    pub configs: *const Config,
    pub config_count: u32,
    pub io: u32,
    pub recovery_point: i64,
    pub log_start_offset: i64,
    pub now_ms: i64,
    pub topic_id: [u8; 16],
    pub open_files_max: u32,
    pub reserved: u32,
}

/// `silt_append_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Append {
    pub struct_size: u32,
    pub leader_epoch: i32,
    pub now_ms: i64,
    pub origin: u32,
    pub transaction_version: i32,
}

/// `silt_appended_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Appended {
    pub struct_size: u32,
    pub flags: u32,
    pub first_offset: i64,
    pub last_offset: i64,
    pub max_timestamp_ms: i64,
    pub log_append_time_ms: i64,
    pub log_start_offset: i64,
    pub size_bytes: u64,
}

/// `silt_offsets_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Offsets {
    pub struct_size: u32,
    pub segment_count: u32,
    pub log_start_offset: i64,
    pub local_log_start_offset: i64,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_end_offset: i64,
    pub recovery_point: i64,
    pub highest_remote_offset: i64,
    pub size_bytes: u64,
}

/// `silt_segment_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Segment {
    pub base_offset: i64,
    pub size_bytes: u64,
    pub max_timestamp_ms: i64,
    pub reserved: i64,
}

/// `silt_epoch_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Epoch {
    pub start_offset: i64,
    pub epoch: i32,
    pub reserved: i32,
}

/// `silt_time_offset_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct TimeOffset {
    pub timestamp_ms: i64,
    pub offset: i64,
    pub leader_epoch: i32,
    pub reserved: i32,
}

/// `silt_aborted_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Aborted {
    pub producer_id: i64,
    pub first_offset: i64,
    pub last_offset: i64,
}

/// `silt_fetch_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Fetch {
    pub log: *const Handle<LogObject>,
    pub offset: i64,
    pub max_bytes: u32,
    pub up_to: u32,
    pub flags: u32,
    pub aborted_capacity: u32,
    pub aborted: *mut Aborted,
}

/// `silt_range_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Range {
    pub fd: i32,
    pub flags: u32,
    pub position: u64,
    pub size_bytes: u64,
    pub base_offset: i64,
    pub segment_base_offset: i64,
    pub lease: u64,
    pub truncations: u32,
    pub aborted_count: u32,
}

/// Says that a struct grows: its values when nobody says anything, and its first size.
macro_rules! growing {
    ($($name:ident, $first_size:literal, $init:expr;)*) => {
        $(
            const _: () = assert!(size_of::<$name>() >= $first_size);
            // SAFETY: `repr(C)`, no padding (the fields add up to the size, which a test compares
            // with the header), the size first, numbers and pointers alone.
            unsafe impl Growing for $name {
                const INIT: Self = $init;
                const FIRST_SIZE: usize = $first_size;
            }
        )*
    };
}

growing! {
    BuildInfo, 64, BuildInfo::ZERO;
    Rebuilt, 48, Rebuilt {
        struct_size: 0,
        batch_count: 0,
        valid_bytes: 0,
        next_offset: -1,
        max_timestamp_ms: -1,
        offset_index_size_bytes: 0,
        time_index_size_bytes: 0,
    };
    LogOptions, 72, LogOptions {
        struct_size: 0,
        flags: 0,
        configs: std::ptr::null(),
        config_count: 0,
        io: 0,
        recovery_point: 0,
        log_start_offset: 0,
        now_ms: 0,
        topic_id: [0; 16],
        open_files_max: 0,
        reserved: 0,
    };
    Append, 24, Append {
        struct_size: 0,
        leader_epoch: 0,
        now_ms: 0,
        origin: 0,
        transaction_version: 0,
    };
    Appended, 56, Appended {
        struct_size: 0,
        flags: 0,
        first_offset: -1,
        last_offset: -1,
        max_timestamp_ms: -1,
        log_append_time_ms: -1,
        log_start_offset: -1,
        size_bytes: 0,
    };
    Offsets, 72, Offsets {
        struct_size: 0,
        segment_count: 0,
        log_start_offset: -1,
        local_log_start_offset: -1,
        high_watermark: -1,
        last_stable_offset: -1,
        log_end_offset: -1,
        recovery_point: -1,
        highest_remote_offset: -1,
        size_bytes: 0,
    };
}
