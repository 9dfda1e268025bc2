package io.siltstone;

import static io.siltstone.Native.I32;
import static io.siltstone.Native.I64;
import static io.siltstone.Native.OBJECT;
import static io.siltstone.Native.POINTER;
import static io.siltstone.Native.function;
import static io.siltstone.Native.procedure;

import java.lang.invoke.MethodHandle;

/** Functions of the header for many logs, engines and rings, in its order. */
final class EngineNative {
    /** Not called here: it is the next one without verifications. */
    static final MethodHandle APPEND_MANY = function("silt_append_many",
            I32, POINTER, I32, POINTER, POINTER, POINTER);
    static final MethodHandle APPEND_MANY_VERIFIED = function("silt_append_many_verified",
            I32, POINTER, POINTER, I32, POINTER, POINTER, POINTER);
    static final MethodHandle LOCATE_WITHIN = function("silt_locate_within",
            I32, POINTER, I32, I64, POINTER, POINTER, POINTER);
    static final MethodHandle ENGINE_OPEN = function("silt_engine_open",
            I32, POINTER, I32, POINTER, POINTER, POINTER);
    static final MethodHandle ENGINE_STOP = function("silt_engine_stop",
            I32, OBJECT, I64, I32, POINTER, POINTER);
    static final MethodHandle ENGINE_CLOSE = procedure("silt_engine_close", OBJECT);
    static final MethodHandle ENGINE_LOG = function("silt_engine_log",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle ENGINE_CREATE_LOG = function("silt_engine_create_log",
            I32, OBJECT, POINTER, I32, POINTER, POINTER, POINTER);
    static final MethodHandle ENGINE_DELETE_LOG = function("silt_engine_delete_log",
            I32, OBJECT, POINTER, I32, I64, POINTER);
    static final MethodHandle ENGINE_FUTURE_LOG = function("silt_engine_future_log",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle ENGINE_REPLACE_LOG = function("silt_engine_replace_log",
            I32, OBJECT, POINTER, I32, I64, POINTER);
    static final MethodHandle ENGINE_DELETE_FUTURE = function("silt_engine_delete_future",
            I32, OBJECT, POINTER, I32, I64, POINTER);
    static final MethodHandle ENGINE_MARK_STRAY = function("silt_engine_mark_stray",
            I32, OBJECT, POINTER, I32, I64, POINTER);
    static final MethodHandle ENGINE_TAKE_OFFLINE = function("silt_engine_take_offline",
            I32, OBJECT, POINTER, POINTER);
    static final MethodHandle ENGINE_SET_CONFIG = function("silt_engine_set_config",
            I32, OBJECT, POINTER, POINTER, I32, POINTER);
    static final MethodHandle ENGINE_PARTITIONS = function("silt_engine_partitions",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle ENGINE_DUE = function("silt_engine_due",
            I32, OBJECT, I64, POINTER, I32, POINTER, POINTER);
    static final MethodHandle ENGINE_RUN = function("silt_engine_run",
            I32, OBJECT, I64, I64, POINTER);
    static final MethodHandle ENGINE_DROP_WORK = function("silt_engine_drop_work",
            I32, OBJECT, I64, POINTER);
    static final MethodHandle ENGINE_CHECKPOINT = function("silt_engine_checkpoint",
            I32, OBJECT, POINTER);
    static final MethodHandle ENGINE_STATS = function("silt_engine_stats",
            I32, OBJECT, POINTER, POINTER);
    static final MethodHandle RING_NEW = function("silt_ring_new", I32, POINTER, POINTER);
    static final MethodHandle RING_CLOSE = procedure("silt_ring_close", OBJECT);
    static final MethodHandle RING_FD = function("silt_ring_fd", I32, OBJECT, POINTER, POINTER);
    static final MethodHandle RING_SUBMIT = function("silt_ring_submit",
            I32, OBJECT, POINTER, I32, POINTER);
    static final MethodHandle RING_POLL = function("silt_ring_poll",
            I32, OBJECT, POINTER, I32, I32, POINTER, POINTER);

    private EngineNative() {}
}
