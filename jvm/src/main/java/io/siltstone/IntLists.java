package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/**
 * The arrays of numbers that a struct points to: behind it in one piece of memory, which nobody can
 * close, and never of more numbers than there is room for.
 */
final class IntLists {
    private final StructLayout layout;
    private final int capacity;
    private final String[] names;
    private final MemorySegment memory;

    /** Names by twos: of the field that points to an array, and of the one that counts it. */
    IntLists(StructLayout layout, MemorySegment memory, int capacity, String... names) {
        this.layout = layout;
        this.memory = memory;
        this.capacity = capacity;
        this.names = names;
        point();
    }

    /** Memory for a struct and so many arrays. */
    static MemorySegment room(StructLayout layout, int capacity, int lists) {
        Rows.checkCapacity(capacity);
        long size = layout.byteSize() + (long) lists * capacity * Integer.BYTES;
        return Arena.ofAuto().allocate(size, Long.BYTES);
    }

    private void point() {
        for (int list = 0; list < names.length / 2; list++) {
            memory.set(ADDRESS, Layouts.at(layout, names[2 * list]), array(list));
        }
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

    /** Another struct of this kind with arrays of its own. */
    MemorySegment another() {
        MemorySegment other = Arena.ofAuto().allocate(memory.byteSize(), Long.BYTES);
        other.copyFrom(memory);
        return new IntLists(layout, other, capacity, names).memory;
    }

    /** Takes over what another one says, but for where its arrays are. */
    void take(MemorySegment other) {
        memory.copyFrom(other);
        point();
    }

    private MemorySegment array(int list) {
        long start = layout.byteSize() + (long) list * capacity * Integer.BYTES;
        return memory.asSlice(start, (long) capacity * Integer.BYTES);
    }

    private long countField(int list) {
        return Layouts.at(layout, names[2 * list + 1]);
    }
}
