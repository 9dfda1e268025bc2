package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.Objects;

/**
 * The plan of a reader that goes to a segment in remote storage by itself (KIP-1248): which bytes
 * of it hold the records from an offset on. Made once for a segment, and used for many reads. One
 * thread at a time should use it.
 */
public final class DirectRead extends Struct {
    private static final long POSITION = Layouts.at(TierLayouts.DIRECT_READ, "position");
    private static final long SIZE_BYTES = Layouts.at(TierLayouts.DIRECT_READ, "size_bytes");
    private static final long UPPER_BOUND_OFFSET =
            Layouts.at(TierLayouts.DIRECT_READ, "upper_bound_offset");
    private static final long NEXT_OFFSET = Layouts.at(TierLayouts.DIRECT_READ, "next_offset");
    private static final long ABORTED_COUNT = Layouts.at(TierLayouts.DIRECT_READ, "aborted_count");
    private static final long FLAGS = Layouts.at(TierLayouts.DIRECT_READ, "flags");
    private static final long ABORTED_SIZE = Layouts.ABORTED.byteSize();
    private static final long PRODUCER_ID = Layouts.at(Layouts.ABORTED, "producer_id");
    private static final long FIRST_OFFSET = Layouts.at(Layouts.ABORTED, "first_offset");
    private static final long LAST_OFFSET = Layouts.at(Layouts.ABORTED, "last_offset");
    private static final int SHORT_BUFFER = Kind.SHORT_BUFFER.code();

    private final int abortedCapacity;
    private final MemorySegment request = Arena.ofAuto().allocate(TierLayouts.DIRECT_REQUEST);
    private final MemorySegment result = memory();
    private final MemorySegment aborted;
    /** What keeps the memory that the request points to. */
    private Room offsetIndex;
    private Room txnIndex;

    /** A plan with room for so many aborted transactions. */
    public DirectRead(int abortedCapacity) {
        super(TierLayouts.DIRECT_READ, Arena.ofAuto());
        Rows.checkCapacity(abortedCapacity);
        this.abortedCapacity = abortedCapacity;
        aborted = Arena.ofAuto().allocate(ABORTED_SIZE * abortedCapacity, Long.BYTES);
        request.set(JAVA_INT, 0, Math.toIntExact(request.byteSize()));
        request.set(JAVA_INT, at("aborted_capacity"), abortedCapacity);
        request.set(ADDRESS, at("aborted"), aborted);
    }

    private static long at(String field) {
        return Layouts.at(TierLayouts.DIRECT_REQUEST, field);
    }

    /**
     * The segment.
     *
     * @param lastOffset inclusive
     * @param logSizeBytes the size of its log
     * @param index the bytes of its offset index, the first so many of the room
     */
    public synchronized DirectRead segment(
            long firstOffset, long lastOffset, long logSizeBytes, Room index,
            long indexSizeBytes) {
        MemorySegment entries = index.part(0, indexSizeBytes);
        request.set(JAVA_LONG, at("start_offset"), firstOffset);
        request.set(JAVA_LONG, at("end_offset"), lastOffset);
        request.set(JAVA_LONG, at("log_size_bytes"), logSizeBytes);
        request.set(ADDRESS, at("offset_index"), entries);
        request.set(JAVA_LONG, at("offset_index_size_bytes"), indexSizeBytes);
        offsetIndex = index;
        return this;
    }

    /**
     * The bytes of its transaction index; without them for readers of uncommitted data. A segment
     * that has none is told to readers of committed data by {@code txnIndex(new Room(0), 0)}: the
     * next segments may still have aborted transactions of the range.
     */
    public synchronized DirectRead txnIndex(Room index, long indexSizeBytes) {
        MemorySegment entries = index.part(0, indexSizeBytes);
        request.set(ADDRESS, at("transaction_index"), entries);
        request.set(JAVA_LONG, at("transaction_index_size_bytes"), indexSizeBytes);
        txnIndex = index;
        return this;
    }

    /** Readers of uncommitted data from now on. */
    public synchronized DirectRead withoutTxnIndex() {
        request.set(ADDRESS, at("transaction_index"), MemorySegment.NULL);
        request.set(JAVA_LONG, at("transaction_index_size_bytes"), 0);
        txnIndex = null;
        return this;
    }

    /**
     * Makes the plan: whole batches, of which the first ones may end before the offset. In a
     * compacted log all may: the reader goes on at {@link #nextOffset} then. False when not all
     * aborted transactions fitted; the range is good then, too.
     *
     * @param limitOffset what is before may be seen: high watermark or last stable offset
     * @param maxBytes so many are enough
     * @throws SiltstoneException {@link Kind#OUT_OF_RANGE} for an offset that is none of the
     *     segment
     */
    public synchronized boolean plan(long offset, long limitOffset, long maxBytes) {
        request.set(JAVA_LONG, at("offset"), offset);
        request.set(JAVA_LONG, at("limit_offset"), limitOffset);
        request.set(JAVA_LONG, at("max_bytes"), maxBytes);
        try {
            return Scratch.call(scratch -> (int) TierNative.TIER_DIRECT_READ.invokeExact(
                    request, result, scratch.error), SHORT_BUFFER) == 0;
        } finally {
            // The request has bare addresses of memory that only this object keeps.
            Reference.reachabilityFence(this);
        }
    }

    /** The first byte in the segment's log. */
    public long position() {
        return longAt(POSITION);
    }

    /** How many bytes; 0: there is nothing to be seen. */
    public long sizeBytes() {
        return longAt(SIZE_BYTES);
    }

    /** An offset that no record of the range reaches; -1 without a range. */
    public long upperBoundOffset() {
        return longAt(UPPER_BOUND_OFFSET);
    }

    /** Where to go on behind the segment; -1 without a range. */
    public long nextOffset() {
        return longAt(NEXT_OFFSET);
    }

    /** How many aborted transactions there are, also beyond the capacity. */
    public int abortedCount() {
        return intAt(ABORTED_COUNT);
    }

    /** Whether the next segments may have aborted transactions of the range. */
    public boolean hasMoreAborted() {
        return (intAt(FLAGS) & 1) != 0;
    }

    /** The producer of an aborted transaction. */
    public long abortedProducerId(int row) {
        return abortedAt(row, PRODUCER_ID);
    }

    /** The first offset of an aborted transaction. */
    public long abortedFirstOffset(int row) {
        return abortedAt(row, FIRST_OFFSET);
    }

    /** The offset of the abort marker. */
    public long abortedLastOffset(int row) {
        return abortedAt(row, LAST_OFFSET);
    }

    private long abortedAt(int row, long field) {
        int count = Math.clamp(abortedCount() & 0xffff_ffffL, 0, abortedCapacity);
        return aborted.get(JAVA_LONG, Objects.checkIndex(row, count) * ABORTED_SIZE + field);
    }
}
