package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/**
 * A struct in native memory, made once and used by each call that it is given to. One thread at a
 * time should use it: two calls that write it leave it as one of them, or as a mixture.
 */
public abstract sealed class Struct
        permits Appended, Bounds, BuildInfo, DirectRead, EngineStats, FetchState, FetchVerdict,
                FollowerAction, FollowerEvent, IndexEntry, Isr, Offsets, PartitionEvent,
                PartitionState, RemoteRecord, TimeOffset, Walked, Watermark {
    private final MemorySegment memory;

    Struct(StructLayout layout, Arena arena) {
        this(layout, arena.allocate(layout));
    }

    /** In memory that may go on behind it. */
    Struct(StructLayout layout, MemorySegment memory) {
        this.memory = memory;
        String first = layout.memberLayouts().getFirst().name().orElseThrow();
        if (first.equals("struct_size")) {
            memory.set(JAVA_INT, 0, Math.toIntExact(layout.byteSize()));
        }
    }

    final MemorySegment memory() {
        return memory;
    }

    final int intAt(long field) {
        return memory.get(JAVA_INT, field);
    }

    final long longAt(long field) {
        return memory.get(JAVA_LONG, field);
    }

    final void setInt(long field, int value) {
        memory.set(JAVA_INT, field, value);
    }

    final void setLong(long field, long value) {
        memory.set(JAVA_LONG, field, value);
    }

    final void setBit(long field, int bit, boolean is) {
        setInt(field, is ? intAt(field) | bit : intAt(field) & ~bit);
    }
}
