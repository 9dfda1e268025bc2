package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** How {@link LogDirs} are verified. */
public final class VerifyOptions {
    private static final int BATCHES = 1;

    private int flags;
    private long nowMs;
    private int threads;

    /** Every record, on one thread. */
    public VerifyOptions() {}

    /** Look at headers and checksums, and not at every record. */
    public VerifyOptions batches() {
        flags = BATCHES;
        return this;
    }

    /** The time; 0: no timestamp lies in the future. */
    public VerifyOptions nowMs(long nowMs) {
        this.nowMs = nowMs;
        return this;
    }

    /** How many threads; 0 for 1. */
    public VerifyOptions threads(int count) {
        threads = Memory.threads(count);
        return this;
    }

    /** As the struct of the header. */
    MemorySegment write(Arena arena) {
        MemorySegment out = arena.allocate(DirLayouts.VERIFY_OPTIONS);
        out.set(JAVA_INT, 0, Math.toIntExact(out.byteSize()));
        out.set(JAVA_INT, at("flags"), flags);
        out.set(JAVA_LONG, at("now_ms"), nowMs);
        out.set(JAVA_INT, at("threads"), threads);
        return out;
    }

    private static long at(String field) {
        return Layouts.at(DirLayouts.VERIFY_OPTIONS, field);
    }
}
