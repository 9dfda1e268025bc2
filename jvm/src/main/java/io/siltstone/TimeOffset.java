package io.siltstone;

import java.lang.foreign.Arena;

/** A record that was looked for by its time. */
public final class TimeOffset extends Struct {
    private static final long TIMESTAMP_MS = Layouts.at(Layouts.TIME_OFFSET, "timestamp_ms");
    private static final long OFFSET = Layouts.at(Layouts.TIME_OFFSET, "offset");
    private static final long LEADER_EPOCH = Layouts.at(Layouts.TIME_OFFSET, "leader_epoch");

    /** Nothing yet, in memory that the garbage collector frees. */
    public TimeOffset() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public TimeOffset(Arena arena) {
        super(Layouts.TIME_OFFSET, arena);
    }

    /** Its timestamp. */
    public long timestampMs() {
        return longAt(TIMESTAMP_MS);
    }

    /** Its offset. */
    public long offset() {
        return longAt(OFFSET);
    }

    /** The epoch of its leader; -1 when it is not known. */
    public int leaderEpoch() {
        return intAt(LEADER_EPOCH);
    }
}
