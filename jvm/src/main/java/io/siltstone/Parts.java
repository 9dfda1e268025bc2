package io.siltstone;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The parts of an upload, in the order in which they are uploaded: bytes of an open file, or in
 * memory.
 */
public final class Parts extends Rows {
    private static final long PART = Layouts.at(TierLayouts.PART, "part");
    private static final long FD = Layouts.at(TierLayouts.PART, "fd");
    private static final long POSITION = Layouts.at(TierLayouts.PART, "position");
    private static final long BYTES = Layouts.at(TierLayouts.PART, "bytes");
    private static final long SIZE_BYTES = Layouts.at(TierLayouts.PART, "size_bytes");

    /** Room for so many, in memory that the garbage collector frees. */
    public Parts(int capacity) {
        super(TierLayouts.PART, Arena.ofAuto(), capacity);
    }

    /** Which part: {@code PART_} of {@link Codes}. */
    public int part(int row) {
        return intAt(row, PART);
    }

    /**
     * The file, open as long as the upload; -1: the bytes are in memory, for {@link Upload#read}.
     */
    public int fd(int row) {
        return intAt(row, FD);
    }

    /** The first byte in the file. */
    public long position(int row) {
        return longAt(row, POSITION);
    }

    /** How many bytes. */
    public long sizeBytes(int row) {
        return longAt(row, SIZE_BYTES);
    }

    /** Where the bytes are that are in memory, as long as their upload is not closed. */
    MemorySegment bytes(int row) {
        return MemorySegment.ofAddress(longAt(row, BYTES));
    }
}
