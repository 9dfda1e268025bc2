package io.siltstone;

import java.lang.foreign.Arena;

/** Leader epochs, rising. */
public final class Epochs extends Rows {
    private static final long START_OFFSET = Layouts.at(Layouts.EPOCH, "start_offset");
    private static final long EPOCH = Layouts.at(Layouts.EPOCH, "epoch");

    /** Room for so many, in memory that the garbage collector frees. */
    public Epochs(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public Epochs(Arena arena, int capacity) {
        super(Layouts.EPOCH, arena, capacity);
    }

    /** The first offset of the epoch. */
    public long startOffset(int row) {
        return longAt(row, START_OFFSET);
    }

    /** The epoch. */
    public int epoch(int row) {
        return intAt(row, EPOCH);
    }
}
