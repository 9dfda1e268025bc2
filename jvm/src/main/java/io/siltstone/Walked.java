package io.siltstone;

import java.lang.foreign.Arena;
import java.lang.foreign.StructLayout;

/** What each walk over the bytes of a segment finds, whatever it makes of them. */
abstract sealed class Walked extends Struct permits Rebuilt, SegmentScan {
    private final long batchCount;
    private final long validBytes;
    private final long nextOffset;
    private final long maxTimestampMs;
    private final long offsetIndexSizeBytes;
    private final long timeIndexSizeBytes;

    Walked(StructLayout layout, Arena arena) {
        super(layout, arena);
        batchCount = Layouts.at(layout, "batch_count");
        validBytes = Layouts.at(layout, "valid_bytes");
        nextOffset = Layouts.at(layout, "next_offset");
        maxTimestampMs = Layouts.at(layout, "max_timestamp_ms");
        offsetIndexSizeBytes = Layouts.at(layout, "offset_index_size_bytes");
        timeIndexSizeBytes = Layouts.at(layout, "time_index_size_bytes");
    }

    /** How many whole batches. */
    public final int batchCount() {
        return intAt(batchCount);
    }

    /** Where the walk ended, and the log must be cut. */
    public final long validBytes() {
        return longAt(validBytes);
    }

    /** The offset behind the last batch. */
    public final long nextOffset() {
        return longAt(nextOffset);
    }

    /** The latest timestamp; -1 for none. */
    public final long maxTimestampMs() {
        return longAt(maxTimestampMs);
    }

    /** The size of the offset index. */
    public final long offsetIndexSizeBytes() {
        return longAt(offsetIndexSizeBytes);
    }

    /** The size of the time index. */
    public final long timeIndexSizeBytes() {
        return longAt(timeIndexSizeBytes);
    }
}
