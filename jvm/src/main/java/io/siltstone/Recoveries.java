package io.siltstone;

import java.lang.foreign.Arena;

/** What came of the partitions that were recovered, by directory and name. */
public final class Recoveries extends PartitionRows {
    private static final long OUTCOME = Layouts.at(DirLayouts.RECOVERY, "outcome");
    private static final long STATUS = Layouts.at(DirLayouts.RECOVERY, "status");
    private static final long LOG_END_OFFSET = Layouts.at(DirLayouts.RECOVERY, "log_end_offset");
    private static final long LAST_STABLE_OFFSET =
            Layouts.at(DirLayouts.RECOVERY, "last_stable_offset");
    private static final long CUT_OFFSET = Layouts.at(DirLayouts.RECOVERY, "cut_offset");
    private static final long CUT_BYTES = Layouts.at(DirLayouts.RECOVERY, "cut_bytes");
    private static final long BYTES_READ = Layouts.at(DirLayouts.RECOVERY, "bytes_read");
    private static final long STEP_COUNT = Layouts.at(DirLayouts.RECOVERY, "step_count");
    private static final long PROBLEM_COUNT = Layouts.at(DirLayouts.RECOVERY, "problem_count");
    private static final long REASON = Layouts.at(DirLayouts.RECOVERY, "reason");

    /** Room for so many, in memory that the garbage collector frees. */
    public Recoveries(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public Recoveries(Arena arena, int capacity) {
        super(DirLayouts.RECOVERY, arena, capacity);
    }

    /** What came of it: {@code RECOVERY_} of {@link Codes}. */
    public int outcome(int row) {
        return intAt(row, OUTCOME);
    }

    /** 0, or the code of a {@link Kind}, of one that could not be read or written. */
    public int status(int row) {
        return intAt(row, STATUS);
    }

    /** Where the log will end, exclusive. */
    public long logEndOffset(int row) {
        return longAt(row, LOG_END_OFFSET);
    }

    /** What its last stable offset will be. */
    public long lastStableOffset(int row) {
        return longAt(row, LAST_STABLE_OFFSET);
    }

    /** The first offset that goes; -1 for none. */
    public long cutOffset(int row) {
        return longAt(row, CUT_OFFSET);
    }

    /** How many bytes go. */
    public long cutBytes(int row) {
        return longAt(row, CUT_BYTES);
    }

    /** How many bytes were read. */
    public long bytesRead(int row) {
        return longAt(row, BYTES_READ);
    }

    /** How many steps its plan has. */
    public int stepCount(int row) {
        return intAt(row, STEP_COUNT);
    }

    /** How many problems were found. */
    public int problemCount(int row) {
        return intAt(row, PROBLEM_COUNT);
    }

    /** Why it was refused. */
    public String reason(int row) {
        return textAt(row, REASON);
    }
}
