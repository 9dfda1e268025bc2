package io.siltstone;

import java.lang.foreign.Arena;

/** The partitions of an engine, by topic and number; the future ones behind the others. */
public final class EnginePartitions extends Rows {
    private static final long TOPIC = Layouts.at(EngineLayouts.ENGINE_PARTITION, "topic");
    private static final long PARTITION = Layouts.at(EngineLayouts.ENGINE_PARTITION, "partition");

    /** Room for so many, in memory that the garbage collector frees. */
    public EnginePartitions(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public EnginePartitions(Arena arena, int capacity) {
        super(EngineLayouts.ENGINE_PARTITION, arena, capacity);
    }

    /** The topic. */
    public String topic(int row) {
        return textAt(row, TOPIC);
    }

    /** The number of the partition. */
    public int partition(int row) {
        return intAt(row, PARTITION);
    }
}
