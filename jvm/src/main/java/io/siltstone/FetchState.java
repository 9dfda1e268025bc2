package io.siltstone;

import java.lang.foreign.Arena;

/** How far a follower is: the host keeps it from one step to the next. */
public final class FetchState extends Struct {
    private static final long FETCH_OFFSET = Layouts.at(ReplicaLayouts.FETCH_STATE, "fetch_offset");
    private static final long LAG = Layouts.at(ReplicaLayouts.FETCH_STATE, "lag");
    private static final long LEADER_EPOCH = Layouts.at(ReplicaLayouts.FETCH_STATE, "leader_epoch");
    private static final long LAST_FETCHED_EPOCH =
            Layouts.at(ReplicaLayouts.FETCH_STATE, "last_fetched_epoch");
    private static final long FLAGS = Layouts.at(ReplicaLayouts.FETCH_STATE, "flags");

    /** Nothing yet, in memory that the garbage collector frees. */
    public FetchState() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public FetchState(Arena arena) {
        super(ReplicaLayouts.FETCH_STATE, arena);
    }

    /** The offset that it fetches next. */
    public long fetchOffset() {
        return longAt(FETCH_OFFSET);
    }

    /** The offset that it fetches next. */
    public FetchState fetchOffset(long value) {
        setLong(FETCH_OFFSET, value);
        return this;
    }

    /** How many records it is behind the leader; -1: not known. */
    public long lag() {
        return longAt(LAG);
    }

    /** How many records it is behind the leader; -1: not known. */
    public FetchState lag(long value) {
        setLong(LAG, value);
        return this;
    }

    /** The epoch of its leader. */
    public int leaderEpoch() {
        return intAt(LEADER_EPOCH);
    }

    /** The epoch of its leader. */
    public FetchState leaderEpoch(int value) {
        setInt(LEADER_EPOCH, value);
        return this;
    }

    /** The epoch of its last batch; -1 for none. */
    public int lastFetchedEpoch() {
        return intAt(LAST_FETCHED_EPOCH);
    }

    /** The epoch of its last batch; -1 for none. */
    public FetchState lastFetchedEpoch(int value) {
        setInt(LAST_FETCHED_EPOCH, value);
        return this;
    }

    /** Whether there is a state; without it nothing else counts. */
    public boolean isThere() {
        return (intAt(FLAGS) & 1) != 0;
    }

    /** Whether there is a state; without it nothing else counts. */
    public FetchState isThere(boolean is) {
        setBit(FLAGS, 1, is);
        return this;
    }

    /** Whether it compares its log with the leader's; else it fetches. */
    public boolean isTruncating() {
        return (intAt(FLAGS) & 2) != 0;
    }

    /** Whether it compares its log with the leader's; else it fetches. */
    public FetchState isTruncating(boolean is) {
        setBit(FLAGS, 2, is);
        return this;
    }

    /** Whether it waits before it tries again. */
    public boolean isDelayed() {
        return (intAt(FLAGS) & 4) != 0;
    }

    /** Whether it waits before it tries again. */
    public FetchState isDelayed(boolean is) {
        setBit(FLAGS, 4, is);
        return this;
    }

    /** Whether its start at the last tiered offset has failed. */
    public boolean hasTieredStartFailed() {
        return (intAt(FLAGS) & 8) != 0;
    }

    /** Whether its start at the last tiered offset has failed. */
    public FetchState hasTieredStartFailed(boolean is) {
        setBit(FLAGS, 8, is);
        return this;
    }
}
