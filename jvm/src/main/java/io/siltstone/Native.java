package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The functions of the header, in its order. All are plain downcalls: a critical one would hold up
 * every safepoint while the library waits for a lock or a disk.
 */
final class Native {
    /** What was linked, for the test that compares it with the header. */
    static final Map<String, FunctionDescriptor> LINKED = new LinkedHashMap<>();

    private static final SymbolLookup SYMBOLS = Loader.load();
    static final ValueLayout I8 = JAVA_BYTE;
    static final ValueLayout I16 = JAVA_SHORT;
    static final ValueLayout I32 = JAVA_INT;
    static final ValueLayout I64 = JAVA_LONG;
    static final ValueLayout POINTER = ADDRESS;
    /** An opaque object: a number to Java, which counts its users itself. */
    static final ValueLayout OBJECT = JAVA_LONG;

    static final MethodHandle STATUS_NAME = function("silt_status_name", POINTER, I32);
    static final MethodHandle ABI_VERSION = function("silt_abi_version", I32);
    static final MethodHandle VERSION = function("silt_version", POINTER);
    static final MethodHandle BUILD_INFO = function("silt_build_info", I32, POINTER, POINTER);

    static final MethodHandle CRC32C = function("silt_crc32c", I32, I32, POINTER, I64);
    static final MethodHandle BATCH_PARSE = function("silt_batch_parse",
            I32, POINTER, I64, POINTER, I32, POINTER, POINTER, POINTER);
    static final MethodHandle BATCH_VALIDATE = function("silt_batch_validate",
            I32, POINTER, I64, POINTER, POINTER);
    static final MethodHandle END_MARKER_WRITE = function("silt_end_marker_write",
            I32, POINTER, POINTER, I64, POINTER, POINTER);
    static final MethodHandle SEGMENT_REBUILD = function("silt_segment_rebuild",
            I32, POINTER, I64, I64, I32, I32, POINTER, I64, POINTER, I64, POINTER, POINTER);

