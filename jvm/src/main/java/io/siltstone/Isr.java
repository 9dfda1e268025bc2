package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A partition as its leader knows it: who is in sync, and who is to be. One thread at a time should
 * use it.
 */
public final class Isr extends Struct {
    private static final long CHANGE = Layouts.at(ReplicaLayouts.ISR, "change");
    private static final long PARTITION_EPOCH = Layouts.at(ReplicaLayouts.ISR, "partition_epoch");
    private static final long MIN_INSYNC_REPLICAS =
            Layouts.at(ReplicaLayouts.ISR, "min_insync_replicas");
    private static final long REPLICA_COUNT = Layouts.at(ReplicaLayouts.ISR, "replica_count");
    private static final long LOG_END_OFFSET = Layouts.at(ReplicaLayouts.ISR, "log_end_offset");
    private static final long HIGH_WATERMARK = Layouts.at(ReplicaLayouts.ISR, "high_watermark");
    private static final long LEADER_EPOCH_START_OFFSET =
            Layouts.at(ReplicaLayouts.ISR, "leader_epoch_start_offset");
    private static final long NOW_MS = Layouts.at(ReplicaLayouts.ISR, "now_ms");
    private static final long LAG_MAX_MS = Layouts.at(ReplicaLayouts.ISR, "lag_max_ms");

    private final IntLists lists;
    private final MemorySegment memory = memory();
    private final MemorySegment verdicts;

    /** Nothing yet, with room for so many replicas in each list. */
    public Isr(int capacity) {
        super(ReplicaLayouts.ISR, IntLists.room(ReplicaLayouts.ISR, capacity, 2));
        lists = new IntLists(ReplicaLayouts.ISR, memory(), capacity,
                "committed", "committed_count", "changed", "changed_count");
        verdicts = Arena.ofAuto().allocate(Math.max(capacity, 1));
    }

    /** Who is in sync, by the controller. */
    public Isr setCommitted(int... replicas) {
        lists.put(0, replicas);
        return this;
    }

    /** Who is in sync, by the controller. */
    public int[] committed() {
        return lists.get(0);
    }

    /** Who is added or removed by the change. */
    public Isr setChanged(int... replicas) {
        lists.put(1, replicas);
        return this;
    }

    /** Who is added or removed by the change. */
    public int[] changed() {
        return lists.get(1);
    }

    /** What was sent to the controller and not answered: {@code ISR_} of {@link Codes}. */
    public int change() {
        return intAt(CHANGE);
    }

    /** What was sent to the controller and not answered: {@code ISR_} of {@link Codes}. */
    public Isr change(int value) {
        setInt(CHANGE, value);
        return this;
    }

    /** The epoch of the partition. */
    public int partitionEpoch() {
        return intAt(PARTITION_EPOCH);
    }

    /** The epoch of the partition. */
    public Isr partitionEpoch(int value) {
        setInt(PARTITION_EPOCH, value);
        return this;
    }

    /** The topic's min.insync.replicas. */
    public int minInsyncReplicas() {
        return intAt(MIN_INSYNC_REPLICAS);
    }

    /** The topic's min.insync.replicas. */
    public Isr minInsyncReplicas(int value) {
        setInt(MIN_INSYNC_REPLICAS, value);
        return this;
    }

    /** How many replicas are assigned, the leader among them. */
    public int replicaCount() {
        return intAt(REPLICA_COUNT);
    }

    /** How many replicas are assigned, the leader among them. */
    public Isr replicaCount(int value) {
        setInt(REPLICA_COUNT, value);
        return this;
    }

    /** Where the leader's log ends. */
    public long logEndOffset() {
        return longAt(LOG_END_OFFSET);
    }

    /** Where the leader's log ends. */
    public Isr logEndOffset(long value) {
        setLong(LOG_END_OFFSET, value);
        return this;
    }

    /** The high watermark. */
    public long highWatermark() {
        return longAt(HIGH_WATERMARK);
    }

    /** The high watermark. */
    public Isr highWatermark(long value) {
        setLong(HIGH_WATERMARK, value);
        return this;
    }

    /** Where the leader's epoch began. */
    public long leaderEpochStartOffset() {
        return longAt(LEADER_EPOCH_START_OFFSET);
    }

    /** Where the leader's epoch began. */
    public Isr leaderEpochStartOffset(long value) {
        setLong(LEADER_EPOCH_START_OFFSET, value);
        return this;
    }

    /** The time. */
    public long nowMs() {
        return longAt(NOW_MS);
    }

    /** The time. */
    public Isr nowMs(long value) {
        setLong(NOW_MS, value);
        return this;
    }

    /** The broker's replica.lag.time.max.ms. */
    public long lagMaxMs() {
        return longAt(LAG_MAX_MS);
    }

    /** The broker's replica.lag.time.max.ms. */
    public Isr lagMaxMs(long value) {
        setLong(LAG_MAX_MS, value);
        return this;
    }

    /**
     * Whether more is committed.
     *
     * @param followers all replicas but the leader
     */
    public void watermark(Followers followers, Watermark out) {
        MemorySegment rows = followers.memory();
        MemorySegment result = out.memory();
        int count = followers.count();
        Scratch.call(scratch -> (int) ReplicaNative.ISR_WATERMARK.invokeExact(
                memory, rows, count, result, scratch.error));
    }

    /**
     * Says who may join the replicas in sync and who must leave: see {@link #verdict}.
     *
     * @throws SiltstoneException {@link Kind#LIMIT} for more followers than there is room for
     */
    public void verdicts(Followers followers) {
        MemorySegment rows = followers.memory();
        int count = followers.count();
        if (count > verdicts.byteSize()) {
            throw new SiltstoneException(Kind.LIMIT, "no room for so many followers");
        }
        Scratch.call(scratch -> (int) ReplicaNative.ISR_VERDICTS.invokeExact(
                memory, rows, count, verdicts, scratch.error));
    }

    /** What becomes of the follower in a row: {@code FOLLOWER_} of {@link Codes}. */
    public int verdict(int row) {
        return verdicts.get(JAVA_BYTE, row);
    }

    /**
     * What the controller's answer to the change means: {@code ALTER_} of {@link Codes}. The answer
     * to a request of another partition epoch than this one's is to be dropped.
     *
     * @param errorCode of AlterPartition, or 0 and the epochs of the answer
     */
    public int answered(
            int leaderEpoch, int errorCode, int answeredLeaderEpoch,
            int answeredPartitionEpoch) {
        int[] outcome = new int[1];
        Scratch.call(scratch -> {
            int status = (int) ReplicaNative.ISR_ANSWERED.invokeExact(memory, leaderEpoch,
                    errorCode, answeredLeaderEpoch, answeredPartitionEpoch, scratch.first,
                    scratch.error);
            outcome[0] = scratch.firstInt();
            return status;
        });
        return outcome[0];
    }

    /**
     * What a producer with these acks is told when its last record lies before an offset:
     * {@code ACKS_} of {@link Codes}.
     *
     * @param requiredOffset Long.MIN_VALUE asks whether it may append at all
     */
    public int acks(short acks, long requiredOffset) {
        int[] verdict = new int[1];
        Scratch.call(scratch -> {
            int status = (int) ReplicaNative.ISR_ACKS.invokeExact(
                    memory, acks, requiredOffset, scratch.first, scratch.error);
            verdict[0] = scratch.firstInt();
            return status;
        });
        return verdict[0];
    }
}
