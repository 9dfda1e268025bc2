package io.siltstone;

import static io.siltstone.Native.I16;
import static io.siltstone.Native.I32;
import static io.siltstone.Native.I64;
import static io.siltstone.Native.I8;
import static io.siltstone.Native.POINTER;
import static io.siltstone.Native.function;

import java.lang.invoke.MethodHandle;

/** Functions of the header for replicas, in its order. */
final class ReplicaNative {
    static final MethodHandle FOLLOWER_STEP = function("silt_follower_step",
            I32, POINTER, POINTER, POINTER, POINTER, POINTER);
    static final MethodHandle LEADER_FETCH = function("silt_leader_fetch",
            I32, POINTER, I8, I64, I32, I32, POINTER, POINTER);
    static final MethodHandle LEADER_OFFSET = function("silt_leader_offset",
            I32, POINTER, I64, I16, I32, POINTER, POINTER, POINTER, POINTER);
    static final MethodHandle PROGRESS_RECORD = function("silt_progress_record",
            I32, POINTER, I64, I64, I64, I64, I64, POINTER);
    static final MethodHandle ISR_WATERMARK = function("silt_isr_watermark",
            I32, POINTER, POINTER, I32, POINTER, POINTER);
    static final MethodHandle ISR_VERDICTS = function("silt_isr_verdicts",
            I32, POINTER, POINTER, I32, POINTER, POINTER);
    static final MethodHandle ISR_ANSWERED = function("silt_isr_answered",
            I32, POINTER, I32, I32, I32, I32, POINTER, POINTER);
    static final MethodHandle ISR_ACKS = function("silt_isr_acks",
            I32, POINTER, I16, I64, POINTER, POINTER);
    static final MethodHandle PARTITION_STEP = function("silt_partition_step",
            I32, POINTER, POINTER, POINTER, POINTER, POINTER);

    private ReplicaNative() {}
}
