package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** How {@link LogDirs} are recovered. Without {@link #repair} it is only planned. */
public final class RecoverOptions {
    private static final int REPAIR = 1;
    private static final int ALL = 2;
    private static final int ALLOW_LOSS = 4;
    private static final int DISCARD_LOST = 8;
    private static final int TAKE_FOR_CLEAN = 16;
    private static final int REMOTE_STORAGE = 1;

    /** What recovery must know of a topic; without a name it is of all that are not named. */
    private record Topic(String name, int intervalBytes, int indexSizeBytesMax, int flags) {}

    private final List<Topic> topics = new ArrayList<>();
    private int flags;
    private long nowMs;
    private Path quarantine;
    private int threads;
    private long producerExpirationMs;

    /** A plan, on one thread. */
    public RecoverOptions() {}

    /** Do it. */
    public RecoverOptions repair() {
        flags |= REPAIR;
        return this;
    }

    /** Read every batch. */
    public RecoverOptions all() {
        flags |= ALL;
        return this;
    }

    /** Whole batches behind damage may be cut away. */
    public RecoverOptions allowLoss() {
        flags |= ALLOW_LOSS;
        return this;
    }

    /** What is cut is not kept in {@code .log.lost} files. */
    public RecoverOptions discardLost() {
        flags |= DISCARD_LOST;
        return this;
    }

    /** Take all directories for such as were stopped cleanly. */
    public RecoverOptions takeForClean() {
        flags |= TAKE_FOR_CLEAN;
        return this;
    }

    /** The time. */
    public RecoverOptions nowMs(long nowMs) {
        this.nowMs = nowMs;
        return this;
    }

    /** Where partitions are moved that are refused; without it they stay. */
    public RecoverOptions quarantine(Path folder) {
        quarantine = Objects.requireNonNull(folder);
        return this;
    }

    /** How many threads; 0 for 1. */
    public RecoverOptions threads(int count) {
        threads = Memory.threads(count);
        return this;
    }

    /** After how long producers are forgotten; 0 for a day. */
    public RecoverOptions producerExpirationMs(long ms) {
        producerExpirationMs = ms;
        return this;
    }

    /** The indexes of a topic, with 0 for Kafka's defaults, and whether it has remote storage. */
    public RecoverOptions topic(
            String name, int intervalBytes, int indexSizeBytesMax, boolean hasRemoteStorage) {
        return add(Objects.requireNonNull(name), intervalBytes, indexSizeBytesMax,
                hasRemoteStorage);
    }

    /** The same of all topics that are not named. */
    public RecoverOptions otherTopics(
            int intervalBytes, int indexSizeBytesMax, boolean hasRemoteStorage) {
        return add(null, intervalBytes, indexSizeBytesMax, hasRemoteStorage);
    }

    private RecoverOptions add(
            String name, int intervalBytes, int indexSizeBytesMax, boolean hasRemoteStorage) {
        int flags = hasRemoteStorage ? REMOTE_STORAGE : 0;
        synchronized (topics) {
            topics.add(new Topic(name, intervalBytes, indexSizeBytesMax, flags));
        }
        return this;
    }

    /** As the struct of the header. */
    MemorySegment write(Arena arena) {
        List<Topic> all;
        synchronized (topics) {
            all = List.copyOf(topics);
        }
        Path where = quarantine;
        MemorySegment out = arena.allocate(DirLayouts.RECOVER_OPTIONS);
        out.set(JAVA_INT, 0, Math.toIntExact(out.byteSize()));
        out.set(JAVA_INT, at("flags"), flags);
        out.set(JAVA_LONG, at("now_ms"), nowMs);
        out.set(ADDRESS, at("quarantine"),
                where == null ? MemorySegment.NULL : Memory.path(arena, where));
        out.set(ADDRESS, at("topics"), write(arena, all));
        out.set(JAVA_INT, at("topic_count"), all.size());
        out.set(JAVA_INT, at("threads"), threads);
        out.set(JAVA_LONG, at("producer_expiration_ms"), producerExpirationMs);
        return out;
    }

    private static MemorySegment write(Arena arena, List<Topic> topics) {
        MemorySegment all = arena.allocate(DirLayouts.TOPIC_SETTINGS, topics.size());
        long position = 0;
        for (Topic topic : topics) {
            MemorySegment one = all.asSlice(position, DirLayouts.TOPIC_SETTINGS);
            one.set(ADDRESS, ofTopic("topic"), Memory.textOrNull(arena, topic.name()));
            one.set(JAVA_INT, ofTopic("index_interval_bytes"), topic.intervalBytes());
            one.set(JAVA_INT, ofTopic("index_size_bytes_max"), topic.indexSizeBytesMax());
            one.set(JAVA_INT, ofTopic("flags"), topic.flags());
            position += DirLayouts.TOPIC_SETTINGS.byteSize();
        }
        return all;
    }

    private static long ofTopic(String field) {
        return Layouts.at(DirLayouts.TOPIC_SETTINGS, field);
    }

    private static long at(String field) {
        return Layouts.at(DirLayouts.RECOVER_OPTIONS, field);
    }
}
