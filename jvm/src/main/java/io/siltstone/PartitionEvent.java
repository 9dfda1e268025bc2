package io.siltstone;

/** What has happened to a partition of the controller. */
public final class PartitionEvent extends Struct {
    private static final long KIND = Layouts.at(ReplicaLayouts.PARTITION_EVENT, "kind");
    private static final long ELECTION = Layouts.at(ReplicaLayouts.PARTITION_EVENT, "election");
    private static final long BROKER = Layouts.at(ReplicaLayouts.PARTITION_EVENT, "broker");
    private static final long MIN_INSYNC_REPLICAS =
            Layouts.at(ReplicaLayouts.PARTITION_EVENT, "min_insync_replicas");
    private static final long RECOVERING = Layouts.at(ReplicaLayouts.PARTITION_EVENT, "recovering");
    private static final long FLAGS = Layouts.at(ReplicaLayouts.PARTITION_EVENT, "flags");

    private final IntLists lists;

    /** Nothing yet, with room for so many replicas in each list. */
    public PartitionEvent(int capacity) {
        super(ReplicaLayouts.PARTITION_EVENT,
                IntLists.room(ReplicaLayouts.PARTITION_EVENT, capacity, 3));
        lists = new IntLists(ReplicaLayouts.PARTITION_EVENT, memory(), capacity,
                "target_isr", "target_isr_count", "unclean", "unclean_count", "available",
                "available_count");
        setInt(BROKER, -1);
        setInt(MIN_INSYNC_REPLICAS, 1);
        setInt(RECOVERING, -1);
    }

    /** Who is to be in sync. */
    public PartitionEvent setTargetIsr(int... replicas) {
        lists.put(0, replicas);
        return this;
    }

    /** Who is to be in sync. */
    public int[] targetIsr() {
        return lists.get(0);
    }

    /** Replicas that have lost data. */
    public PartitionEvent setUnclean(int... replicas) {
        lists.put(1, replicas);
        return this;
    }

    /** Replicas that have lost data. */
    public int[] unclean() {
        return lists.get(1);
    }

    /** Brokers that may lead. */
    public PartitionEvent setAvailable(int... replicas) {
        lists.put(2, replicas);
        return this;
    }

    /** Brokers that may lead. */
    public int[] available() {
        return lists.get(2);
    }

    /** What: {@code PARTITION_} of {@link Codes}. */
    public int kind() {
        return intAt(KIND);
    }

    /** What: {@code PARTITION_} of {@link Codes}. */
    public PartitionEvent kind(int value) {
        setInt(KIND, value);
        return this;
    }

    /** Who may be elected: {@code ELECTION_} of {@link Codes}. */
    public int election() {
        return intAt(ELECTION);
    }

    /** Who may be elected: {@code ELECTION_} of {@link Codes}. */
    public PartitionEvent election(int value) {
        setInt(ELECTION, value);
        return this;
    }

    /** The broker. */
    public int broker() {
        return intAt(BROKER);
    }

    /** The broker. */
    public PartitionEvent broker(int value) {
        setInt(BROKER, value);
        return this;
    }

    /** The topic's min.insync.replicas. */
    public int minInsyncReplicas() {
        return intAt(MIN_INSYNC_REPLICAS);
    }

    /** The topic's min.insync.replicas. */
    public PartitionEvent minInsyncReplicas(int value) {
        setInt(MIN_INSYNC_REPLICAS, value);
        return this;
    }

    /**
     * Whether the leader recovers from an unclean election, as it says: 0, 1, or -1 for nothing.
     */
    public int recovering() {
        return intAt(RECOVERING);
    }

    /**
     * Whether the leader recovers from an unclean election, as it says: 0, 1, or -1 for nothing.
     */
    public PartitionEvent recovering(int value) {
        setInt(RECOVERING, value);
        return this;
    }

    /** Whether eligible.leader.replicas.version is 0. */
    public boolean hasNoElr() {
        return (intAt(FLAGS) & 1) != 0;
    }

    /** Whether eligible.leader.replicas.version is 0. */
    public PartitionEvent hasNoElr(boolean is) {
        setBit(FLAGS, 1, is);
        return this;
    }

    /** Whether the last known leader may not lead again. */
    public boolean hasNoLastKnown() {
        return (intAt(FLAGS) & 2) != 0;
    }

    /** Whether the last known leader may not lead again. */
    public PartitionEvent hasNoLastKnown(boolean is) {
        setBit(FLAGS, 2, is);
        return this;
    }

    /** Whether the metadata version is one before 3.6. */
    public boolean bumpsOnShrink() {
        return (intAt(FLAGS) & 4) != 0;
    }

    /** Whether the metadata version is one before 3.6. */
    public PartitionEvent bumpsOnShrink(boolean is) {
        setBit(FLAGS, 4, is);
        return this;
    }

    /** Whether the target counts. */
    public boolean hasTargetIsr() {
        return (intAt(FLAGS) & 8) != 0;
    }

    /** Whether the target counts. */
    public PartitionEvent hasTargetIsr(boolean is) {
        setBit(FLAGS, 8, is);
        return this;
    }
}
