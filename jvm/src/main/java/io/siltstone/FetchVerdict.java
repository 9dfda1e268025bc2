package io.siltstone;

import java.lang.foreign.Arena;

/** What a leader answers to a fetch before it looks at a record. */
public final class FetchVerdict extends Struct {
    private static final long KIND = Layouts.at(ReplicaLayouts.FETCH_VERDICT, "kind");
    private static final long HIGH_WATERMARK =
            Layouts.at(ReplicaLayouts.FETCH_VERDICT, "high_watermark");
    private static final long LOG_START_OFFSET =
            Layouts.at(ReplicaLayouts.FETCH_VERDICT, "log_start_offset");
    private static final long LOG_END_OFFSET =
            Layouts.at(ReplicaLayouts.FETCH_VERDICT, "log_end_offset");
    private static final long END_OFFSET = Layouts.at(ReplicaLayouts.FETCH_VERDICT, "end_offset");
    private static final long EPOCH = Layouts.at(ReplicaLayouts.FETCH_VERDICT, "epoch");
    private static final long ERROR_CODE = Layouts.at(ReplicaLayouts.FETCH_VERDICT, "error_code");

    /** Nothing yet, in memory that the garbage collector frees. */
    public FetchVerdict() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public FetchVerdict(Arena arena) {
        super(ReplicaLayouts.FETCH_VERDICT, arena);
    }

    /** What: {@code VERDICT_} of {@link Codes}. */
    public int kind() {
        return intAt(KIND);
    }

    /** The high watermark; -1 where it is not told. */
    public long highWatermark() {
        return longAt(HIGH_WATERMARK);
    }

    /** Where the log starts; -1 where it is not told. */
    public long logStartOffset() {
        return longAt(LOG_START_OFFSET);
    }

    /** Where the log ends; -1 where it is not told. */
    public long logEndOffset() {
        return longAt(LOG_END_OFFSET);
    }

    /** Where the epoch ends; -1 where it is not told. */
    public long endOffset() {
        return longAt(END_OFFSET);
    }

    /** An epoch; -1 where it is not told. */
    public int epoch() {
        return intAt(EPOCH);
    }

    /** An error of the protocol; 0 for none. */
    public int errorCode() {
        return intAt(ERROR_CODE);
    }
}
