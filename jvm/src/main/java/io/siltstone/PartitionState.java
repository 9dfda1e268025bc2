package io.siltstone;

import java.lang.foreign.MemorySegment;

/**
 * A partition as the controller keeps it. Any number of threads may use it; they wait for each
 * other.
 */
public final class PartitionState extends Struct {
    private static final long LEADER = Layouts.at(ReplicaLayouts.PARTITION, "leader");
    private static final long LEADER_EPOCH = Layouts.at(ReplicaLayouts.PARTITION, "leader_epoch");
    private static final long PARTITION_EPOCH =
            Layouts.at(ReplicaLayouts.PARTITION, "partition_epoch");
    private static final long FLAGS = Layouts.at(ReplicaLayouts.PARTITION, "flags");
    private static final long CAPACITY =
            Layouts.at(ReplicaLayouts.PARTITION, "capacity");

    private final IntLists lists;
    /** Where the library writes what comes of a step. */
    private final MemorySegment next;
    private final MemorySegment memory = memory();

    /** Nothing yet, with room for so many replicas in each list. */
    public PartitionState(int capacity) {
        super(ReplicaLayouts.PARTITION, IntLists.room(ReplicaLayouts.PARTITION, capacity, 6));
        lists = new IntLists(ReplicaLayouts.PARTITION, memory(), capacity,
                "replicas", "replica_count", "isr", "isr_count", "elr", "elr_count",
                "last_known_elr", "last_known_elr_count", "adding", "adding_count", "removing",
                "removing_count");
        setInt(LEADER, -1);
        setInt(CAPACITY, capacity);
        next = lists.another();
    }

    /** The replicas, the preferred leader first. */
    public synchronized PartitionState setReplicas(int... replicas) {
        lists.put(0, replicas);
        return this;
    }

    /** The replicas, the preferred leader first. */
    public synchronized int[] replicas() {
        return lists.get(0);
    }

    /** Who is in sync. */
    public synchronized PartitionState setIsr(int... replicas) {
        lists.put(1, replicas);
        return this;
    }

    /** Who is in sync. */
    public synchronized int[] isr() {
        return lists.get(1);
    }

    /** The eligible leader replicas. */
    public synchronized PartitionState setElr(int... replicas) {
        lists.put(2, replicas);
        return this;
    }

    /** The eligible leader replicas. */
    public synchronized int[] elr() {
        return lists.get(2);
    }

    /** Who was eligible last. */
    public synchronized PartitionState setLastKnownElr(int... replicas) {
        lists.put(3, replicas);
        return this;
    }

    /** Who was eligible last. */
    public synchronized int[] lastKnownElr() {
        return lists.get(3);
    }

    /** Who is added by a reassignment. */
    public synchronized PartitionState setAdding(int... replicas) {
        lists.put(4, replicas);
        return this;
    }

    /** Who is added by a reassignment. */
    public synchronized int[] adding() {
        return lists.get(4);
    }

    /** Who is removed by one. */
    public synchronized PartitionState setRemoving(int... replicas) {
        lists.put(5, replicas);
        return this;
    }

    /** Who is removed by one. */
    public synchronized int[] removing() {
        return lists.get(5);
    }

    /** The leader; -1 for none. */
    public int leader() {
        return intAt(LEADER);
    }

    /** The leader; -1 for none. */
    public PartitionState leader(int value) {
        setInt(LEADER, value);
        return this;
    }

    /** The leader epoch. */
    public int leaderEpoch() {
        return intAt(LEADER_EPOCH);
    }

    /** The leader epoch. */
    public PartitionState leaderEpoch(int value) {
        setInt(LEADER_EPOCH, value);
        return this;
    }

    /** The epoch of the partition. */
    public int partitionEpoch() {
        return intAt(PARTITION_EPOCH);
    }

    /** The epoch of the partition. */
    public PartitionState partitionEpoch(int value) {
        setInt(PARTITION_EPOCH, value);
        return this;
    }

    /** Whether the leader recovers from an unclean election. */
    public boolean isRecovering() {
        return (intAt(FLAGS) & 1) != 0;
    }

    /** Whether the leader recovers from an unclean election. */
    public PartitionState isRecovering(boolean is) {
        setBit(FLAGS, 1, is);
        return this;
    }

    /**
     * What becomes of it (KIP-966): -1 when it has changed, 0 when it has not, and the protocol's
     * error when an election was refused.
     *
     * @throws SiltstoneException {@link Kind#INVALID_ARGUMENT} for an event that makes no sense,
     *     {@link Kind#SHORT_BUFFER} when a list has no room; nothing has changed then
     */
    public synchronized int step(PartitionEvent event) {
        MemorySegment what = event.memory();
        int[] outcome = new int[1];
        Scratch.call(scratch -> {
            int status = (int) ReplicaNative.PARTITION_STEP.invokeExact(
                    memory, what, next, scratch.first, scratch.error);
            outcome[0] = scratch.firstInt();
            return status;
        });
        lists.take(next);
        return outcome[0];
    }
}
