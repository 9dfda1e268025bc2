package io.siltstone;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * Native memory that nobody can close, for bytes that the library looks at through a pointer: of
 * many appends, of operations that wait, of indexes. It goes when nobody can reach the room any
 * more, and everything that was told to use it reaches it.
 */
public final class Room {
    /** As large as a segment of a log is by default. */
    private static final long SIZE_BYTES_MAX = 1L << 30;

    private final MemorySegment memory;

    /** So many bytes, which are 0. */
    public Room(long sizeBytes) {
        if (sizeBytes < 0 || sizeBytes > SIZE_BYTES_MAX) {
            throw new IllegalArgumentException("a room of " + sizeBytes + " bytes");
        }
        memory = Arena.ofAuto().allocate(sizeBytes, Long.BYTES);
    }

    /** The bytes: to be written to, also as a {@link MemorySegment#asByteBuffer() buffer}. */
    public MemorySegment memory() {
        return memory;
    }

    /** How many. */
    public long sizeBytes() {
        return memory.byteSize();
    }

    /** Some of the bytes. */
    MemorySegment part(long position, long sizeBytes) {
        Objects.checkFromIndexSize(position, sizeBytes, memory.byteSize());
        return memory.asSlice(position, sizeBytes);
    }

    /** As many of the first bytes as there are, to be read. */
    MemorySegment first(long sizeBytes) {
        return memory.asSlice(0, Math.clamp(sizeBytes, 0, memory.byteSize())).asReadOnly();
    }
}
