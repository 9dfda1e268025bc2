package io.siltstone;

import java.lang.foreign.Arena;

/** What is known of producers: of a log, in a snapshot, or in front of a segment. */
public final class Producers extends Rows {
    private static final long PRODUCER_ID = Layouts.at(EngineLayouts.PRODUCER, "producer_id");
    private static final long PRODUCER_EPOCH = Layouts.at(EngineLayouts.PRODUCER, "producer_epoch");
    private static final long LAST_SEQUENCE = Layouts.at(EngineLayouts.PRODUCER, "last_sequence");
    private static final long LAST_OFFSET = Layouts.at(EngineLayouts.PRODUCER, "last_offset");
    private static final long OFFSET_DELTA = Layouts.at(EngineLayouts.PRODUCER, "offset_delta");
    private static final long LAST_TIMESTAMP_MS =
            Layouts.at(EngineLayouts.PRODUCER, "last_timestamp_ms");
    private static final long COORDINATOR_EPOCH =
            Layouts.at(EngineLayouts.PRODUCER, "coordinator_epoch");
    private static final long TXN_FIRST_OFFSET =
            Layouts.at(EngineLayouts.PRODUCER, "txn_first_offset");

    /** Room for so many, in memory that the garbage collector frees. */
    public Producers(int capacity) {
        super(EngineLayouts.PRODUCER, Arena.ofAuto(), capacity);
    }

    /** The producer. */
    public long producerId(int row) {
        return longAt(row, PRODUCER_ID);
    }

    /** Its epoch. */
    public short producerEpoch(int row) {
        return shortAt(row, PRODUCER_EPOCH);
    }

    /** The last sequence number of its newest batch; -1 when none is known. */
    public int lastSequence(int row) {
        return intAt(row, LAST_SEQUENCE);
    }

    /** The last offset of its newest batch; -1 when none is known. */
    public long lastOffset(int row) {
        return longAt(row, LAST_OFFSET);
    }

    /** The last less the first offset of its newest batch. */
    public int offsetDelta(int row) {
        return intAt(row, OFFSET_DELTA);
    }

    /** The latest timestamp of its newest batch. */
    public long lastTimestampMs(int row) {
        return longAt(row, LAST_TIMESTAMP_MS);
    }

    /** The epoch of the coordinator that wrote its last marker. */
    public int coordinatorEpoch(int row) {
        return intAt(row, COORDINATOR_EPOCH);
    }

    /** The first offset of its open transaction; -1 for none. */
    public long txnFirstOffset(int row) {
        return longAt(row, TXN_FIRST_OFFSET);
    }

    /** Forgets all. */
    public void clear() {
        filled(0);
    }

    /**
     * Adds one.
     *
     * @throws SiltstoneException {@link Kind#LIMIT} when there is no room
     */
    public void add(
            long producerId, short producerEpoch, int lastSequence, long lastOffset,
            int offsetDelta, long lastTimestampMs, int coordinatorEpoch, long txnFirstOffset) {
        int row = count();
        if (row == capacity()) {
            throw new SiltstoneException(Kind.LIMIT, "no room for another producer");
        }
        filled(row + 1L);
        setLong(row, PRODUCER_ID, producerId);
        setShort(row, PRODUCER_EPOCH, producerEpoch);
        setInt(row, LAST_SEQUENCE, lastSequence);
        setLong(row, LAST_OFFSET, lastOffset);
        setInt(row, OFFSET_DELTA, offsetDelta);
        setLong(row, LAST_TIMESTAMP_MS, lastTimestampMs);
        setInt(row, COORDINATOR_EPOCH, coordinatorEpoch);
        setLong(row, TXN_FIRST_OFFSET, txnFirstOffset);
    }
}
