package io.siltstone;

import static io.siltstone.Layouts.bytes;
import static io.siltstone.Layouts.i16;
import static io.siltstone.Layouts.i32;
import static io.siltstone.Layouts.i64;
import static io.siltstone.Layouts.pointer;
import static io.siltstone.Layouts.struct;
import static io.siltstone.Layouts.RANGE;

import java.lang.foreign.StructLayout;

/** Structs of the header for many logs, engines, rings and producers, in its order. */
final class EngineLayouts {
    static final StructLayout APPEND_ITEM = struct("silt_append_item_t",
            pointer("log"), pointer("records"), i64("size_bytes"), i64("now_ms"),
            i32("leader_epoch"), i32("origin"), i32("transaction_version"), i32("flags"));

    static final StructLayout APPEND_RESULT = struct("silt_append_result_t",
            i64("first_offset"), i64("last_offset"), i64("max_timestamp_ms"),
            i64("log_append_time_ms"), i64("log_start_offset"), i64("size_bytes"), i32("flags"),
            i32("detail_code"));

    static final StructLayout TOPIC_CONFIG = struct("silt_topic_config_t",
            pointer("topic"), pointer("name"), pointer("value"));

    static final StructLayout ENGINE_OPTIONS = struct("silt_engine_options_t",
            i32("struct_size"), i32("flags"), pointer("configs"), pointer("topic_configs"),
            i32("config_count"), i32("topic_config_count"), pointer("cluster_id"), i32("node_id"),
            i32("threads"), i64("now_ms"), i32("io"), i32("open_files_max"), pointer("progress"),
            pointer("progress_ctx"));

    static final StructLayout NEW_LOG = struct("silt_new_log_t",
            i32("struct_size"), i32("flags"), pointer("configs"), i32("config_count"),
            i32("reserved"), bytes("topic_id", 16), pointer("dir"), i64("now_ms"));

    static final StructLayout ENGINE_PARTITION = struct("silt_engine_partition_t",
            bytes("topic", 252), i32("partition"));

    static final StructLayout WORK = struct("silt_work_t",
            i64("id"), i32("kind"), i32("reserved"));

    static final StructLayout ENGINE_STATS = struct("silt_engine_stats_t",
            i32("struct_size"), i32("reserved"), i64("logs"), i64("future_logs"),
            i64("shut_logs"), i64("failed_logs"), i64("uncleanable_logs"), i64("offline_dirs"),
            i64("segments"), i64("size_bytes"), i64("dirty_bytes"), i64("open_segments"),
            i64("open_files"), i64("waiting_folders"), i64("previous_broker_epoch"));

    static final StructLayout OP = struct("silt_op_t",
            i64("user_data"), i32("kind"), i32("flags"), pointer("log"), pointer("bytes"),
            i64("size_bytes"), i64("offset"), i64("now_ms"), i32("leader_epoch"), i32("origin"),
            i32("transaction_version"), i32("max_bytes"), i32("up_to"), i32("aborted_capacity"),
            pointer("aborted"), bytes("opaque", 32));

    static final StructLayout DONE = struct("silt_done_t",
            i64("user_data"), i32("kind"), i32("status"), i32("detail_code"), i32("os_errno"),
            i64("first_offset"), i64("last_offset"), RANGE.withName("range"));

    static final StructLayout PRODUCER = struct("silt_producer_t",
            i64("producer_id"), i64("last_offset"), i64("last_timestamp_ms"),
            i64("txn_first_offset"), i32("last_sequence"), i32("offset_delta"),
            i32("coordinator_epoch"), i16("producer_epoch"), i16("reserved"));

    static final StructLayout SCAN = struct("silt_scan_t",
            i32("struct_size"), i32("index_interval_bytes"), i64("base_offset"),
            i32("index_size_bytes_max"), i32("producers_before_count"),
            pointer("producers_before"), pointer("offset_index"), i64("offset_index_capacity"),
            pointer("time_index"), i64("time_index_capacity"), pointer("txn_index"),
            i64("txn_index_capacity"), pointer("producers"), i32("producers_capacity"),
            i32("reserved"));

    static final StructLayout SCANNED = struct("silt_scanned_t",
            i32("struct_size"), i32("flags"), i32("batch_count"), i32("producer_count"),
            i64("valid_bytes"), i64("next_offset"), i64("max_timestamp_ms"),
            i64("offset_index_size_bytes"), i64("time_index_size_bytes"),
            i64("txn_index_size_bytes"), i64("first_undecided_offset"));

    private EngineLayouts() {}
}
