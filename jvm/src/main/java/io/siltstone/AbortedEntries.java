package io.siltstone;

import java.lang.foreign.Arena;

/** Aborted transactions as a transaction index has them. */
public final class AbortedEntries extends Rows {
    private static final long PRODUCER_ID = Layouts.at(Layouts.ABORTED_ENTRY, "producer_id");
    private static final long FIRST_OFFSET = Layouts.at(Layouts.ABORTED_ENTRY, "first_offset");
    private static final long LAST_OFFSET = Layouts.at(Layouts.ABORTED_ENTRY, "last_offset");
    private static final long LAST_STABLE_OFFSET =
            Layouts.at(Layouts.ABORTED_ENTRY, "last_stable_offset");

    /** Room for so many, in memory that the garbage collector frees. */
    public AbortedEntries(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public AbortedEntries(Arena arena, int capacity) {
        super(Layouts.ABORTED_ENTRY, arena, capacity);
    }

    /** The producer. */
    public long producerId(int row) {
        return longAt(row, PRODUCER_ID);
    }

    /** The first offset of the transaction. */
    public long firstOffset(int row) {
        return longAt(row, FIRST_OFFSET);
    }

    /** The offset of the abort marker. */
    public long lastOffset(int row) {
        return longAt(row, LAST_OFFSET);
    }

    /** Up to where, exclusive, every transaction had ended then. */
    public long lastStableOffset(int row) {
        return longAt(row, LAST_STABLE_OFFSET);
    }
}
