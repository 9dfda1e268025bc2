package io.siltstone;

import java.lang.foreign.Arena;

/** What a follower is to do, and what tells more of it. */
public final class FollowerAction extends Struct {
    private static final long STATE = Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "state");
    private static final long KIND = Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "kind");
    private static final long OFFSET = Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "offset");
    private static final long HIGH_WATERMARK =
            Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "high_watermark");
    private static final long LOG_START_OFFSET =
            Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "log_start_offset");
    private static final long LEADER_LOG_END_OFFSET =
            Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "leader_log_end_offset");
    private static final long PREVIOUS_OFFSET =
            Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "previous_offset");
    private static final long EPOCH = Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "epoch");
    private static final long QUERY = Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "query");
    private static final long REASON = Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "reason");
    private static final long ERROR_CODE = Layouts.at(ReplicaLayouts.FOLLOWER_ACTION, "error_code");

    /** Nothing yet, in memory that the garbage collector frees. */
    public FollowerAction() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public FollowerAction(Arena arena) {
        super(ReplicaLayouts.FOLLOWER_ACTION, arena);
    }

    /** What: {@code ACTION_} of {@link Codes}. */
    public int kind() {
        return intAt(KIND);
    }

    /** Where to cut, begin or start. */
    public long offset() {
        return longAt(OFFSET);
    }

    /** The high watermark to be set. */
    public long highWatermark() {
        return longAt(HIGH_WATERMARK);
    }

    /** Where the log is to start. */
    public long logStartOffset() {
        return longAt(LOG_START_OFFSET);
    }

    /** For {@link Codes#EVENT_AUX_INSTALLED}. */
    public long leaderLogEndOffset() {
        return longAt(LEADER_LOG_END_OFFSET);
    }

    /** An offset that the remote segment has. */
    public long previousOffset() {
        return longAt(PREVIOUS_OFFSET);
    }

    /** An epoch. */
    public int epoch() {
        return intAt(EPOCH);
    }

    /** What the leader is to be asked: {@code QUERY_} of {@link Codes}. */
    public int query() {
        return intAt(QUERY);
    }

    /** Why: {@code REASON_} of {@link Codes}. */
    public int reason() {
        return intAt(REASON);
    }

    /** An error of the protocol. */
    public int errorCode() {
        return intAt(ERROR_CODE);
    }

    /** Copies the state that is to be kept. */
    public void state(FetchState out) {
        long size = ReplicaLayouts.FETCH_STATE.byteSize();
        out.memory().copyFrom(memory().asSlice(STATE, size));
    }
}
