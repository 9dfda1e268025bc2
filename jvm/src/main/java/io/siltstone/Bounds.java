package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A log as its leader or follower knows it, and what these decide: numbers in, a decision out. The
 * host sends the requests, changes the log and keeps the state. Any number of threads may use it;
 * they wait for each other where they decide.
 */
public final class Bounds extends Struct {
    private static final long LEADER_EPOCH = Layouts.at(ReplicaLayouts.BOUNDS, "leader_epoch");
    private static final long LOG_START_OFFSET =
            Layouts.at(ReplicaLayouts.BOUNDS, "log_start_offset");
    private static final long LOCAL_LOG_START_OFFSET =
            Layouts.at(ReplicaLayouts.BOUNDS, "local_log_start_offset");
    private static final long LOG_END_OFFSET = Layouts.at(ReplicaLayouts.BOUNDS, "log_end_offset");
    private static final long HIGH_WATERMARK = Layouts.at(ReplicaLayouts.BOUNDS, "high_watermark");
    private static final long LAST_STABLE_OFFSET =
            Layouts.at(ReplicaLayouts.BOUNDS, "last_stable_offset");
    private static final long HIGHEST_REMOTE_OFFSET =
            Layouts.at(ReplicaLayouts.BOUNDS, "highest_remote_offset");
    private static final long LEADER_EPOCH_START_OFFSET =
            Layouts.at(ReplicaLayouts.BOUNDS, "leader_epoch_start_offset");
    private static final long FLAGS = Layouts.at(ReplicaLayouts.BOUNDS, "flags");
    private static final long LOG = Layouts.at(ReplicaLayouts.BOUNDS, "log");
    private static final long EPOCHS = Layouts.at(ReplicaLayouts.BOUNDS, "epochs");
    private static final long EPOCH_COUNT = Layouts.at(ReplicaLayouts.BOUNDS, "epoch_count");
    private static final long START_OFFSET = Layouts.at(Layouts.EPOCH, "start_offset");
    private static final long EPOCH = Layouts.at(Layouts.EPOCH, "epoch");

    private final int epochCapacity;
    private final MemorySegment memory = memory();
    private final MemorySegment epochs;
    private Log log;

    /** Nothing yet, with room for so many leader epochs. */
    public Bounds(int epochCapacity) {
        super(ReplicaLayouts.BOUNDS, Arena.ofAuto());
        Rows.checkCapacity(epochCapacity);
        this.epochCapacity = epochCapacity;
        epochs = Arena.ofAuto().allocate(Layouts.EPOCH, epochCapacity);
        memory.set(ADDRESS, EPOCHS, epochs);
        setLong(HIGHEST_REMOTE_OFFSET, -1);
    }

    /**
     * The log itself: its epochs, its six offsets and whether it has remote storage are asked for
     * at each decision, and what stands here of them does not count. Null for none.
     */
    public synchronized Bounds log(Log log) {
        this.log = log;
        return this;
    }

    /** Forgets the leader epochs. */
    public synchronized Bounds clearEpochs() {
        setInt(EPOCH_COUNT, 0);
        return this;
    }

    /**
     * Adds a leader epoch; they rise.
     *
     * @throws SiltstoneException {@link Kind#LIMIT} when there is no room
     */
    public synchronized Bounds addEpoch(int epoch, long startOffset) {
        int count = intAt(EPOCH_COUNT);
        if (count == epochCapacity) {
            throw new SiltstoneException(Kind.LIMIT, "no room for another leader epoch");
        }
        long at = count * Layouts.EPOCH.byteSize();
        epochs.set(JAVA_INT, at + EPOCH, epoch);
        epochs.set(JAVA_LONG, at + START_OFFSET, startOffset);
        setInt(EPOCH_COUNT, count + 1);
        return this;
    }

    /**
     * What a follower does about an event (KIP-405, KIP-1023). Any numbers give an action.
     *
     * @param state what the action before had; null when there is none
     */
    public void followerStep(FetchState state, FollowerEvent event, FollowerAction out) {
        MemorySegment before = state == null ? MemorySegment.NULL : state.memory();
        MemorySegment what = event.memory();
        MemorySegment result = out.memory();
        decide(scratch -> (int) ReplicaNative.FOLLOWER_STEP.invokeExact(
                memory, before, what, result, scratch.error));
    }

    /** What a leader answers to a fetch; epochs that the request does not say are -1. */
    public void leaderFetch(
            boolean isFollower, long fetchOffset, int leaderEpoch, int lastFetchedEpoch,
            FetchVerdict out) {
        byte who = (byte) (isFollower ? 1 : 0);
        MemorySegment result = out.memory();
        decide(scratch -> (int) ReplicaNative.LEADER_FETCH.invokeExact(memory, who, fetchOffset,
                leaderEpoch, lastFetchedEpoch, result, scratch.error));
    }

