package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.Objects;

/**
 * Appends to many logs, or many to one, made by one call: each by itself, those of one log in their
 * order, but the disk gets all writes at once. There is no object for any of them, and what is
 * appended stands in {@link Room}s.
 *
 * <p>Any number of threads may use it; they wait for each other. Slots count from 0.
 */
public final class Appends implements AutoCloseable {
    private static final int FOLLOWER = 1;
    private static final long ITEM_SIZE = EngineLayouts.APPEND_ITEM.byteSize();
    private static final long RESULT_SIZE = EngineLayouts.APPEND_RESULT.byteSize();
    private static final long RECORDS = at("records");
    private static final long RECORDS_SIZE_BYTES = at("size_bytes");
    private static final long NOW_MS = at("now_ms");
    private static final long LEADER_EPOCH = at("leader_epoch");
    private static final long ORIGIN = at("origin");
    private static final long TRANSACTION_VERSION = at("transaction_version");
    private static final long ITEM_FLAGS = at("flags");
    private static final long DETAIL_CODE = Layouts.at(EngineLayouts.APPEND_RESULT, "detail_code");
    private static final long FIRST_OFFSET =
            Layouts.at(EngineLayouts.APPEND_RESULT, "first_offset");
    private static final long LAST_OFFSET = Layouts.at(EngineLayouts.APPEND_RESULT, "last_offset");
    private static final long MAX_TIMESTAMP_MS =
            Layouts.at(EngineLayouts.APPEND_RESULT, "max_timestamp_ms");
    private static final long LOG_APPEND_TIME_MS =
            Layouts.at(EngineLayouts.APPEND_RESULT, "log_append_time_ms");
    private static final long LOG_START_OFFSET =
            Layouts.at(EngineLayouts.APPEND_RESULT, "log_start_offset");
    private static final long SIZE_BYTES = Layouts.at(EngineLayouts.APPEND_RESULT, "size_bytes");
    private static final long FLAGS = Layouts.at(EngineLayouts.APPEND_RESULT, "flags");

    private final MemorySegment items;
    private final MemorySegment results;
    private final MemorySegment statuses;
    private final MemorySegment verifications;
    private final LogSlots logs;
    /** What keeps the memory that the items point to. */
    private final Room[] rooms;
    private final Cleaner.Cleanable cleanable;

    /** So many slots. */
    public Appends(int capacity) {
        Rows.checkCapacity(capacity);
        Arena arena = Arena.ofAuto();
        items = arena.allocate(EngineLayouts.APPEND_ITEM, capacity);
        results = arena.allocate(EngineLayouts.APPEND_RESULT, capacity);
        statuses = arena.allocate(JAVA_INT, capacity);
        verifications = arena.allocate(JAVA_LONG, capacity);
        rooms = new Room[capacity];
        logs = new LogSlots(capacity, items, EngineLayouts.APPEND_ITEM);
        cleanable = Handle.watch(this, logs::end);
    }

    private static long at(String field) {
        return Layouts.at(EngineLayouts.APPEND_ITEM, field);
    }

    /** How many slots. */
    public int capacity() {
        return rooms.length;
    }

    /**
     * Writes a slot for what a producer has sent, as {@link Log#appendLeader}: one batch, which
     * gets its offsets in the room itself. No two slots may have the same bytes.
     */
    public void setLeader(
            int slot, Log log, Room room, long position, long sizeBytes, int leaderEpoch,
            long nowMs, Origin origin, int transactionVersion) {
        setLeader(slot, log, room, position, sizeBytes, leaderEpoch, nowMs, origin,
                transactionVersion, 0);
    }

    /** The same for a batch whose transaction {@link Log#startVerification} has a number for. */
    public void setLeader(
            int slot, Log log, Room room, long position, long sizeBytes, int leaderEpoch,
            long nowMs, Origin origin, int transactionVersion, long verification) {
        int from = origin.ordinal();
        set(slot, log, room, position, sizeBytes, leaderEpoch, nowMs, from, transactionVersion,
                verification, 0);
    }

    /** Writes a slot for what a leader has sent, as {@link Log#appendFollower}. */
    public void setFollower(
            int slot, Log log, Room room, long position, long sizeBytes, int leaderEpoch,
            long nowMs) {
        set(slot, log, room, position, sizeBytes, leaderEpoch, nowMs, 0, 0, 0, FOLLOWER);
    }

