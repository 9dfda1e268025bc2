package io.siltstone;

import static io.siltstone.Native.I32;
import static io.siltstone.Native.I64;
import static io.siltstone.Native.OBJECT;
import static io.siltstone.Native.POINTER;
import static io.siltstone.Native.function;
import static io.siltstone.Native.procedure;

import java.lang.invoke.MethodHandle;

/** Functions of the header for remote storage, in its order. */
final class TierNative {
    static final MethodHandle TIER_ELIGIBLE = function("silt_tier_eligible", I32, POINTER, POINTER);
    static final MethodHandle TIER_DIRECT_READ = function("silt_tier_direct_read",
            I32, POINTER, POINTER, POINTER);
    static final MethodHandle REMOTE_RECORD_ENCODE = function("silt_remote_record_encode",
            I32, POINTER, POINTER, I64, POINTER, POINTER);
    static final MethodHandle REMOTE_RECORD_DECODE = function("silt_remote_record_decode",
            I32, POINTER, I64, POINTER, POINTER);
    static final MethodHandle REMOTE_METADATA_PARTITION = function("silt_remote_metadata_partition",
            I32, POINTER, I32, I32);
    static final MethodHandle TIER_MANIFEST = function("silt_tier_manifest",
            I32, OBJECT, I64, I64, POINTER, POINTER, POINTER);
    static final MethodHandle UPLOAD_PARTS = function("silt_upload_parts",
            I32, OBJECT, POINTER, I32, POINTER, POINTER);
    static final MethodHandle UPLOAD_SEGMENT = function("silt_upload_segment",
            I32, OBJECT, POINTER, POINTER);
    static final MethodHandle UPLOAD_IS_INTACT = function("silt_upload_is_intact", I32, OBJECT);
    static final MethodHandle UPLOAD_CLOSE = procedure("silt_upload_close", OBJECT);
    static final MethodHandle TIER_REBUILD = function("silt_tier_rebuild",
            I32, POINTER, I32, POINTER, POINTER, POINTER);

    private TierNative() {}
}