    static final MethodHandle LOG_OPEN = function("silt_log_open",
            I32, POINTER, POINTER, POINTER, POINTER);
    static final MethodHandle LOG_STOP = function("silt_log_stop", I32, OBJECT, POINTER);
    static final MethodHandle LOG_CLOSE = procedure("silt_log_close", OBJECT);
    static final MethodHandle LOG_APPEND_LEADER = function("silt_log_append_leader",
            I32, OBJECT, POINTER, I64, POINTER, POINTER, POINTER);
    static final MethodHandle LOG_START_VERIFICATION = function("silt_log_start_verification",
            I32, OBJECT, I64, I32, I32, I32, I64, POINTER, POINTER);
    static final MethodHandle LOG_APPEND_FOLLOWER = function("silt_log_append_follower",
            I32, OBJECT, POINTER, I64, I32, I64, POINTER, POINTER);
    static final MethodHandle LOG_FLUSH = function("silt_log_flush", I32, OBJECT, I64, POINTER);
    static final MethodHandle LOG_ROLL = function("silt_log_roll",
            I32, OBJECT, I64, POINTER, POINTER);
    static final MethodHandle LOG_TRUNCATE_TO = function("silt_log_truncate_to",
            I32, OBJECT, I64, I64, POINTER);
    static final MethodHandle LOG_TRUNCATE_FULLY = function("silt_log_truncate_fully",
            I32, OBJECT, I64, I64, I64, POINTER);
    static final MethodHandle LOG_OFFSETS = function("silt_log_offsets",
            I32, OBJECT, POINTER, POINTER);
    static final MethodHandle LOG_SET_HIGH_WATERMARK = function("silt_log_set_high_watermark",
            I32, OBJECT, I64, POINTER, POINTER);
    static final MethodHandle LOG_TOPIC_ID = function("silt_log_topic_id",
            I32, OBJECT, POINTER, POINTER);
    static final MethodHandle LOG_SET_HIGHEST_REMOTE = function("silt_log_set_highest_remote",
            I32, OBJECT, I64, POINTER);
    static final MethodHandle LOG_EXPIRE_PRODUCERS = function("silt_log_expire_producers",
            I32, OBJECT, I64, POINTER);
    static final MethodHandle LOG_ADVANCE_START = function("silt_log_advance_start",
            I32, OBJECT, I64, POINTER);
    static final MethodHandle LOG_RETAIN = function("silt_log_retain",
            I32, OBJECT, I64, POINTER, POINTER);
    static final MethodHandle LOG_DELETE_DUE_FILES = function("silt_log_delete_due_files",
            I32, OBJECT, I64, POINTER, POINTER);
    static final MethodHandle LOG_SEGMENTS = function("silt_log_segments",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle LOG_EPOCHS = function("silt_log_epochs",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle LOG_EPOCH_END = function("silt_log_epoch_end",
            I32, OBJECT, I32, POINTER, POINTER, POINTER);
    static final MethodHandle LOG_ASSIGN_EPOCH = function("silt_log_assign_epoch",
            I32, OBJECT, I32, I64, POINTER);
    static final MethodHandle LOG_OFFSET_FOR_TIME = function("silt_log_offset_for_time",
            I32, OBJECT, I64, POINTER, POINTER);

    static final MethodHandle LOCATE = function("silt_locate",
            I32, POINTER, I32, POINTER, POINTER, POINTER);
    static final MethodHandle RANGE_IS_INTACT = function("silt_range_is_intact", I32, POINTER);
    static final MethodHandle LEASES_RELEASE = function("silt_leases_release",
            I32, POINTER, I32, POINTER);
    static final MethodHandle LOG_READ = function("silt_log_read",
            I32, POINTER, POINTER, I64, POINTER, POINTER);
    static final MethodHandle LOG_ABORTED = function("silt_log_aborted",
            I32, OBJECT, I64, I64, POINTER, I32, POINTER, POINTER);

    static final MethodHandle INDEX_OPEN = function("silt_index_open",
            I32, POINTER, I32, I64, I32, I32, POINTER, POINTER);
    static final MethodHandle INDEX_SHUT = function("silt_index_shut", I32, OBJECT, POINTER);
    static final MethodHandle INDEX_CLOSE = procedure("silt_index_close", OBJECT);
    static final MethodHandle INDEX_LOOKUP = function("silt_index_lookup", I64, OBJECT, I64);
    static final MethodHandle INDEX_UPPER_BOUND = function("silt_index_upper_bound",
            I64, OBJECT, I32, I32);
    static final MethodHandle INDEX_LOOKUP_TIME = function("silt_index_lookup_time",
            I32, OBJECT, I64, POINTER, POINTER);
    static final MethodHandle INDEX_ENTRY = function("silt_index_entry",
            I32, OBJECT, I32, POINTER, POINTER);
    static final MethodHandle INDEX_APPEND = function("silt_index_append",
            I32, OBJECT, I64, I32, POINTER);
    static final MethodHandle INDEX_APPEND_TIME = function("silt_index_append_time",
            I32, OBJECT, I64, I64, I32, POINTER, POINTER);
    static final MethodHandle INDEX_APPEND_ABORTED = function("silt_index_append_aborted",
            I32, OBJECT, POINTER, POINTER, POINTER);
    static final MethodHandle INDEX_COLLECT_ABORTED = function("silt_index_collect_aborted",
            I32, OBJECT, I64, I64, POINTER, I32, POINTER, POINTER, POINTER);
    static final MethodHandle INDEX_TRUNCATE_TO = function("silt_index_truncate_to",
            I32, OBJECT, POINTER, I64, POINTER);
    static final MethodHandle INDEX_RESIZE = function("silt_index_resize",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle INDEX_TRIM = function("silt_index_trim",
            I32, OBJECT, POINTER, POINTER);
    static final MethodHandle INDEX_FLUSH = function("silt_index_flush",
            I32, OBJECT, POINTER, POINTER);
    static final MethodHandle INDEX_SANITY_CHECK = function("silt_index_sanity_check",
            I32, OBJECT, POINTER);
    static final MethodHandle INDEX_COUNTERS = function("silt_index_counters",
            I32, OBJECT, POINTER, POINTER);

    private Native() {}

    static MethodHandle function(
            String name, MemoryLayout result, MemoryLayout... parameters) {
        return link(name, FunctionDescriptor.of(result, parameters));
    }

    static MethodHandle procedure(String name, MemoryLayout... parameters) {
        return link(name, FunctionDescriptor.ofVoid(parameters));
    }

    /** A function that an older library of the same ABI lacks throws when it is called. */
    @SuppressWarnings("restricted")
    private static MethodHandle link(String name, FunctionDescriptor descriptor) {
        LINKED.put(name, descriptor);
        return SYMBOLS.find(name)
                .map(symbol -> Linker.nativeLinker().downcallHandle(symbol, descriptor))
                .orElseGet(() -> missing(name, descriptor.toMethodType()));
    }

    private static MethodHandle missing(String name, MethodType type) {
        SiltstoneException why =
                new SiltstoneException(Kind.UNSUPPORTED, "the library has no " + name);
        MethodHandle thrower =
                MethodHandles.throwException(type.returnType(), SiltstoneException.class);
        return MethodHandles.dropArguments(thrower.bindTo(why), 0, type.parameterList());
    }

    /** The text at a pointer that the library gave. */
    @SuppressWarnings("restricted")
    static String text(MemorySegment pointer) {
        return pointer.reinterpret(Long.MAX_VALUE).getString(0);
    }

    /** What a method handle threw: a downcall throws nothing that is checked. */
    static RuntimeException unchecked(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException exception
                ? exception
                : new IllegalStateException(thrown);
    }
}
