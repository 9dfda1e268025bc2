package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;

/**
 * One walk over the bytes of a segment that makes all that is derived from them: the three indexes
 * as their files have them, and the producers behind the segment. The tables are made once and
 * filled by each walk. One thread at a time should use it.
 */
public final class SegmentScan extends Walked {
    private static final long PRODUCER_COUNT = Layouts.at(EngineLayouts.SCANNED, "producer_count");
    private static final long TXN_INDEX_SIZE_BYTES =
            Layouts.at(EngineLayouts.SCANNED, "txn_index_size_bytes");
    private static final long FIRST_UNDECIDED_OFFSET =
            Layouts.at(EngineLayouts.SCANNED, "first_undecided_offset");
    private static final long FLAGS = Layouts.at(EngineLayouts.SCANNED, "flags");
    private static final int SHORT_BUFFER = Kind.SHORT_BUFFER.code();

    private final MemorySegment request = Arena.ofAuto().allocate(EngineLayouts.SCAN);
    private final MemorySegment result = memory();
    private final Room offsetIndex;
    private final Room timeIndex;
    private final Room txnIndex;
    private final Producers producers;
    /** Keeps the memory that the request points to. */
    private Producers before = new Producers(0);

    /** Room for indexes of so many bytes and for so many producers; 0 for what is not wanted. */
    public SegmentScan(
            long offsetIndexSizeBytes, long timeIndexSizeBytes, long txnIndexSizeBytes,
            int producerCapacity) {
        super(EngineLayouts.SCANNED, Arena.ofAuto());
        request.set(JAVA_INT, 0, Math.toIntExact(request.byteSize()));
        offsetIndex = new Room(offsetIndexSizeBytes);
        timeIndex = new Room(timeIndexSizeBytes);
        txnIndex = new Room(txnIndexSizeBytes);
        producers = new Producers(producerCapacity);
        table("offset_index", offsetIndex);
        table("time_index", timeIndex);
        table("txn_index", txnIndex);
        request.set(ADDRESS, at("producers"), producers.memory());
        request.set(JAVA_INT, at("producers_capacity"), producerCapacity);
    }

    private static long at(String field) {
        return Layouts.at(EngineLayouts.SCAN, field);
    }

    private void table(String field, Room room) {
        request.set(ADDRESS, at(field), room.memory());
        request.set(JAVA_LONG, at(field + "_capacity"), room.sizeBytes());
    }

    /** An entry behind every so many bytes of log; 0 for Kafka's default. */
    public synchronized SegmentScan intervalBytes(int bytes) {
        request.set(JAVA_INT, at("index_interval_bytes"), bytes);
        return this;
    }

    /** The size of an index at most; 0 for Kafka's default. */
    public synchronized SegmentScan indexSizeBytesMax(int bytes) {
        request.set(JAVA_INT, at("index_size_bytes_max"), bytes);
        return this;
    }

    /** What is known of producers in front of the segment; they are read by each walk. */
    public synchronized SegmentScan producersBefore(Producers known) {
        request.set(ADDRESS, at("producers_before"), known.memory());
        before = known;
        return this;
    }

    /**
     * Walks over a segment, from its first byte. A tail that is torn or damaged ends the walk and
     * is no error. False when a table is too small: the sizes are those that it takes.
     */
    public synchronized boolean run(MemorySegment log, long baseOffset) {
        MemorySegment input = Memory.input(log);
        request.set(JAVA_LONG, at("base_offset"), baseOffset);
        request.set(JAVA_INT, at("producers_before_count"), before.count());
        producers.filled(0);
        try {
            int status = Scratch.call(scratch -> (int) StateNative.SEGMENT_SCAN.invokeExact(
                    input, input.byteSize(), request, result, scratch.error), SHORT_BUFFER);
            producers.filled(Integer.toUnsignedLong(producerCount()));
            return status == 0;
        } finally {
            // The request has bare addresses of memory that only this object keeps.
            Reference.reachabilityFence(this);
        }
    }

    /** The bytes of the offset index, as far as they fitted; the next walk overwrites them. */
    public MemorySegment offsetIndex() {
        return offsetIndex.first(offsetIndexSizeBytes());
    }

    /** The bytes of the time index. */
    public MemorySegment timeIndex() {
        return timeIndex.first(timeIndexSizeBytes());
    }

    /** The bytes of the transaction index. */
    public MemorySegment txnIndex() {
        return txnIndex.first(txnIndexSizeBytes());
    }

    /** The producers behind the segment; the next walk overwrites them. */
    public Producers producers() {
        return producers;
    }

    /** How many producers are known behind the segment. */
    public int producerCount() {
        return intAt(PRODUCER_COUNT);
    }

    /** The size of the transaction index. */
    public long txnIndexSizeBytes() {
        return longAt(TXN_INDEX_SIZE_BYTES);
    }

    /** The first offset of the oldest open transaction; -1 for none. */
    public long firstUndecidedOffset() {
        return longAt(FIRST_UNDECIDED_OFFSET);
    }

    /** Whether the walk ended at a batch of message format 0 or 1, which is the host's to read. */
    public boolean endsAtOldFormat() {
        return (intAt(FLAGS) & 1) != 0;
    }

    /** Whether it ended at a batch whose offsets are not within 2^31 of the base. */
    public boolean endsAtFarOffset() {
        return (intAt(FLAGS) & 2) != 0;
    }

    /** Whether it ended at a batch that its producer may not have written. */
    public boolean endsAtWrongProducer() {
        return (intAt(FLAGS) & 4) != 0;
    }
}
