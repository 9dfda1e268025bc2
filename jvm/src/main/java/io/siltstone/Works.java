package io.siltstone;

import java.lang.foreign.Arena;

/** Pieces of work that an engine has handed out. */
public final class Works extends Rows {
    private static final long ID = Layouts.at(EngineLayouts.WORK, "id");
    private static final long KIND = Layouts.at(EngineLayouts.WORK, "kind");

    /** Room for so many, in memory that the garbage collector frees. */
    public Works(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public Works(Arena arena, int capacity) {
        super(EngineLayouts.WORK, arena, capacity);
    }

    /** What {@link Engine#run} and {@link Engine#drop} take. */
    public long id(int row) {
        return longAt(row, ID);
    }

    /** What it does: {@code WORK_} of {@link Codes}. */
    public int kind(int row) {
        return intAt(row, KIND);
    }
}
