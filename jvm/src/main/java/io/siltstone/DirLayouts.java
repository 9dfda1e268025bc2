package io.siltstone;

import static io.siltstone.Layouts.bytes;
import static io.siltstone.Layouts.i32;
import static io.siltstone.Layouts.i64;
import static io.siltstone.Layouts.pointer;
import static io.siltstone.Layouts.struct;

import java.lang.foreign.StructLayout;

/** Structs of the header for log directories at rest, in its order. */
final class DirLayouts {
    static final StructLayout DIR_OPTIONS = struct("silt_dir_options_t",
            i32("struct_size"), i32("io"));

    static final StructLayout PARTITION_DIR = struct("silt_partition_dir_t",
            i32("dir"), i32("partition"), i32("flags"), i32("reserved"), i64("log_start_offset"),
            i64("log_size_bytes"), bytes("topic", 256));

    static final StructLayout PROBLEM = struct("silt_problem_t",
            i32("dir"), i32("number"), i32("severity"), i32("reserved"), i64("position"),
            i64("offset"), bytes("code", 32), bytes("file", 128), bytes("detail", 256));

    static final StructLayout VERIFY_OPTIONS = struct("silt_verify_options_t",
            i32("struct_size"), i32("flags"), i64("now_ms"), i32("threads"), i32("reserved"));

    static final StructLayout TOPIC_SETTINGS = struct("silt_topic_settings_t",
            pointer("topic"), i32("index_interval_bytes"), i32("index_size_bytes_max"),
            i32("flags"), i32("reserved"));

    static final StructLayout RECOVER_OPTIONS = struct("silt_recover_options_t",
            i32("struct_size"), i32("flags"), i64("now_ms"), pointer("quarantine"),
            pointer("topics"), i32("topic_count"), i32("threads"), i64("producer_expiration_ms"));

    static final StructLayout RECOVERY = struct("silt_recovery_t",
            i32("dir"), i32("partition"), i32("outcome"), i32("status"), i64("log_start_offset"),
            i64("log_end_offset"), i64("last_stable_offset"), i64("cut_offset"), i64("cut_bytes"),
            i64("bytes_read"), i32("step_count"), i32("problem_count"), bytes("topic", 256),
            bytes("reason", 256));

    static final StructLayout PLAN_STEP = struct("silt_plan_step_t",
            i32("number"), i32("kind"), i64("offset"), i64("position"), i64("size_bytes"),
            bytes("file", 128), bytes("detail", 256));

    private DirLayouts() {}
}
