package io.siltstone;

import static io.siltstone.Layouts.i32;
import static io.siltstone.Layouts.i64;
import static io.siltstone.Layouts.pointer;
import static io.siltstone.Layouts.struct;

import java.lang.foreign.StructLayout;

/** Structs of the header for replicas, in its order. */
final class ReplicaLayouts {
    static final StructLayout BOUNDS = struct("silt_bounds_t",
            i32("struct_size"), i32("flags"), pointer("log"), pointer("epochs"),
            i32("epoch_count"), i32("leader_epoch"), i64("log_start_offset"),
            i64("local_log_start_offset"), i64("log_end_offset"), i64("high_watermark"),
            i64("last_stable_offset"), i64("highest_remote_offset"),
            i64("leader_epoch_start_offset"));

    static final StructLayout FETCH_STATE = struct("silt_fetch_state_t",
            i64("fetch_offset"), i64("lag"), i32("leader_epoch"), i32("last_fetched_epoch"),
            i32("flags"), i32("reserved"));

    static final StructLayout LEADER_ANSWERS = struct("silt_leader_answers_t",
            i64("latest"), i64("earliest"), i64("earliest_local"), i64("earliest_pending_upload"),
            i64("latest_tiered"), i64("epoch_end_offset"), i32("earliest_local_epoch"),
            i32("earliest_pending_upload_epoch"), i32("latest_tiered_epoch"), i32("epoch_asked"),
            i32("epoch_found"), i32("known"));

    static final StructLayout FOLLOWER_EVENT = struct("silt_follower_event_t",
            i32("struct_size"), i32("kind"), i64("fetch_offset"), i64("high_watermark"),
            i64("log_start_offset"), i64("log_end_offset"), i64("end_offset"),
            i32("leader_epoch"), i32("epoch"), i32("answer"), i32("error_code"), i32("failure"),
            i32("reserved"), LEADER_ANSWERS.withName("known"));

    static final StructLayout FOLLOWER_ACTION = struct("silt_follower_action_t",
            i32("struct_size"), i32("kind"), FETCH_STATE.withName("state"), i64("offset"),
            i64("high_watermark"), i64("log_start_offset"), i64("leader_log_end_offset"),
            i64("previous_offset"), i32("epoch"), i32("query"), i32("reason"), i32("error_code"));

    static final StructLayout FETCH_VERDICT = struct("silt_fetch_verdict_t",
            i32("struct_size"), i32("kind"), i64("high_watermark"), i64("log_start_offset"),
            i64("log_end_offset"), i64("end_offset"), i32("epoch"), i32("error_code"));

    static final StructLayout PROGRESS = struct("silt_progress_t",
            i64("log_start_offset"), i64("log_end_offset"), i64("last_caught_up_ms"),
            i64("last_fetch_ms"), i64("leader_end_at_fetch"), i64("broker_epoch"),
            i64("registered_epoch"), i32("replica"), i32("flags"));

    static final StructLayout ISR = struct("silt_isr_t",
            i32("struct_size"), i32("change"), pointer("committed"), pointer("changed"),
            i32("committed_count"), i32("changed_count"), i32("partition_epoch"),
            i32("min_insync_replicas"), i32("replica_count"), i32("reserved"),
            i64("log_end_offset"), i64("high_watermark"), i64("leader_epoch_start_offset"),
            i64("now_ms"), i64("lag_max_ms"));

    static final StructLayout WATERMARK = struct("silt_watermark_t",
            i32("struct_size"), i32("kind"), i64("high_watermark"), i32("held_by"),
            i32("reserved"));

    static final StructLayout PARTITION = struct("silt_partition_t",
            i32("struct_size"), i32("flags"), pointer("replicas"), pointer("isr"), pointer("elr"),
            pointer("last_known_elr"), pointer("adding"), pointer("removing"),
            i32("replica_count"), i32("isr_count"), i32("elr_count"), i32("last_known_elr_count"),
            i32("adding_count"), i32("removing_count"), i32("capacity"), i32("leader"),
            i32("leader_epoch"), i32("partition_epoch"));

    static final StructLayout PARTITION_EVENT = struct("silt_partition_event_t",
            i32("struct_size"), i32("kind"), i32("flags"), i32("election"), i32("broker"),
            i32("min_insync_replicas"), pointer("target_isr"), pointer("unclean"),
            pointer("available"), i32("target_isr_count"), i32("unclean_count"),
            i32("available_count"), i32("recovering"));

    private ReplicaLayouts() {}
}
