package io.siltstone;

import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;

/**
 * Many fetches in native memory, of one log or of many: written once, changed where they change,
 * looked up by one call, with no object for any of them. What a fetch gives is a range of bytes in
 * an open file, to be sent by {@code sendfile}; the file stays open until its lease is released,
 * which the next look-up does unless the lease was moved to {@link Leases}.
 *
 * <p>Any number of threads may use it; they wait for each other. Slots count from 0.
 */
public final class Fetches implements AutoCloseable {
    private final FetchSlots slots;
    private final Cleaner.Cleanable cleanable;

    /** Slots that take no aborted transactions. */
    public Fetches(int capacity) {
        this(capacity, 0);
    }

    /** Slots with room for so many aborted transactions each. */
    public Fetches(int capacity, int abortedCapacity) {
        slots = new FetchSlots(capacity, abortedCapacity);
        cleanable = Handle.watch(this, slots::end);
    }

    /** How many slots. */
    public int capacity() {
        return slots.capacity();
    }

    /** How many aborted transactions fit in each slot. */
    public int abortedCapacity() {
        return slots.abortedCapacity();
    }

    /**
     * Writes a slot.
     *
     * @param maxBytes as an unsigned number
     * @param minOne whether a first batch larger than that is given whole
     */
    public void set(int slot, Log log, long offset, int maxBytes, UpTo upTo, boolean minOne) {
        slots.set(slot, log, offset, maxBytes, upTo.ordinal(), minOne ? 1 : 0);
    }

    /** Changes the offset of a slot. */
    public void setOffset(int slot, long offset) {
        slots.setOffset(slot, offset);
    }

    /** Empties a slot, so that it no longer keeps its log from being given back. */
    public void clear(int slot) {
        slots.clear(slot);
    }

    /**
     * Looks up the first slots, and releases the leases of the look-up before. Each has its own
     * status then; that of a slot whose log is closed is the one of {@link Kind#CLOSED}.
     */
    public void locate(int count) {
        slots.locate(count);
    }

    /**
     * The same, but all ranges together have at most {@code maxBytes}: what one slot gets is not
     * left for those behind it. Only the first that gets any may exceed that, where it must be
     * given a batch whole.
     */
    public void locateWithin(int count, long maxBytes) {
        slots.locateWithin(count, maxBytes);
    }

    /**
     * Copies what a slot's fetch gives into {@code bytes}, and tells how many that were. The range
     * of the slot has no file and no lease then.
     *
     * @throws SiltstoneException {@link Kind#SHORT_BUFFER} when the first batch must be given whole
     *     and does not fit
     */
    public long read(int slot, MemorySegment bytes) {
        return slots.read(slot, Memory.output(bytes));
    }

    /** Releases the leases that were not moved. */
    public void release() {
        slots.release();
    }

    /** Moves the lease of a slot, if it has one. */
    public void moveLease(int slot, Leases leases) {
        slots.moveLease(slot, leases);
    }

    /** Releases the leases and lets go of the logs. */
    @Override
    public void close() {
        cleanable.clean();
    }

    /**
     * 0, or the code of a {@link Kind}. {@link Kind#SHORT_BUFFER} is a good range, but not all of
     * its aborted transactions fitted.
     */
    public int status(int slot) {
        return slots.status(slot);
    }

    /** The file; -1 when there is nothing to be seen. */
    public int fd(int slot) {
        return slots.rangeInt(slot, FetchSlots.FD);
    }

    /** Whether the first batch is larger than the limit and not whole. */
    public boolean isFirstIncomplete(int slot) {
        return (slots.rangeInt(slot, FetchSlots.FLAGS) & 1) != 0;
    }

    /** The first byte in the file. */
    public long position(int slot) {
        return slots.rangeLong(slot, FetchSlots.POSITION);
    }

    /** How many bytes; 0 when there is nothing to be seen. */
    public long sizeBytes(int slot) {
        return slots.rangeLong(slot, FetchSlots.SIZE_BYTES);
    }

    /** The first offset of the first batch, which may begin below the offset asked for. */
    public long baseOffset(int slot) {
        return slots.rangeLong(slot, FetchSlots.BASE_OFFSET);
    }

    /** The base offset of its segment. */
    public long segmentBaseOffset(int slot) {
        return slots.rangeLong(slot, FetchSlots.SEGMENT_BASE_OFFSET);
    }

    /**
     * Whether the log was not cut since the look-up, so that these bytes are still those: to be
     * asked after they were read, and before the lease is released or moved.
     */
    public boolean isIntact(int slot) {
        return slots.isIntact(slot);
    }

    /** How many aborted transactions there are, also beyond the capacity. */
    public int abortedCount(int slot) {
        return slots.rangeInt(slot, FetchSlots.ABORTED_COUNT);
    }

    /** The producer of an aborted transaction. */
    public long abortedProducerId(int slot, int at) {
        return slots.aborted(slot, at, FetchSlots.PRODUCER_ID);
    }

    /** The first offset of an aborted transaction. */
    public long abortedFirstOffset(int slot, int at) {
        return slots.aborted(slot, at, FetchSlots.FIRST_OFFSET);
    }

    /** The offset of the abort marker. */
    public long abortedLastOffset(int slot, int at) {
        return slots.aborted(slot, at, FetchSlots.LAST_OFFSET);
    }
}
