//! The plain structs of log directories.

use std::ffi::c_char;

use crate::types::{c_structs, growing};

c_structs! {
    /// `silt_dir_options_t`.
    "silt_dir_options_t" DirOptions {
        struct_size: u32,
        io: u32,
    }

    /// `silt_partition_dir_t`.
    "silt_partition_dir_t" PartitionDir {
        dir: u32,
        partition: i32,
        flags: u32,
        reserved: u32,
        log_start_offset: i64,
        log_size_bytes: u64,
        topic: [u8; 256],
    }

    /// `silt_problem_t`.
    "silt_problem_t" Problem {
        dir: u32,
        number: u32,
        severity: u32,
        reserved: u32,
        position: i64,
        offset: i64,
        code: [u8; 32],
        file: [u8; 128],
        detail: [u8; 256],
    }

    /// `silt_verify_options_t`.
    "silt_verify_options_t" VerifyOptions {
        struct_size: u32,
        flags: u32,
        now_ms: i64,
        threads: u32,
        reserved: u32,
    }

    /// `silt_topic_settings_t`.
    "silt_topic_settings_t" TopicSettings {
        topic: *const c_char,
        index_interval_bytes: u32,
        index_size_bytes_max: u32,
        flags: u32,
        reserved: u32,
    }

    /// `silt_recover_options_t`.
    "silt_recover_options_t" RecoverOptions {
        struct_size: u32,
        flags: u32,
        now_ms: i64,
        quarantine: *const c_char,
        topics: *const TopicSettings,
        topic_count: u32,
        threads: u32,
        producer_expiration_ms: i64,
    }

    /// `silt_recovery_t`.
    "silt_recovery_t" Recovery {
        dir: u32,
        partition: i32,
        outcome: u32,
        status: i32,
        log_start_offset: i64,
        log_end_offset: i64,
        last_stable_offset: i64,
        cut_offset: i64,
        cut_bytes: u64,
        bytes_read: u64,
        step_count: u32,
        problem_count: u32,
        topic: [u8; 256],
        reason: [u8; 256],
    }

    /// `silt_plan_step_t`.
    "silt_plan_step_t" PlanStep {
        number: u32,
        kind: u32,
        offset: i64,
        position: i64,
        size_bytes: u64,
        file: [u8; 128],
        detail: [u8; 256],
    }
}

growing! {
    DirOptions, 8 {};
    VerifyOptions, 24 {};
    RecoverOptions, 48 {};
}