    private void set(
            int slot, Log log, Room room, long position, long sizeBytes, int leaderEpoch,
            long nowMs, int origin, int transactionVersion, long verification, int flags) {
        MemorySegment records = room.part(position, sizeBytes);
        synchronized (logs) {
            long at = logs.hold(slot, log) * ITEM_SIZE;
            rooms[slot] = room;
            items.set(ADDRESS, at + RECORDS, records);
            items.set(JAVA_LONG, at + RECORDS_SIZE_BYTES, sizeBytes);
            items.set(JAVA_LONG, at + NOW_MS, nowMs);
            items.set(JAVA_INT, at + LEADER_EPOCH, leaderEpoch);
            items.set(JAVA_INT, at + ORIGIN, origin);
            items.set(JAVA_INT, at + TRANSACTION_VERSION, transactionVersion);
            items.set(JAVA_INT, at + ITEM_FLAGS, flags);
            verifications.setAtIndex(JAVA_LONG, slot, verification);
        }
    }

    /** Empties a slot, so that it no longer keeps its log from being given back. */
    public void clear(int slot) {
        logs.drop(slot);
    }

    /**
     * Appends the first slots. Each has its own status then; one that is refused keeps out no
     * other, but for later ones of a follower, which would leave a gap.
     *
     * @throws SiltstoneException {@link Kind#INVALID_ARGUMENT} when two have the same bytes, and
     *     nothing is appended
     */
    public void append(int count) {
        synchronized (logs) {
            boolean isAnyGone = logs.forgetClosed(count);
            try {
                Scratch.call(scratch -> (int) EngineNative.APPEND_MANY_VERIFIED.invokeExact(
                        items, verifications, count, results, statuses, scratch.error));
            } finally {
                // The items have bare addresses of memory that only the rooms keep.
                Reference.reachabilityFence(rooms);
            }
            if (isAnyGone) {
                logs.tellGone(count, statuses);
            }
        }
    }

    /** Lets go of the logs. */
    @Override
    public void close() {
        cleanable.clean();
    }

    /** 0, or the code of a {@link Kind}: {@link Kind#CLOSED} where the slot's log is closed. */
    public int status(int slot) {
        return statuses.getAtIndex(JAVA_INT, Objects.checkIndex(slot, rooms.length));
    }

    /** Why it was refused: {@code DETAIL_} of {@link Codes}. */
    public int detail(int slot) {
        return intAt(slot, DETAIL_CODE);
    }

    /** The offset of the first record; -1 when nothing was appended. */
    public long firstOffset(int slot) {
        return longAt(slot, FIRST_OFFSET);
    }

    /** The offset of the last record; -1 when nothing was appended. */
    public long lastOffset(int slot) {
        return longAt(slot, LAST_OFFSET);
    }

    /** The latest timestamp. */
    public long maxTimestampMs(int slot) {
        return longAt(slot, MAX_TIMESTAMP_MS);
    }

    /** The time of the append where the topic's records have it, else -1. */
    public long logAppendTimeMs(int slot) {
        return longAt(slot, LOG_APPEND_TIME_MS);
    }

    /** Where the log starts. */
    public long logStartOffset(int slot) {
        return longAt(slot, LOG_START_OFFSET);
    }

    /** How many bytes were written. */
    public long sizeBytes(int slot) {
        return longAt(slot, SIZE_BYTES);
    }

    /** Whether it was there already, with these offsets, so that nothing was written. */
    public boolean isDuplicate(int slot) {
        return (intAt(slot, FLAGS) & 1) != 0;
    }

    /** Whether a segment was begun: a flush of those before is due. */
    public boolean hasRolled(int slot) {
        return (intAt(slot, FLAGS) & 2) != 0;
    }

    /** Whether as many messages wait as {@code flush.messages} allows. */
    public boolean isFlushDue(int slot) {
        return (intAt(slot, FLAGS) & 4) != 0;
    }

    private int intAt(int slot, long field) {
        return results.get(JAVA_INT, Objects.checkIndex(slot, rooms.length) * RESULT_SIZE + field);
    }

    private long longAt(int slot, long field) {
        return results.get(JAVA_LONG, Objects.checkIndex(slot, rooms.length) * RESULT_SIZE + field);
    }
}
