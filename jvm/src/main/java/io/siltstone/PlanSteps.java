package io.siltstone;

import java.lang.foreign.Arena;

/** The changes that a recovery makes, or would make, by partition and in their order. */
public final class PlanSteps extends Rows {
    private static final long NUMBER = Layouts.at(DirLayouts.PLAN_STEP, "number");
    private static final long KIND = Layouts.at(DirLayouts.PLAN_STEP, "kind");
    private static final long OFFSET = Layouts.at(DirLayouts.PLAN_STEP, "offset");
    private static final long POSITION = Layouts.at(DirLayouts.PLAN_STEP, "position");
    private static final long SIZE_BYTES = Layouts.at(DirLayouts.PLAN_STEP, "size_bytes");
    private static final long FILE = Layouts.at(DirLayouts.PLAN_STEP, "file");
    private static final long DETAIL = Layouts.at(DirLayouts.PLAN_STEP, "detail");

    /** Room for so many, in memory that the garbage collector frees. */
    public PlanSteps(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public PlanSteps(Arena arena, int capacity) {
        super(DirLayouts.PLAN_STEP, arena, capacity);
    }

    /** The number of the partition, as {@link LogDirs#recoveries} counts them. */
    public int partition(int row) {
        return intAt(row, NUMBER);
    }

    /** What it does: {@code STEP_} of {@link Codes}. */
    public int kind(int row) {
        return intAt(row, KIND);
    }

    /** The offset of the log; -1 where it has none. */
    public long offset(int row) {
        return longAt(row, OFFSET);
    }

    /** The byte of the file; -1 where it has none. */
    public long position(int row) {
        return longAt(row, POSITION);
    }

    /** How many bytes. */
    public long sizeBytes(int row) {
        return longAt(row, SIZE_BYTES);
    }

    /** The file. */
    public String file(int row) {
        return textAt(row, FILE);
    }

    /** What more there is to say, such as the new name. */
    public String detail(int row) {
        return textAt(row, DETAIL);
    }
}
