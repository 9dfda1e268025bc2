package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * What is behind {@link Fetches}, and what its cleaner ends. The structs have pointers and leases
 * that are real, so nobody else sees them, and one thread at a time changes them.
 */
final class FetchSlots {
    static final long FD = Layouts.at(Layouts.RANGE, "fd");
    static final long FLAGS = Layouts.at(Layouts.RANGE, "flags");
    static final long POSITION = Layouts.at(Layouts.RANGE, "position");
    static final long SIZE_BYTES = Layouts.at(Layouts.RANGE, "size_bytes");
    static final long BASE_OFFSET = Layouts.at(Layouts.RANGE, "base_offset");
    static final long SEGMENT_BASE_OFFSET = Layouts.at(Layouts.RANGE, "segment_base_offset");
    static final long ABORTED_COUNT = Layouts.at(Layouts.RANGE, "aborted_count");
    static final long PRODUCER_ID = Layouts.at(Layouts.ABORTED, "producer_id");
    static final long FIRST_OFFSET = Layouts.at(Layouts.ABORTED, "first_offset");
    static final long LAST_OFFSET = Layouts.at(Layouts.ABORTED, "last_offset");

    private static final long LEASE = Layouts.at(Layouts.RANGE, "lease");
    private static final long OFFSET = Layouts.at(Layouts.FETCH, "offset");
    private static final long MAX_BYTES = Layouts.at(Layouts.FETCH, "max_bytes");
    private static final long UP_TO = Layouts.at(Layouts.FETCH, "up_to");
    private static final long FETCH_FLAGS = Layouts.at(Layouts.FETCH, "flags");
    private static final long CAPACITY = Layouts.at(Layouts.FETCH, "aborted_capacity");
    private static final long ABORTED = Layouts.at(Layouts.FETCH, "aborted");
    private static final long FETCH_SIZE = Layouts.FETCH.byteSize();
    private static final long RANGE_SIZE = Layouts.RANGE.byteSize();
    private static final long ABORTED_SIZE = Layouts.ABORTED.byteSize();
    private static final int SHORT_BUFFER = Kind.SHORT_BUFFER.code();

    private final LogSlots logs;
    private final int abortedCapacity;
    private final MemorySegment fetches;
    private final MemorySegment ranges;
    private final MemorySegment aborted;
    private final MemorySegment statuses;
    private final MemorySegment leases;
    /** The slots from here on have no lease. */
    private int leased;

    FetchSlots(int capacity, int abortedCapacity) {
        Rows.checkCapacity(capacity);
        Rows.checkCapacity(abortedCapacity);
        Rows.checkCapacity(Math.multiplyExact(Math.max(capacity, 1), abortedCapacity));
        this.abortedCapacity = abortedCapacity;
        // Of the garbage collector's arena: no call has to count its users.
        Arena arena = Arena.ofAuto();
        fetches = arena.allocate(Layouts.FETCH, capacity);
        ranges = arena.allocate(Layouts.RANGE, capacity);
        statuses = arena.allocate(JAVA_INT, capacity);
        leases = arena.allocate(JAVA_LONG, capacity);
        aborted = arena.allocate(ABORTED_SIZE * abortedCapacity * capacity, 8);
        logs = new LogSlots(capacity, fetches, Layouts.FETCH);
        for (int slot = 0; slot < capacity; slot++) {
            forget(slot);
        }
    }

    int capacity() {
        return logs.capacity();
    }

    int abortedCapacity() {
        return abortedCapacity;
    }

    synchronized void set(
            int slot, Log log, long offset, int maxBytes, int upTo, int flags) {
        long at = logs.hold(slot, log) * FETCH_SIZE;
        fetches.set(JAVA_LONG, at + OFFSET, offset);
        fetches.set(JAVA_INT, at + MAX_BYTES, maxBytes);
        fetches.set(JAVA_INT, at + UP_TO, upTo);
        fetches.set(JAVA_INT, at + FETCH_FLAGS, flags);
        if (abortedCapacity > 0) {
            MemorySegment own = aborted.asSlice(abortedAt(slot, 0));
            fetches.set(JAVA_INT, at + CAPACITY, abortedCapacity);
            fetches.set(ADDRESS, at + ABORTED, own);
        }
    }

    synchronized void setOffset(int slot, long offset) {
        logs.checkOpen();
        long at = Objects.checkIndex(slot, logs.capacity()) * FETCH_SIZE;
        fetches.set(JAVA_LONG, at + OFFSET, offset);
    }

    synchronized void clear(int slot) {
        logs.drop(slot);
    }

    synchronized void locate(int count) {
        boolean isAnyGone = begin(count);
        Scratch.call(scratch -> (int) Native.LOCATE.invokeExact(
                fetches, count, ranges, statuses, scratch.error));
        if (isAnyGone) {
            logs.tellGone(count, statuses);
        }
    }

