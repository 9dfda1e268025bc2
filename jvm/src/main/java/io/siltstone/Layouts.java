package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.StructLayout;

/** The structs of the header, in its order. A test compares them with {@code siltstone.abi}. */
final class Layouts {
    static final StructLayout ERROR = struct("silt_error_t",
            i32("struct_size"), i32("code"), i32("os_errno"), i32("detail_code"),
            i64("offset"), i64("position"), bytes("message", 224));

    static final StructLayout BUILD_INFO = struct("silt_build_info_t",
            i32("struct_size"), i32("abi_version"), i32("flags"), i32("reserved"),
            bytes("target", 48));

    static final StructLayout BATCH = struct("silt_batch_t",
            i64("base_offset"), i64("last_offset"), i64("base_timestamp_ms"),
            i64("max_timestamp_ms"), i64("producer_id"), i64("position"), i32("size_bytes"),
            i32("crc"), i32("leader_epoch"), i32("base_sequence"), i32("record_count"),
            i16("producer_epoch"), i8("magic"), i8("codec"), i32("flags"), i32("reserved"));

    static final StructLayout END_MARKER = struct("silt_end_marker_t",
            i32("struct_size"), i32("flags"), i64("producer_id"), i64("timestamp_ms"),
            i64("base_offset"), i32("coordinator_epoch"), i32("leader_epoch"),
            i32("producer_epoch"), i32("reserved"));

    static final StructLayout REBUILT = struct("silt_rebuilt_t",
            i32("struct_size"), i32("batch_count"), i64("valid_bytes"), i64("next_offset"),
            i64("max_timestamp_ms"), i64("offset_index_size_bytes"),
            i64("time_index_size_bytes"));

    static final StructLayout CONFIG = struct("silt_config_t", pointer("name"), pointer("value"));

    static final StructLayout LOG_OPTIONS = struct("silt_log_options_t",
            i32("struct_size"), i32("flags"), pointer("configs"), i32("config_count"), i32("io"),
            i64("recovery_point"), i64("log_start_offset"), i64("now_ms"), bytes("topic_id", 16),
            i32("open_files_max"), i32("reserved"), i64("producer_expiration_ms"));

    static final StructLayout APPEND = struct("silt_append_t",
            i32("struct_size"), i32("leader_epoch"), i64("now_ms"), i32("origin"),
            i32("transaction_version"), i64("verification"));

    static final StructLayout APPENDED = struct("silt_appended_t",
            i32("struct_size"), i32("flags"), i64("first_offset"), i64("last_offset"),
            i64("max_timestamp_ms"), i64("log_append_time_ms"), i64("log_start_offset"),
            i64("size_bytes"));

    static final StructLayout OFFSETS = struct("silt_offsets_t",
            i32("struct_size"), i32("segment_count"), i64("log_start_offset"),
            i64("local_log_start_offset"), i64("high_watermark"), i64("last_stable_offset"),
            i64("log_end_offset"), i64("recovery_point"), i64("highest_remote_offset"),
            i64("size_bytes"));

    static final StructLayout SEGMENT = struct("silt_segment_t",
            i64("base_offset"), i64("size_bytes"), i64("max_timestamp_ms"), i64("reserved"));

    static final StructLayout EPOCH = struct("silt_epoch_t",
            i64("start_offset"), i32("epoch"), i32("reserved"));

    static final StructLayout TIME_OFFSET = struct("silt_time_offset_t",
            i64("timestamp_ms"), i64("offset"), i32("leader_epoch"), i32("reserved"));

    static final StructLayout ABORTED = struct("silt_aborted_t",
            i64("producer_id"), i64("first_offset"), i64("last_offset"));

    static final StructLayout INDEX_ENTRY = struct("silt_index_entry_t",
            i64("offset"), i64("timestamp_ms"), i32("position"), i32("reserved"));

    static final StructLayout ABORTED_ENTRY = struct("silt_aborted_entry_t",
            i64("producer_id"), i64("first_offset"), i64("last_offset"),
            i64("last_stable_offset"));

    static final StructLayout INDEX_COUNTERS = struct("silt_index_counters_t",
            i64("entry_count"), i64("max_entries"), i64("file_size_bytes"), i64("last_offset"),
            i64("last_timestamp_ms"), i64("is_closed"));

    static final StructLayout FETCH = struct("silt_fetch_t",
            pointer("log"), i64("offset"), i32("max_bytes"), i32("up_to"), i32("flags"),
            i32("aborted_capacity"), pointer("aborted"));

    static final StructLayout RANGE = struct("silt_range_t",
            i32("fd"), i32("flags"), i64("position"), i64("size_bytes"), i64("base_offset"),
            i64("segment_base_offset"), i64("lease"), i32("truncations"), i32("aborted_count"));

    private Layouts() {}

    /** Where a field begins. */
    static long at(StructLayout struct, String field) {
        return struct.byteOffset(PathElement.groupElement(field));
    }

    /** Fields without gaps: a layout that would need one is refused. */
    static StructLayout struct(String name, MemoryLayout... fields) {
        return MemoryLayout.structLayout(fields).withName(name);
    }

    static MemoryLayout i8(String name) {
        return JAVA_BYTE.withName(name);
    }

    static MemoryLayout i16(String name) {
        return JAVA_SHORT.withName(name);
    }

    static MemoryLayout i32(String name) {
        return JAVA_INT.withName(name);
    }

    static MemoryLayout i64(String name) {
        return JAVA_LONG.withName(name);
    }

    static MemoryLayout pointer(String name) {
        return ADDRESS.withName(name);
    }

    static MemoryLayout bytes(String name, int count) {
        return MemoryLayout.sequenceLayout(count, JAVA_BYTE).withName(name);
    }
}
