package io.siltstone;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/** What a caller gives, checked before the library sees it. */
final class Memory {
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
}
