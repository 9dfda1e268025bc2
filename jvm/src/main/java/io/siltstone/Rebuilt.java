package io.siltstone;

import java.lang.foreign.Arena;

/** What a walk over the bytes of a segment has found. */
public final class Rebuilt extends Struct {
    private static final long BATCH_COUNT = Layouts.at(Layouts.REBUILT, "batch_count");
    private static final long VALID_BYTES = Layouts.at(Layouts.REBUILT, "valid_bytes");
    private static final long NEXT_OFFSET = Layouts.at(Layouts.REBUILT, "next_offset");
    private static final long MAX_TIMESTAMP_MS = Layouts.at(Layouts.REBUILT, "max_timestamp_ms");
    private static final long OFFSET_INDEX_SIZE_BYTES =
            Layouts.at(Layouts.REBUILT, "offset_index_size_bytes");
    private static final long TIME_INDEX_SIZE_BYTES =
            Layouts.at(Layouts.REBUILT, "time_index_size_bytes");

    /** Nothing yet, in memory that the garbage collector frees. */
    public Rebuilt() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public Rebuilt(Arena arena) {
        super(Layouts.REBUILT, arena);
    }

    /** How many whole batches. */
    public int batchCount() {
        return intAt(BATCH_COUNT);
    }

    /** Where the log must be cut. */
    public long validBytes() {
        return longAt(VALID_BYTES);
    }

    /** The offset behind the last batch. */
    public long nextOffset() {
        return longAt(NEXT_OFFSET);
    }

    /** The latest timestamp; -1 for none. */
    public long maxTimestampMs() {
        return longAt(MAX_TIMESTAMP_MS);
    }

    /** The size of the offset index. */
    public long offsetIndexSizeBytes() {
        return longAt(OFFSET_INDEX_SIZE_BYTES);
    }

    /** The size of the time index. */
    public long timeIndexSizeBytes() {
        return longAt(TIME_INDEX_SIZE_BYTES);
    }
}
