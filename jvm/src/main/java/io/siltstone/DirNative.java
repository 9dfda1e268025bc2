package io.siltstone;

import static io.siltstone.Native.I32;
import static io.siltstone.Native.OBJECT;
import static io.siltstone.Native.POINTER;
import static io.siltstone.Native.function;
import static io.siltstone.Native.procedure;

import java.lang.invoke.MethodHandle;

/** Functions of the header for log directories at rest, in its order. */
final class DirNative {
    static final MethodHandle DIR_OPEN = function("silt_dir_open",
            I32, POINTER, I32, POINTER, POINTER, POINTER);
    static final MethodHandle DIR_CLOSE = procedure("silt_dir_close", OBJECT);
    static final MethodHandle DIR_SCAN = function("silt_dir_scan",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle DIR_PROBLEMS = function("silt_dir_problems",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle DIR_VERIFY = function("silt_dir_verify",
            I32, OBJECT, POINTER, POINTER, POINTER, POINTER, POINTER);
    static final MethodHandle DIR_RECOVER = function("silt_dir_recover",
            I32, OBJECT, POINTER, POINTER, POINTER, POINTER);
    static final MethodHandle DIR_RECOVER_STEP = function("silt_dir_recover_step",
            I32, OBJECT, POINTER, POINTER, POINTER);
    static final MethodHandle DIR_RECOVERIES = function("silt_dir_recoveries",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle DIR_PLAN = function("silt_dir_plan",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);

    private DirNative() {}
}
