package io.siltstone;

import java.lang.foreign.Arena;

/** The offsets of a log, each as it was at the moment it was looked at. */
public final class Offsets extends Struct {
    private static final long SEGMENT_COUNT = Layouts.at(Layouts.OFFSETS, "segment_count");
    private static final long LOG_START_OFFSET = Layouts.at(Layouts.OFFSETS, "log_start_offset");
    private static final long LOCAL_LOG_START_OFFSET =
            Layouts.at(Layouts.OFFSETS, "local_log_start_offset");
    private static final long HIGH_WATERMARK = Layouts.at(Layouts.OFFSETS, "high_watermark");
    private static final long LAST_STABLE_OFFSET =
            Layouts.at(Layouts.OFFSETS, "last_stable_offset");
    private static final long LOG_END_OFFSET = Layouts.at(Layouts.OFFSETS, "log_end_offset");
    private static final long RECOVERY_POINT = Layouts.at(Layouts.OFFSETS, "recovery_point");
    private static final long HIGHEST_REMOTE_OFFSET =
            Layouts.at(Layouts.OFFSETS, "highest_remote_offset");
    private static final long SIZE_BYTES = Layouts.at(Layouts.OFFSETS, "size_bytes");

    /** Nothing yet, in memory that the garbage collector frees. */
    public Offsets() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public Offsets(Arena arena) {
        super(Layouts.OFFSETS, arena);
    }

    /** How many segments. */
    public int segmentCount() {
        return intAt(SEGMENT_COUNT);
    }

    /** The first offset that may be read. */
    public long logStartOffset() {
        return longAt(LOG_START_OFFSET);
    }

    /** The first offset that is on this disk. */
    public long localLogStartOffset() {
        return longAt(LOCAL_LOG_START_OFFSET);
    }

    /** Where what is replicated ends, exclusive. */
    public long highWatermark() {
        return longAt(HIGH_WATERMARK);
    }

    /** Where what is decided ends, exclusive. */
    public long lastStableOffset() {
        return longAt(LAST_STABLE_OFFSET);
    }

    /** The offset of the next record. */
    public long logEndOffset() {
        return longAt(LOG_END_OFFSET);
    }

    /** What lies before is durable: for the checkpoint. */
    public long recoveryPoint() {
        return longAt(RECOVERY_POINT);
    }

    /** The last offset that is known to be uploaded; -1 for none. */
    public long highestRemoteOffset() {
        return longAt(HIGHEST_REMOTE_OFFSET);
    }

    /** The size of all segments. */
    public long sizeBytes() {
        return longAt(SIZE_BYTES);
    }
}
