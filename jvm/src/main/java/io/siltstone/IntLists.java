package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/**
 * A struct with arrays of numbers that it points to: all in one piece of memory, which nobody can
 * close, and never of more numbers than there is room for.
 */
final class IntLists {
    private final StructLayout layout;
    private final int capacity;
    private final String[] names;
    private final MemorySegment memory;

    /** Names by twos: of the field that points to an array, and of the one that counts it. */
    IntLists(StructLayout layout, int capacity, String... names) {
        Rows.checkCapacity(capacity);
        this.layout = layout;
        this.capacity = capacity;
        this.names = names;
        long size = start(names.length / 2);
        memory = Arena.ofAuto().allocate(size, Long.BYTES);
        memory.set(JAVA_INT, 0, Math.toIntExact(layout.byteSize()));
        point();
    }

    private void point() {
        for (int list = 0; list < names.length / 2; list++) {
            memory.set(ADDRESS, Layouts.at(layout, names[2 * list]), array(list));
        }
    }

    /** Another one of this kind. */
    IntLists(IntLists like) {
        this(like.layout, like.capacity, like.names);
    }

    /** The struct, and behind it the arrays. */
    MemorySegment struct() {
        return memory;
    }

    void put(int list, int... numbers) {
        if (numbers.length > capacity) {
            throw new IllegalArgumentException("no room for " + numbers.length + " replicas");
        }
        MemorySegment.copy(numbers, 0, array(list), JAVA_INT, 0, numbers.length);
        memory.set(JAVA_INT, countField(list), numbers.length);
    }

    int[] get(int list) {
        int count = Math.clamp(memory.get(JAVA_INT, countField(list)) & 0xffff_ffffL, 0, capacity);
        return array(list).asSlice(0, (long) count * Integer.BYTES).toArray(JAVA_INT);
    }

    /** Takes over what another one of this kind says, but for where its arrays are. */
    void take(IntLists other) {
        memory.copyFrom(other.memory);
        point();
    }

    private MemorySegment array(int list) {
        return memory.asSlice(start(list), (long) capacity * Integer.BYTES);
    }

    private long start(int list) {
        return layout.byteSize() + (long) list * capacity * Integer.BYTES;
    }

    private long countField(int list) {
        return Layouts.at(layout, names[2 * list + 1]);
    }
}
