package io.siltstone;

import static io.siltstone.Layouts.bytes;
import static io.siltstone.Layouts.i32;
import static io.siltstone.Layouts.i64;
import static io.siltstone.Layouts.pointer;
import static io.siltstone.Layouts.struct;

import java.lang.foreign.StructLayout;

/** Structs of the header for remote storage, in its order. */
final class TierLayouts {
    static final StructLayout TIER_COLUMNS = struct("silt_tier_columns_t",
            i32("struct_size"), i32("partition_count"), i64("segment_count"), i64("now_ms"),
            pointer("base_offset"), pointer("start_bytes"), pointer("max_timestamp_ms"),
            pointer("segment_end"), pointer("active_size_bytes"), pointer("log_start_offset"),
            pointer("last_stable_offset"), pointer("copied_offset"),
            pointer("lineage_start_offset"), pointer("copy_lag_ms"), pointer("copy_lag_bytes"),
            pointer("damaged"), i64("damaged_count"), pointer("eligible"), pointer("reason"),
            pointer("first_segment"), pointer("eligible_count"), pointer("stop"),
            pointer("sum_bytes"), pointer("oldest_timestamp_ms"));

    static final StructLayout DIRECT_REQUEST = struct("silt_direct_request_t",
            i32("struct_size"), i32("aborted_capacity"), i64("start_offset"), i64("end_offset"),
            i64("log_size_bytes"), pointer("offset_index"), i64("offset_index_size_bytes"),
            pointer("transaction_index"), i64("transaction_index_size_bytes"), i64("offset"),
            i64("limit_offset"), i64("max_bytes"), pointer("aborted"));

    static final StructLayout DIRECT_READ = struct("silt_direct_read_t",
            i32("struct_size"), i32("flags"), i64("position"), i64("size_bytes"),
            i64("upper_bound_offset"), i64("next_offset"), i32("aborted_count"), i32("reserved"));

    static final StructLayout REMOTE_RECORD = struct("silt_remote_record_t",
            i32("struct_size"), i32("kind"), i32("state"), i32("partition"), i32("broker_id"),
            i32("size_bytes"), i64("start_offset"), i64("end_offset"), i64("max_timestamp_ms"),
            i64("event_timestamp_ms"), bytes("topic_id", 16), bytes("segment_id", 16),
            i32("flags"), i32("epoch_count"), pointer("epochs"), pointer("topic"),
            pointer("custom"), i32("topic_size_bytes"), i32("custom_size_bytes"),
            i32("epoch_capacity"), i32("topic_capacity"), i32("custom_capacity"),
            i32("reserved"));

    static final StructLayout UPLOAD_OPTIONS = struct("silt_upload_options_t",
            i32("struct_size"), i32("flags"), i64("now_ms"), bytes("topic_id", 16),
            bytes("segment_id", 16), i32("broker_id"), i32("reserved"));

    static final StructLayout PART = struct("silt_part_t",
            i32("part"), i32("fd"), i64("position"), i64("size_bytes"), pointer("bytes"));

    static final StructLayout REBUILD = struct("silt_rebuild_t",
            pointer("log"), pointer("dir"), pointer("segment"), i64("log_start_offset"),
            i64("next_offset"), i64("first_open_offset"), i64("bytes_read"),
            i32("producer_count"), i32("flags"));

    static final StructLayout REBUILD_OPTIONS = struct("silt_rebuild_options_t",
            i32("struct_size"), i32("threads"), pointer("store_dir"), pointer("prefix"),
            i64("held_bytes_max"), i64("object_bytes_max"), i64("now_ms"), i32("partitions_max"),
            i32("io"));

    private TierLayouts() {}
}
