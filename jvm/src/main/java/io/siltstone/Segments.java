package io.siltstone;

import java.lang.foreign.Arena;

/** The segments of a log by rising base offset; the last one is written to. */
public final class Segments extends Rows {
    private static final long BASE_OFFSET = Layouts.at(Layouts.SEGMENT, "base_offset");
    private static final long SIZE_BYTES = Layouts.at(Layouts.SEGMENT, "size_bytes");
    private static final long MAX_TIMESTAMP_MS = Layouts.at(Layouts.SEGMENT, "max_timestamp_ms");

    /** Room for so many, in memory that the garbage collector frees. */
    public Segments(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public Segments(Arena arena, int capacity) {
        super(Layouts.SEGMENT, arena, capacity);
    }

    /** The offset that its files are named by. */
    public long baseOffset(int row) {
        return longAt(row, BASE_OFFSET);
    }

    /** The size of its log. */
    public long sizeBytes(int row) {
        return longAt(row, SIZE_BYTES);
    }

    /** The latest timestamp; -1 for none, or not known without reading the index. */
    public long maxTimestampMs(int row) {
        return longAt(row, MAX_TIMESTAMP_MS);
    }
}
