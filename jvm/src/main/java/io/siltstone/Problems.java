package io.siltstone;

import java.lang.foreign.Arena;

/** What a verification or a recovery has found to be wrong. */
public final class Problems extends Rows {
    private static final long DIR = Layouts.at(DirLayouts.PROBLEM, "dir");
    private static final long NUMBER = Layouts.at(DirLayouts.PROBLEM, "number");
    private static final long SEVERITY = Layouts.at(DirLayouts.PROBLEM, "severity");
    private static final long POSITION = Layouts.at(DirLayouts.PROBLEM, "position");
    private static final long OFFSET = Layouts.at(DirLayouts.PROBLEM, "offset");
    private static final long CODE = Layouts.at(DirLayouts.PROBLEM, "code");
    private static final long FILE = Layouts.at(DirLayouts.PROBLEM, "file");
    private static final long DETAIL = Layouts.at(DirLayouts.PROBLEM, "detail");

    /** Room for so many, in memory that the garbage collector frees. */
    public Problems(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public Problems(Arena arena, int capacity) {
        super(DirLayouts.PROBLEM, arena, capacity);
    }

    /** The number of the log directory, as they were given. */
    public int dir(int row) {
        return intAt(row, DIR);
    }

    /**
     * The number of the partition, as {@link LogDirs#scan} or {@link LogDirs#recoveries} counts
     * them; -1: the directory itself.
     */
    public int partition(int row) {
        return intAt(row, NUMBER);
    }

    /** How bad it is: {@code SEVERITY_} of {@link Codes}. */
    public int severity(int row) {
        return intAt(row, SEVERITY);
    }

    /** The byte of the file; -1 where it has none. */
    public long position(int row) {
        return longAt(row, POSITION);
    }

    /** The offset of the log; -1 where it has none. */
    public long offset(int row) {
        return longAt(row, OFFSET);
    }

    /** As the command line prints it, such as {@code torn_batch}. */
    public String code(int row) {
        return textAt(row, CODE);
    }

    /** The file. */
    public String file(int row) {
        return textAt(row, FILE);
    }

    /** A sentence, cut where it is too long. */
    public String detail(int row) {
        return textAt(row, DETAIL);
    }
}
