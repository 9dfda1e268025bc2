package io.siltstone;

import java.lang.foreign.Arena;
import java.lang.foreign.StructLayout;

/** Partitions of log directories, by directory and name. */
abstract sealed class PartitionRows extends Rows permits PartitionDirs, Recoveries {
    private final long dir;
    private final long topic;
    private final long partition;
    private final long logStartOffset;

    PartitionRows(StructLayout layout, Arena arena, int capacity) {
        super(layout, arena, capacity);
        dir = Layouts.at(layout, "dir");
        topic = Layouts.at(layout, "topic");
        partition = Layouts.at(layout, "partition");
        logStartOffset = Layouts.at(layout, "log_start_offset");
    }

    /** The number of the log directory, as they were given. */
    public final int dir(int row) {
        return intAt(row, dir);
    }

    /** The topic, or the name of a folder that is none of a partition. */
    public final String topic(int row) {
        return textAt(row, topic);
    }

    /** The number of the partition; -1: the folder is none of a partition. */
    public final int partition(int row) {
        return intAt(row, partition);
    }

    /** Where the log starts, or will; -1 where the checkpoint of a directory says none. */
    public final long logStartOffset(int row) {
        return longAt(row, logStartOffset);
    }
}
