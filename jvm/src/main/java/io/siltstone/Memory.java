package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;

/** What a caller gives, checked before the library sees it. */
final class Memory {
    /** The size of an id. */
    static final long UUID_SIZE = 16;

    private static final int THREADS_MAX = 1024;
    private static final ValueLayout.OfLong BIG_LONG =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

    private Memory() {}

    /** Bytes that the library reads. */
    static MemorySegment input(MemorySegment bytes) {
        if (!bytes.isNative()) {
            throw new IllegalArgumentException("bytes on the heap: native memory is needed");
        }
        return bytes;
    }

    /** Bytes that the library writes. */
    static MemorySegment output(MemorySegment bytes) {
        // The linker lets it pass, and a write to a page that is read-only ends the process.
        if (bytes.isReadOnly()) {
            throw new IllegalArgumentException("bytes that are read-only");
        }
        return input(bytes);
    }

    /** Bytes that the library writes, or nothing. */
    static MemorySegment outputOrNull(MemorySegment bytes) {
        return bytes == null ? MemorySegment.NULL : output(bytes);
    }

    static MemorySegment text(Arena arena, String text) {
        if (text.indexOf('\0') >= 0) {
            throw new IllegalArgumentException("a text with a NUL in it");
        }
        return arena.allocateFrom(text);
    }

    /** A path of the default file system. */
    static MemorySegment path(Arena arena, Path path) {
        return text(arena, path.toFile().getPath());
    }

    static MemorySegment textOrNull(Arena arena, String text) {
        return text == null ? MemorySegment.NULL : text(arena, text);
    }

    /** Paths as an array of texts. */
    static MemorySegment paths(Arena arena, List<Path> paths) {
        MemorySegment all = arena.allocate(ADDRESS, paths.size());
        int at = 0;
        for (Path path : paths) {
            all.setAtIndex(ADDRESS, at, path(arena, path));
            at++;
        }
        return all;
    }

    /** Writes an id, as it is on the wire. */
    static void put(MemorySegment memory, long at, UUID id) {
        memory.set(BIG_LONG, at, id.getMostSignificantBits());
        memory.set(BIG_LONG, at + Long.BYTES, id.getLeastSignificantBits());
    }

    static UUID uuid(MemorySegment memory, long at) {
        return new UUID(memory.get(BIG_LONG, at), memory.get(BIG_LONG, at + Long.BYTES));
    }

    /** A number of threads that a machine can have. */
    static int threads(int count) {
        if (count < 0 || count > THREADS_MAX) {
            throw new IllegalArgumentException(count + " threads");
        }
        return count;
    }
}
