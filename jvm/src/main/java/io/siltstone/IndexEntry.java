package io.siltstone;

import java.lang.foreign.Arena;

/** An entry of an offset index, with no timestamp (-1), or of a time index, with no position. */
public final class IndexEntry extends Struct {
    private static final long OFFSET = Layouts.at(Layouts.INDEX_ENTRY, "offset");
    private static final long TIMESTAMP_MS = Layouts.at(Layouts.INDEX_ENTRY, "timestamp_ms");
    private static final long POSITION = Layouts.at(Layouts.INDEX_ENTRY, "position");

    /** Nothing yet, in memory that the garbage collector frees. */
    public IndexEntry() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public IndexEntry(Arena arena) {
        super(Layouts.INDEX_ENTRY, arena);
    }

    /** The offset. */
    public long offset() {
        return longAt(OFFSET);
    }

    /** The timestamp. */
    public long timestampMs() {
        return longAt(TIMESTAMP_MS);
    }

    /** The first byte of the batch. */
    public int position() {
        return intAt(POSITION);
    }
}
