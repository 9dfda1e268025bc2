package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/** How a log is opened. The defaults are those of a directory after a clean stop. */
public final class LogOptions {
    /** How the disk is spoken to. */
    public enum Io {
        /** io_uring where it pays and is allowed, else system calls. */
        DEFAULT,
        /** System calls. */
        SYSCALLS,
        /** io_uring, and a failure where it is not allowed. */
        URING
    }

    private static final int UNCLEAN = 1;
    private static final int KEEP_LOST = 2;
    private static final int MAP_SEALED = 4;

    private final Configs configs = new Configs();
    private int flags;
    private Io io = Io.DEFAULT;
    private long recoveryPoint;
    private long logStartOffset;
    private long nowMs;
    private UUID topicId = new UUID(0, 0);
    private int openFilesMax;
    private long producerExpirationMs;

    /** A setting of the topic, by Kafka's name and in its text form. */
    public LogOptions config(String name, String value) {
        configs.put(name, value);
        return this;
    }

    /** The directory was not stopped cleanly: recover from the recovery point. */
    public LogOptions unclean() {
        flags |= UNCLEAN;
        return this;
    }

    /** Keep what recovery cuts off beside, in {@code .log.lost} files. */
    public LogOptions keepLost() {
        flags |= KEEP_LOST;
        return this;
    }

    /**
     * Look-ups in sealed segments go through maps. For a host that owns the files alone and accepts
     * that a page which the disk fails to read, or that another process has cut off, ends the JVM by
     * a SIGBUS; nothing that is done through this library makes one.
     */
    public LogOptions mapSealed() {
        flags |= MAP_SEALED;
        return this;
    }

    /** How the disk is spoken to. */
    public LogOptions io(Io io) {
        this.io = Objects.requireNonNull(io);
        return this;
    }

    /** The line of {@code recovery-point-offset-checkpoint}. */
    public LogOptions recoveryPoint(long offset) {
        recoveryPoint = offset;
        return this;
    }

    /** The line of {@code log-start-offset-checkpoint}. */
    public LogOptions logStartOffset(long offset) {
        logStartOffset = offset;
        return this;
    }

    /** The time. */
    public LogOptions nowMs(long nowMs) {
        this.nowMs = nowMs;
        return this;
    }

    /** The topic's id, which must be the one of the directory, if that has one. */
    public LogOptions topicId(UUID id) {
        topicId = Objects.requireNonNull(id);
        return this;
    }

    /** How many files may be open at a time; 0 for the default of 100. */
    public LogOptions openFilesMax(int count) {
        openFilesMax = count;
        return this;
    }

    /** After how much silence a producer is forgotten; 0 for a day. */
    public LogOptions producerExpirationMs(long ms) {
        producerExpirationMs = ms;
        return this;
    }

    /** As the struct of the header. */
    MemorySegment write(Arena arena) {
        List<Map.Entry<String, String>> settings = configs.all();
        MemorySegment out = arena.allocate(Layouts.LOG_OPTIONS);
        out.set(JAVA_INT, at("struct_size"), Math.toIntExact(out.byteSize()));
        out.set(JAVA_INT, at("flags"), flags);
        out.set(ADDRESS, at("configs"), Configs.write(arena, settings));
        out.set(JAVA_INT, at("config_count"), settings.size());
        out.set(JAVA_INT, at("io"), io.ordinal());
        out.set(JAVA_LONG, at("recovery_point"), recoveryPoint);
        out.set(JAVA_LONG, at("log_start_offset"), logStartOffset);
        out.set(JAVA_LONG, at("now_ms"), nowMs);
        Memory.put(out, at("topic_id"), topicId);
        out.set(JAVA_INT, at("open_files_max"), openFilesMax);
        out.set(JAVA_LONG, at("producer_expiration_ms"), producerExpirationMs);
        return out;
    }

    private static long at(String field) {
        return Layouts.at(Layouts.LOG_OPTIONS, field);
    }
}
