//! The plain structs of the rules for replicas.

use crate::handle::Handle;
use crate::log::LogObject;
use crate::types::{Epoch, c_structs, growing};

c_structs! {
    /// `silt_bounds_t`.
    "silt_bounds_t" Bounds {
        struct_size: u32,
        flags: u32,
        log: *const Handle<LogObject>,
        epochs: *const Epoch,
        epoch_count: u32,
        leader_epoch: i32,
        log_start_offset: i64,
        local_log_start_offset: i64,
        log_end_offset: i64,
        high_watermark: i64,
        last_stable_offset: i64,
        highest_remote_offset: i64,
        leader_epoch_start_offset: i64,
    }

    /// `silt_fetch_state_t`.
    "silt_fetch_state_t" FetchState {
        fetch_offset: i64,
        lag: i64,
        leader_epoch: i32,
        last_fetched_epoch: i32,
        flags: u32,
        reserved: u32,
    }

    /// `silt_leader_answers_t`.
    "silt_leader_answers_t" LeaderAnswers {
        latest: i64,
        earliest: i64,
        earliest_local: i64,
        earliest_pending_upload: i64,
        latest_tiered: i64,
        epoch_end_offset: i64,
        earliest_local_epoch: i32,
        earliest_pending_upload_epoch: i32,
        latest_tiered_epoch: i32,
        epoch_asked: i32,
        epoch_found: i32,
        known: u32,
    }

    /// `silt_follower_event_t`.
    "silt_follower_event_t" FollowerEvent {
        struct_size: u32,
        kind: u32,
        fetch_offset: i64,
        high_watermark: i64,
        log_start_offset: i64,
        log_end_offset: i64,
        end_offset: i64,
        leader_epoch: i32,
        epoch: i32,
        answer: u32,
        error_code: i32,
        failure: u32,
        reserved: u32,
        known: LeaderAnswers,
    }

    /// `silt_follower_action_t`.
    "silt_follower_action_t" FollowerAction {
        struct_size: u32,
        kind: u32,
        state: FetchState,
        offset: i64,
        high_watermark: i64,
        log_start_offset: i64,
        leader_log_end_offset: i64,
        previous_offset: i64,
        epoch: i32,
        query: u32,
        reason: u32,
        error_code: i32,
    }

    /// `silt_fetch_verdict_t`.
    "silt_fetch_verdict_t" FetchVerdict {
        struct_size: u32,
        kind: u32,
        high_watermark: i64,
        log_start_offset: i64,
        log_end_offset: i64,
        end_offset: i64,
        epoch: i32,
        error_code: i32,
    }

    /// `silt_progress_t`.
    "silt_progress_t" Progress {
        log_start_offset: i64,
        log_end_offset: i64,
        last_caught_up_ms: i64,
        last_fetch_ms: i64,
        leader_end_at_fetch: i64,
        broker_epoch: i64,
        registered_epoch: i64,
        replica: i32,
        flags: u32,
    }

    /// `silt_isr_t`.
    "silt_isr_t" Isr {
        struct_size: u32,
        change: u32,
        committed: *const i32,
        changed: *const i32,
        committed_count: u32,
        changed_count: u32,
        partition_epoch: i32,
        min_insync_replicas: i32,
        replica_count: u32,
        reserved: u32,
        log_end_offset: i64,
        high_watermark: i64,
        leader_epoch_start_offset: i64,
        now_ms: i64,
        lag_max_ms: i64,
    }

    /// `silt_watermark_t`.
    "silt_watermark_t" Watermark {
        struct_size: u32,
        kind: u32,
        high_watermark: i64,
        held_by: i32,
        reserved: u32,
    }

    /// `silt_partition_t`.
    "silt_partition_t" Partition {
        struct_size: u32,
        flags: u32,
        replicas: *mut i32,
        isr: *mut i32,
        elr: *mut i32,
        last_known_elr: *mut i32,
        adding: *mut i32,
        removing: *mut i32,
        replica_count: u32,
        isr_count: u32,
        elr_count: u32,
        last_known_elr_count: u32,
        adding_count: u32,
        removing_count: u32,
        capacity: u32,
        leader: i32,
        leader_epoch: i32,
        partition_epoch: i32,
    }

    /// `silt_partition_event_t`.
    "silt_partition_event_t" PartitionEvent {
        struct_size: u32,
        kind: u32,
        flags: u32,
        election: u32,
        broker: i32,
        min_insync_replicas: i32,
        target_isr: *const i32,
        unclean: *const i32,
        available: *const i32,
        target_isr_count: u32,
        unclean_count: u32,
        available_count: u32,
        recovering: i32,
    }
}

/// No state.
pub const NO_STATE: FetchState = FetchState {
    fetch_offset: -1,
    lag: -1,
    leader_epoch: -1,
    last_fetched_epoch: -1,
    flags: 0,
    reserved: 0,
};

growing! {
    Bounds, 88 { highest_remote_offset: -1 };
    FollowerEvent, 144 {};
    FollowerAction, 96 {
        state: NO_STATE,
        offset: -1,
        high_watermark: -1,
        log_start_offset: -1,
        leader_log_end_offset: -1,
        previous_offset: -1,
        epoch: -1,
    };
    FetchVerdict, 48 {
        high_watermark: -1,
        log_start_offset: -1,
        log_end_offset: -1,
        end_offset: -1,
        epoch: -1,
    };
    Isr, 88 {};
    Watermark, 24 { high_watermark: -1, held_by: -1 };
    Partition, 96 { leader: -1 };
    PartitionEvent, 64 { broker: -1, min_insync_replicas: 1, recovering: -1 };
}
