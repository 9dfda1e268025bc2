package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.Objects;

/**
 * Results in native memory, read by their position; made once and filled by each call that they are
 * given to. One thread at a time should use them, as with a {@link Struct}.
 */
public abstract sealed class Rows
        permits AbortedEntries, AbortedTxns, Batches, EnginePartitions, Epochs, Followers,
                PartitionRows, Parts, PlanSteps, Problems, Producers, Segments, Works {
    /** Beyond it the JVM would try for long to find the memory. */
    static final int CAPACITY_MAX = 1 << 24;

    private final MemorySegment memory;
    private final long stride;
    private final int capacity;
    private int count;
    private long total;

    Rows(StructLayout layout, Arena arena, int capacity) {
        checkCapacity(capacity);
        this.stride = layout.byteSize();
        this.capacity = capacity;
        this.memory = arena.allocate(stride * capacity, layout.byteAlignment());
    }

    static void checkCapacity(int capacity) {
        if (capacity < 0 || capacity > CAPACITY_MAX) {
            throw new IllegalArgumentException("a capacity of " + capacity);
        }
    }

    /** How many fit. */
    public final int capacity() {
        return capacity;
    }

    /** How many the last call has written. */
    public final int count() {
        return count;
    }

    /** Whether all that there were fitted. */
    public final boolean isComplete() {
        return total <= count;
    }

    final MemorySegment memory() {
        return memory;
    }

    /** Takes what a call has filled; how many there were, also beyond the capacity. */
    final long filled(long total) {
        this.total = total;
        count = Math.clamp(total, 0, capacity);
        return total;
    }

    /** Where a row begins. */
    private long at(int row) {
        return Objects.checkIndex(row, count) * stride;
    }

    final long longAt(int row, long field) {
        return memory.get(JAVA_LONG, at(row) + field);
    }

    final int intAt(int row, long field) {
        return memory.get(JAVA_INT, at(row) + field);
    }

    final short shortAt(int row, long field) {
        return memory.get(JAVA_SHORT, at(row) + field);
    }

    final byte byteAt(int row, long field) {
        return memory.get(JAVA_BYTE, at(row) + field);
    }

    /** The struct of a row. */
    final MemorySegment row(int row) {
        return memory.asSlice(at(row), stride);
    }

    /** A text that ends with a NUL. */
    final String textAt(int row, long field) {
        return memory.asSlice(at(row) + field).getString(0);
    }

    final void setLong(int row, long field, long value) {
        memory.set(JAVA_LONG, at(row) + field, value);
    }

    final void setInt(int row, long field, int value) {
        memory.set(JAVA_INT, at(row) + field, value);
    }

    final void setBit(int row, long field, int bit, boolean is) {
        setInt(row, field, is ? intAt(row, field) | bit : intAt(row, field) & ~bit);
    }

    final void setShort(int row, long field, short value) {
        memory.set(JAVA_SHORT, at(row) + field, value);
    }
}
