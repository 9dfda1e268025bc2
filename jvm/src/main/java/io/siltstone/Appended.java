package io.siltstone;

import java.lang.foreign.Arena;

/** What an append has done. */
public final class Appended extends Struct {
    private static final long FLAGS = Layouts.at(Layouts.APPENDED, "flags");
    private static final long FIRST_OFFSET = Layouts.at(Layouts.APPENDED, "first_offset");
    private static final long LAST_OFFSET = Layouts.at(Layouts.APPENDED, "last_offset");
    private static final long MAX_TIMESTAMP_MS = Layouts.at(Layouts.APPENDED, "max_timestamp_ms");
    private static final long LOG_APPEND_TIME_MS =
            Layouts.at(Layouts.APPENDED, "log_append_time_ms");
    private static final long LOG_START_OFFSET = Layouts.at(Layouts.APPENDED, "log_start_offset");
    private static final long SIZE_BYTES = Layouts.at(Layouts.APPENDED, "size_bytes");

    /** Nothing yet, in memory that the garbage collector frees. */
    public Appended() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public Appended(Arena arena) {
        super(Layouts.APPENDED, arena);
    }

    /** The offset of the first record; -1 when nothing was appended. */
    public long firstOffset() {
        return longAt(FIRST_OFFSET);
    }

    /** The offset of the last record; -1 when nothing was appended. */
    public long lastOffset() {
        return longAt(LAST_OFFSET);
    }

    /** The latest timestamp. */
    public long maxTimestampMs() {
        return longAt(MAX_TIMESTAMP_MS);
    }

    /** The time of the append where the topic's records have it, else -1. */
    public long logAppendTimeMs() {
        return longAt(LOG_APPEND_TIME_MS);
    }

    /** Where the log starts. */
    public long logStartOffset() {
        return longAt(LOG_START_OFFSET);
    }

    /** How many bytes were written. */
    public long sizeBytes() {
        return longAt(SIZE_BYTES);
    }

    /** Whether it was there already, with these offsets, so that nothing was written. */
    public boolean isDuplicate() {
        return (intAt(FLAGS) & 1) != 0;
    }

    /** Whether a segment was begun: a flush of those before is due. */
    public boolean hasRolled() {
        return (intAt(FLAGS) & 2) != 0;
    }

    /** Whether as many messages wait as {@code flush.messages} allows. */
    public boolean isFlushDue() {
        return (intAt(FLAGS) & 4) != 0;
    }
}
