package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.Objects;

/**
 * Replicas that are built from remote storage in one call: leader epochs and producers, behind a
 * segment each. Their logs are emptied and go on at {@link #nextOffset}, durably.
 *
 * <p>Any number of threads may use it; they wait for each other. Slots count from 0.
 */
public final class Rebuilds implements AutoCloseable {
    private static final long ITEM_SIZE = TierLayouts.REBUILD.byteSize();
    private static final long DIR = Layouts.at(TierLayouts.REBUILD, "dir");
    private static final long SEGMENT = Layouts.at(TierLayouts.REBUILD, "segment");
    private static final long LOG_START_OFFSET =
            Layouts.at(TierLayouts.REBUILD, "log_start_offset");
    private static final long NEXT_OFFSET = Layouts.at(TierLayouts.REBUILD, "next_offset");
    private static final long FIRST_OPEN_OFFSET =
            Layouts.at(TierLayouts.REBUILD, "first_open_offset");
    private static final long BYTES_READ = Layouts.at(TierLayouts.REBUILD, "bytes_read");
    private static final long PRODUCER_COUNT = Layouts.at(TierLayouts.REBUILD, "producer_count");
    private static final long FLAGS = Layouts.at(TierLayouts.REBUILD, "flags");

    private final MemorySegment items;
    private final MemorySegment statuses;
    private final LogSlots logs;
    /** What keeps the memory that the items point to. */
    private final RemoteRecord[] segments;
    private final MemorySegment[] dirs;
    private final Cleaner.Cleanable cleanable;

    /** So many slots. */
    public Rebuilds(int capacity) {
        Rows.checkCapacity(capacity);
        Arena arena = Arena.ofAuto();
        items = arena.allocate(TierLayouts.REBUILD, capacity);
        statuses = arena.allocate(JAVA_INT, capacity);
        segments = new RemoteRecord[capacity];
        dirs = new MemorySegment[capacity];
        logs = new LogSlots(capacity, items, TierLayouts.REBUILD);
        cleanable = Handle.watch(this, logs::end);
    }

    /** How many slots. */
    public int capacity() {
        return segments.length;
    }

    /**
     * Writes a slot for an open log.
     *
     * @param segment a {@link Codes#REMOTE_SEGMENT} whose copy is finished, as it is now
     * @param logStartOffset of the leader
     */
    public void set(int slot, Log log, RemoteRecord segment, long logStartOffset) {
        RemoteRecord copy = segment.copy();
        synchronized (logs) {
            logs.hold(slot, log);
            put(slot, null, copy, logStartOffset);
        }
    }

    /** Writes a slot for the directory of a log that nobody has open. */
    public void set(int slot, Path dir, RemoteRecord segment, long logStartOffset) {
        MemorySegment name = Memory.path(Arena.ofAuto(), dir);
        RemoteRecord copy = segment.copy();
        synchronized (logs) {
            logs.checkOpen();
            logs.drop(slot);
            put(slot, name, copy, logStartOffset);
        }
    }

    private void put(int slot, MemorySegment dir, RemoteRecord segment, long logStartOffset) {
        long at = slot * ITEM_SIZE;
        dirs[slot] = dir;
        segments[slot] = segment;
        items.set(ADDRESS, at + DIR, dir == null ? MemorySegment.NULL : dir);
        items.set(ADDRESS, at + SEGMENT, segment.memory());
        items.set(JAVA_LONG, at + LOG_START_OFFSET, logStartOffset);
    }

    /** Empties a slot, so that it no longer keeps its log from being given back. */
    public void clear(int slot) {
        synchronized (logs) {
            logs.drop(slot);
            dirs[slot] = null;
            items.set(ADDRESS, slot * ITEM_SIZE + DIR, MemorySegment.NULL);
        }
    }

    /**
     * Builds the replicas of the first slots. Each has its own status then, and one that failed is
     * what it was: {@link Kind#NOT_FOUND}: the segment is none to begin behind, or an object is not
     * there; {@link Kind#CORRUPT}: an object is not what it must be; {@link Kind#CONFLICT}: the log
     * is named twice, or somebody is at it; {@link Kind#CLOSED}: the slot is empty, or its log is
     * closed.
     */
    public void run(int count, RebuildOptions options) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = options.write(arena);
            synchronized (logs) {
                logs.forgetClosed(count);
                try {
                    Scratch.call(scratch -> (int) TierNative.TIER_REBUILD.invokeExact(
                            items, count, struct, statuses, scratch.error));
                } finally {
                    // The items have bare addresses of memory that only these keep.
                    Reference.reachabilityFence(segments);
                    Reference.reachabilityFence(dirs);
                }
                for (int slot = 0; slot < count; slot++) {
                    if (dirs[slot] == null && logs.isGone(slot)) {
                        statuses.setAtIndex(JAVA_INT, slot, Kind.CLOSED.code());
                    }
                }
            }
        }
    }

    /** Lets go of the logs. */
    @Override
    public void close() {
        cleanable.clean();
    }

    /** 0, or the code of a {@link Kind}. */
    public int status(int slot) {
        return statuses.getAtIndex(JAVA_INT, Objects.checkIndex(slot, segments.length));
    }

    /** What is to be fetched next; -1 when it failed. */
    public long nextOffset(int slot) {
        return longAt(slot, NEXT_OFFSET);
    }

    /** The first offset of the oldest open transaction; -1 for none. */
    public long firstOpenOffset(int slot) {
        return longAt(slot, FIRST_OPEN_OFFSET);
    }

    /** How many bytes of objects were read. */
    public long bytesRead(int slot) {
        return longAt(slot, BYTES_READ);
    }

    /** How many producers are known. */
    public int producerCount(int slot) {
        return intAt(slot, PRODUCER_COUNT);
    }

    /** Whether one that failed may go well the next time. */
    public boolean isRetryable(int slot) {
        return (intAt(slot, FLAGS) & 1) != 0;
    }

    private int intAt(int slot, long field) {
        return items.get(JAVA_INT, Objects.checkIndex(slot, segments.length) * ITEM_SIZE + field);
    }

    private long longAt(int slot, long field) {
        return items.get(JAVA_LONG, Objects.checkIndex(slot, segments.length) * ITEM_SIZE + field);
    }
}
