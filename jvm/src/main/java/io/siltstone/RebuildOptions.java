package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Objects;

/** Where {@link Rebuilds} find remote storage, and what they may use. */
public final class RebuildOptions {
    private final Path store;
    private String prefix;
    private int threads;
    private long heldBytesMax;
    private long objectBytesMax;
    private long nowMs;
    private int partitionsMax;
    private LogOptions.Io io = LogOptions.Io.DEFAULT;

    /** The folder that stands for the object store. */
    public RebuildOptions(Path store) {
        this.store = Objects.requireNonNull(store);
    }

    /** What all names begin with; without it that of Kafka's LocalTieredStorage. */
    public RebuildOptions prefix(String prefix) {
        this.prefix = Objects.requireNonNull(prefix);
        return this;
    }

    /** How many threads; 0 and 1 for the caller's own. More are there for one call alone. */
    public RebuildOptions threads(int count) {
        threads = Memory.threads(count);
        return this;
    }

    /** How many bytes of objects are held at once; 0 for 256 MiB. */
    public RebuildOptions heldBytesMax(long bytes) {
        heldBytesMax = bytes;
        return this;
    }

    /** How large one object may be; 0 for 64 MiB. */
    public RebuildOptions objectBytesMax(long bytes) {
        objectBytesMax = bytes;
        return this;
    }

    /** The time. */
    public RebuildOptions nowMs(long nowMs) {
        this.nowMs = nowMs;
        return this;
    }

    /** How many replicas are made durable together; 0 for 4096. */
    public RebuildOptions partitionsMax(int count) {
        partitionsMax = count;
        return this;
    }

    /** How the disk is spoken to. */
    public RebuildOptions io(LogOptions.Io io) {
        this.io = Objects.requireNonNull(io);
        return this;
    }

    /** As the struct of the header. */
    MemorySegment write(Arena arena) {
        MemorySegment out = arena.allocate(TierLayouts.REBUILD_OPTIONS);
        out.set(JAVA_INT, 0, Math.toIntExact(out.byteSize()));
        out.set(JAVA_INT, at("threads"), threads);
        out.set(ADDRESS, at("store_dir"), Memory.path(arena, store));
        out.set(ADDRESS, at("prefix"), Memory.textOrNull(arena, prefix));
        out.set(JAVA_LONG, at("held_bytes_max"), heldBytesMax);
        out.set(JAVA_LONG, at("object_bytes_max"), objectBytesMax);
        out.set(JAVA_LONG, at("now_ms"), nowMs);
        out.set(JAVA_INT, at("partitions_max"), partitionsMax);
        out.set(JAVA_INT, at("io"), io.ordinal());
        return out;
    }

    private static long at(String field) {
        return Layouts.at(TierLayouts.REBUILD_OPTIONS, field);
    }
}
