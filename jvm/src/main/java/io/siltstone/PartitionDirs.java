package io.siltstone;

import java.lang.foreign.Arena;

/** Partitions that a broker would load, by directory and name. */
public final class PartitionDirs extends PartitionRows {
    private static final long LOG_SIZE_BYTES =
            Layouts.at(DirLayouts.PARTITION_DIR, "log_size_bytes");
    private static final long FLAGS = Layouts.at(DirLayouts.PARTITION_DIR, "flags");

    /** Room for so many, in memory that the garbage collector frees. */
    public PartitionDirs(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public PartitionDirs(Arena arena, int capacity) {
        super(DirLayouts.PARTITION_DIR, arena, capacity);
    }

    /** The size of its segments. */
    public long logSizeBytes(int row) {
        return longAt(row, LOG_SIZE_BYTES);
    }

    /** Whether its log directory was stopped cleanly. */
    public boolean isClean(int row) {
        return (intAt(row, FLAGS) & 1) != 0;
    }

    /** Whether a broker is running on its log directory. */
    public boolean isLocked(int row) {
        return (intAt(row, FLAGS) & 2) != 0;
    }

    /** Whether it is a copy that is to replace the partition of another directory. */
    public boolean isFuture(int row) {
        return (intAt(row, FLAGS) & 4) != 0;
    }
}
