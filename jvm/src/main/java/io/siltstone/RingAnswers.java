package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/** The answers of a {@link Ring} with their leases, and what its cleaner ends. */
final class RingAnswers {
    private static final long DONE_SIZE = EngineLayouts.DONE.byteSize();
    private static final long RANGE = Layouts.at(EngineLayouts.DONE, "range");
    private static final long LEASE = RANGE + Layouts.at(Layouts.RANGE, "lease");

    private final int capacity;
    private final MemorySegment done;
    private final MemorySegment leases;
    private volatile int count;

    RingAnswers(int capacity) {
        this.capacity = capacity;
        done = Arena.ofAuto().allocate(EngineLayouts.DONE, capacity);
        leases = Arena.ofAuto().allocate(JAVA_LONG, capacity);
    }

    int count() {
        return count;
    }

    /** Polls once, where nobody else does and there are no answers; how many answers there are. */
    int poll(Handle ring, int waitMs) {
        int[] found = new int[1];
        ring.call((object, scratch) -> {
            scratch.first.set(JAVA_INT, 0, 0);
            int status = (int) EngineNative.RING_POLL.invokeExact(
                    object, done, capacity, waitMs, scratch.first, scratch.error);
            found[0] = scratch.firstInt();
            return status;
        });
        count = found[0];
        return found[0];
    }

    synchronized void release() {
        int released = count;
        for (int row = 0; row < released; row++) {
            long at = row * DONE_SIZE + LEASE;
            leases.setAtIndex(JAVA_LONG, row, done.get(JAVA_LONG, at));
            done.set(JAVA_LONG, at, 0);
        }
        Scratch.call(scratch -> (int) Native.LEASES_RELEASE.invokeExact(
                leases, released, scratch.error));
    }

    synchronized void moveLease(int row, Leases target) {
        long at = Objects.checkIndex(row, count) * DONE_SIZE + LEASE;
        target.add(done.get(JAVA_LONG, at));
        done.set(JAVA_LONG, at, 0);
    }

    synchronized boolean isIntact(int row) {
        long at = Objects.checkIndex(row, count) * DONE_SIZE + RANGE;
        MemorySegment range = done.asSlice(at, Layouts.RANGE.byteSize());
        try {
            return (int) Native.RANGE_IS_INTACT.invokeExact(range) == 1;
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        }
    }

    /** Releases the leases; there are no answers then, so that a poll may write new ones. */
    synchronized void forget() {
        release();
        count = 0;
    }

    int intAt(int row, long field) {
        return done.get(JAVA_INT, Objects.checkIndex(row, count) * DONE_SIZE + field);
    }

    long longAt(int row, long field) {
        return done.get(JAVA_LONG, Objects.checkIndex(row, count) * DONE_SIZE + field);
    }
}
