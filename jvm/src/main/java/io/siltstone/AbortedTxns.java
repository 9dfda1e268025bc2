package io.siltstone;

import java.lang.foreign.Arena;

/** Aborted transactions: a reader leaves out the producer's records from the first offset on. */
public final class AbortedTxns extends Rows {
    private static final long PRODUCER_ID = Layouts.at(Layouts.ABORTED, "producer_id");
    private static final long FIRST_OFFSET = Layouts.at(Layouts.ABORTED, "first_offset");
    private static final long LAST_OFFSET = Layouts.at(Layouts.ABORTED, "last_offset");

    /** Room for so many, in memory that the garbage collector frees. */
    public AbortedTxns(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public AbortedTxns(Arena arena, int capacity) {
        super(Layouts.ABORTED, arena, capacity);
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
}