    /**
     * What a leader answers to ListOffsets, for a timestamp or a special one (-1 to -6); an offset
     * of -1 says that there is none. 0, or an error of the protocol.
     *
     * @param version of the request
     * @param found what log and remote storage have for a timestamp from 0 on, and for the largest
     *     one (-3); null for nothing
     */
    public int leaderOffset(
            long timestamp, short version, UpTo upTo, TimeOffset found, TimeOffset out) {
        int limit = upTo.ordinal();
        MemorySegment known = found == null ? MemorySegment.NULL : found.memory();
        MemorySegment result = out.memory();
        int[] code = new int[1];
        decide(scratch -> {
            int status = (int) ReplicaNative.LEADER_OFFSET.invokeExact(memory, timestamp, version,
                    limit, known, result, scratch.first, scratch.error);
            code[0] = scratch.firstInt();
            return status;
        });
        return code[0];
    }

    /** Decides with the log as one of its users. */
    private synchronized void decide(Scratch.Body body) {
        if (log == null) {
            Scratch.call(body);
            return;
        }
        Handle named = log.handle();
        memory.set(JAVA_LONG, LOG, named.enter());
        try {
            Scratch.call(body);
        } finally {
            memory.set(JAVA_LONG, LOG, 0);
            named.leave();
        }
    }

    /** Of a leader: its own epoch. */
    public int leaderEpoch() {
        return intAt(LEADER_EPOCH);
    }

    /** Of a leader: its own epoch. */
    public Bounds leaderEpoch(int value) {
        setInt(LEADER_EPOCH, value);
        return this;
    }

    /** Where the log starts. */
    public long logStartOffset() {
        return longAt(LOG_START_OFFSET);
    }

    /** Where the log starts. */
    public Bounds logStartOffset(long value) {
        setLong(LOG_START_OFFSET, value);
        return this;
    }

    /** Where it starts on this disk. */
    public long localLogStartOffset() {
        return longAt(LOCAL_LOG_START_OFFSET);
    }

    /** Where it starts on this disk. */
    public Bounds localLogStartOffset(long value) {
        setLong(LOCAL_LOG_START_OFFSET, value);
        return this;
    }

    /** Where it ends. */
    public long logEndOffset() {
        return longAt(LOG_END_OFFSET);
    }

    /** Where it ends. */
    public Bounds logEndOffset(long value) {
        setLong(LOG_END_OFFSET, value);
        return this;
    }

    /** The high watermark. */
    public long highWatermark() {
        return longAt(HIGH_WATERMARK);
    }

    /** The high watermark. */
    public Bounds highWatermark(long value) {
        setLong(HIGH_WATERMARK, value);
        return this;
    }

    /** The last stable offset. */
    public long lastStableOffset() {
        return longAt(LAST_STABLE_OFFSET);
    }

    /** The last stable offset. */
    public Bounds lastStableOffset(long value) {
        setLong(LAST_STABLE_OFFSET, value);
        return this;
    }

    /** The last offset that is uploaded; -1 for none. */
    public long highestRemoteOffset() {
        return longAt(HIGHEST_REMOTE_OFFSET);
    }

    /** The last offset that is uploaded; -1 for none. */
    public Bounds highestRemoteOffset(long value) {
        setLong(HIGHEST_REMOTE_OFFSET, value);
        return this;
    }

    /** Of a leader: where its epoch began. */
    public long leaderEpochStartOffset() {
        return longAt(LEADER_EPOCH_START_OFFSET);
    }

    /** Of a leader: where its epoch began. */
    public Bounds leaderEpochStartOffset(long value) {
        setLong(LEADER_EPOCH_START_OFFSET, value);
        return this;
    }

    /** Whether the topic has remote storage. */
    public boolean hasRemoteStorage() {
        return (intAt(FLAGS) & 1) != 0;
    }

    /** Whether the topic has remote storage. */
    public Bounds hasRemoteStorage(boolean is) {
        setBit(FLAGS, 1, is);
        return this;
    }

    /** Whether the topic is compacted. */
    public boolean isCompacted() {
        return (intAt(FLAGS) & 2) != 0;
    }

    /** Whether the topic is compacted. */
    public Bounds isCompacted(boolean is) {
        setBit(FLAGS, 2, is);
        return this;
    }

    /** The broker's follower.fetch.last.tiered.offset.enable. */
    public boolean startsAtTiered() {
        return (intAt(FLAGS) & 4) != 0;
    }

    /** The broker's follower.fetch.last.tiered.offset.enable. */
    public Bounds startsAtTiered(boolean is) {
        setBit(FLAGS, 4, is);
        return this;
    }
}