    synchronized void locateWithin(int count, long maxBytes) {
        boolean isAnyGone = begin(count);
        Scratch.call(scratch -> (int) EngineNative.LOCATE_WITHIN.invokeExact(
                fetches, count, maxBytes, ranges, statuses, scratch.error));
        if (isAnyGone) {
            logs.tellGone(count, statuses);
        }
    }

    /** What comes before a look-up; whether a slot has no log any more. */
    private boolean begin(int count) {
        boolean isAnyGone = logs.forgetClosed(count);
        release();
        // Also when the call throws: a slot without a lease has 0.
        leased = count;
        return isAnyGone;
    }

    synchronized long read(int slot, MemorySegment bytes) {
        logs.checkOpen();
        Objects.checkIndex(slot, logs.capacity());
        if (logs.isGone(slot)) {
            throw Handle.closed();
        }
        releaseOne(slot);
        forget(slot);
        MemorySegment fetch = fetches.asSlice(slot * FETCH_SIZE, FETCH_SIZE);
        MemorySegment range = ranges.asSlice(slot * RANGE_SIZE, RANGE_SIZE);
        int status = Scratch.call(scratch -> {
            int outcome = (int) Native.LOG_READ.invokeExact(
                    fetch, bytes, bytes.byteSize(), range, scratch.error);
            // What does not fit is either the bytes or the aborted transactions.
            boolean isRead = range.get(JAVA_INT, ABORTED_COUNT) > 0;
            return outcome == SHORT_BUFFER && !isRead ? refuse(scratch, outcome) : outcome;
        }, SHORT_BUFFER);
        statuses.setAtIndex(JAVA_INT, slot, status);
        return range.get(JAVA_LONG, SIZE_BYTES);
    }

    private static int refuse(Scratch scratch, int status) {
        throw scratch.exception(status);
    }

    synchronized void release() {
        int count = leased;
        for (int slot = 0; slot < count; slot++) {
            leases.setAtIndex(JAVA_LONG, slot, takeLease(slot));
        }
        leased = 0;
        releaseFirst(count);
    }

    synchronized void moveLease(int slot, Leases target) {
        long at = Objects.checkIndex(slot, logs.capacity()) * RANGE_SIZE + LEASE;
        target.add(ranges.get(JAVA_LONG, at));
        ranges.set(JAVA_LONG, at, 0);
    }

    synchronized boolean isIntact(int slot) {
        long at = Objects.checkIndex(slot, logs.capacity()) * RANGE_SIZE;
        MemorySegment range = ranges.asSlice(at, RANGE_SIZE);
        try {
            return (int) Native.RANGE_IS_INTACT.invokeExact(range) == 1;
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        }
    }

    synchronized void end() {
        release();
        logs.end();
    }

    int status(int slot) {
        return statuses.getAtIndex(JAVA_INT, Objects.checkIndex(slot, logs.capacity()));
    }

    int rangeInt(int slot, long field) {
        long at = Objects.checkIndex(slot, logs.capacity()) * RANGE_SIZE;
        return ranges.get(JAVA_INT, at + field);
    }

    long rangeLong(int slot, long field) {
        long at = Objects.checkIndex(slot, logs.capacity()) * RANGE_SIZE;
        return ranges.get(JAVA_LONG, at + field);
    }

    long aborted(int slot, int at, long field) {
        Objects.checkIndex(slot, logs.capacity());
        int count = Math.clamp(rangeInt(slot, ABORTED_COUNT) & 0xffff_ffffL, 0, abortedCapacity);
        Objects.checkIndex(at, count);
        return aborted.get(JAVA_LONG, abortedAt(slot, at) + field);
    }

    private long abortedAt(int slot, int at) {
        return ((long) slot * abortedCapacity + at) * ABORTED_SIZE;
    }

    /** Has a slot say that there is nothing. */
    private void forget(int slot) {
        ranges.asSlice(slot * RANGE_SIZE, RANGE_SIZE).fill((byte) 0);
        ranges.set(JAVA_INT, slot * RANGE_SIZE + FD, -1);
    }

    private long takeLease(int slot) {
        long at = slot * RANGE_SIZE + LEASE;
        long lease = ranges.get(JAVA_LONG, at);
        ranges.set(JAVA_LONG, at, 0);
        return lease;
    }

    private void releaseOne(int slot) {
        leases.setAtIndex(JAVA_LONG, 0, takeLease(slot));
        releaseFirst(1);
    }

    private void releaseFirst(int count) {
        Scratch.call(scratch -> (int) Native.LEASES_RELEASE.invokeExact(
                leases, count, scratch.error));
    }
}
