package io.siltstone;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** What a leader remembers of its followers, and what metadata says of their brokers. */
public final class Followers extends Rows {
    private static final long LOG_START_OFFSET =
            Layouts.at(ReplicaLayouts.PROGRESS, "log_start_offset");
    private static final long LOG_END_OFFSET =
            Layouts.at(ReplicaLayouts.PROGRESS, "log_end_offset");
    private static final long LAST_CAUGHT_UP_MS =
            Layouts.at(ReplicaLayouts.PROGRESS, "last_caught_up_ms");
    private static final long LAST_FETCH_MS = Layouts.at(ReplicaLayouts.PROGRESS, "last_fetch_ms");
    private static final long LEADER_END_AT_FETCH =
            Layouts.at(ReplicaLayouts.PROGRESS, "leader_end_at_fetch");
    private static final long BROKER_EPOCH = Layouts.at(ReplicaLayouts.PROGRESS, "broker_epoch");
    private static final long REGISTERED_EPOCH =
            Layouts.at(ReplicaLayouts.PROGRESS, "registered_epoch");
    private static final long REPLICA = Layouts.at(ReplicaLayouts.PROGRESS, "replica");
    private static final long FLAGS = Layouts.at(ReplicaLayouts.PROGRESS, "flags");

    /** Room for so many, in memory that the garbage collector frees. */
    public Followers(int capacity) {
        super(ReplicaLayouts.PROGRESS, Arena.ofAuto(), capacity);
    }

    /** Where its log starts; -1 until it fetches. */
    public long logStartOffset(int row) {
        return longAt(row, LOG_START_OFFSET);
    }

    /** Where its log starts; -1 until it fetches. */
    public Followers logStartOffset(int row, long value) {
        setLong(row, LOG_START_OFFSET, value);
        return this;
    }

    /** Where its log ends; -1 until it fetches. */
    public long logEndOffset(int row) {
        return longAt(row, LOG_END_OFFSET);
    }

    /** Where its log ends; -1 until it fetches. */
    public Followers logEndOffset(int row, long value) {
        setLong(row, LOG_END_OFFSET, value);
        return this;
    }

    /** When it had all that the leader had. */
    public long lastCaughtUpMs(int row) {
        return longAt(row, LAST_CAUGHT_UP_MS);
    }

    /** When it had all that the leader had. */
    public Followers lastCaughtUpMs(int row, long value) {
        setLong(row, LAST_CAUGHT_UP_MS, value);
        return this;
    }

    /** When it fetched last. */
    public long lastFetchMs(int row) {
        return longAt(row, LAST_FETCH_MS);
    }

    /** When it fetched last. */
    public Followers lastFetchMs(int row, long value) {
        setLong(row, LAST_FETCH_MS, value);
        return this;
    }

    /** Where the leader's log ended then; -1 until it fetches. */
    public long leaderEndAtFetch(int row) {
        return longAt(row, LEADER_END_AT_FETCH);
    }

    /** Where the leader's log ended then; -1 until it fetches. */
    public Followers leaderEndAtFetch(int row, long value) {
        setLong(row, LEADER_END_AT_FETCH, value);
        return this;
    }

    /** The broker epoch of its last fetch; -1: it said none, Long.MIN_VALUE: no fetch yet. */
    public long brokerEpoch(int row) {
        return longAt(row, BROKER_EPOCH);
    }

    /** The broker epoch of its last fetch; -1: it said none, Long.MIN_VALUE: no fetch yet. */
    public Followers brokerEpoch(int row, long value) {
        setLong(row, BROKER_EPOCH, value);
        return this;
    }

    /** The epoch that its broker is registered with; -1: it is not. */
    public long registeredEpoch(int row) {
        return longAt(row, REGISTERED_EPOCH);
    }

    /** The epoch that its broker is registered with; -1: it is not. */
    public Followers registeredEpoch(int row, long value) {
        setLong(row, REGISTERED_EPOCH, value);
        return this;
    }

    /** The number of the replica. */
    public int replica(int row) {
        return intAt(row, REPLICA);
    }

    /** Whether its broker is fenced. */
    public boolean isFenced(int row) {
        return (intAt(row, FLAGS) & 1) != 0;
    }

    /** Whether its broker is fenced. */
    public Followers isFenced(int row, boolean is) {
        setBit(row, FLAGS, 1, is);
        return this;
    }

    /** Whether its broker is shutting down. */
    public boolean isShuttingDown(int row) {
        return (intAt(row, FLAGS) & 2) != 0;
    }

    /** Whether its broker is shutting down. */
    public Followers isShuttingDown(int row, boolean is) {
        setBit(row, FLAGS, 2, is);
        return this;
    }

    /** Forgets all. */
    public void clear() {
        filled(0);
    }

    /**
     * Adds a replica that has not fetched yet; its row.
     *
     * @throws SiltstoneException {@link Kind#LIMIT} when there is no room
     */
    public int add(int replica, long registeredEpoch) {
        int row = count();
        if (row == capacity()) {
            throw new SiltstoneException(Kind.LIMIT, "no room for another replica");
        }
        filled(row + 1L);
        row(row).fill((byte) 0);
        setInt(row, REPLICA, replica);
        logStartOffset(row, -1).logEndOffset(row, -1).leaderEndAtFetch(row, -1);
        brokerEpoch(row, Long.MIN_VALUE).registeredEpoch(row, registeredEpoch);
        return row;
    }

    /**
     * Takes note of a follower's fetch.
     *
     * @throws SiltstoneException {@link Kind#CONFLICT} for one of an earlier life of its broker:
     *     NOT_LEADER_OR_FOLLOWER
     */
    public void record(
            int row, long offset, long logStartOffset, long brokerEpoch,
            long leaderLogEndOffset, long nowMs) {
        MemorySegment follower = row(row);
        Scratch.call(scratch -> (int) ReplicaNative.PROGRESS_RECORD.invokeExact(follower, offset,
                logStartOffset, brokerEpoch, leaderLogEndOffset, nowMs, scratch.error));
    }
}
