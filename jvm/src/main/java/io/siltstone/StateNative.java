package io.siltstone;

import static io.siltstone.Native.I32;
import static io.siltstone.Native.I64;
import static io.siltstone.Native.OBJECT;
import static io.siltstone.Native.POINTER;
import static io.siltstone.Native.function;

import java.lang.invoke.MethodHandle;

/** Functions of the header for what is known of producers. */
final class StateNative {
    static final MethodHandle LOG_PRODUCERS = function("silt_log_producers",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle SNAPSHOT_WRITE = function("silt_snapshot_write",
            I32, POINTER, I32, POINTER, I64, POINTER, POINTER);
    static final MethodHandle SNAPSHOT_READ = function("silt_snapshot_read",
            I32, POINTER, I64, POINTER, I32, POINTER, POINTER);
    static final MethodHandle SEGMENT_SCAN = function("silt_segment_scan",
            I32, POINTER, I64, POINTER, POINTER, POINTER);

    private StateNative() {}
}
