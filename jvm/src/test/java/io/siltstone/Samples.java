package io.siltstone;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** What tests append. */
public final class Samples {
    private static final ValueLayout.OfLong I64 =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfInt I32 =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfShort I16 =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

    private static final short TRANSACTIONAL = 0x10;
    /** The size of the batch that ends a transaction. */
    static final int MARKER_SIZE = 78;
    /** The size of a value. */
    static final int VALUE_SIZE = 40;
    /** The size of a batch. */
    static final int SIZE = 61 + 7 + VALUE_SIZE;

    private Samples() {}

    /** A batch of one record; a producer id of -1 is none. */
    public static MemorySegment batch(
            long offset, long timestampMs, long producerId, int sequence) {
        MemorySegment batch = Arena.ofAuto().allocate(SIZE);
        batch.fill((byte) 'v');
        batch.set(I64, 0, offset);
        batch.set(I32, 8, SIZE - 12);
        batch.set(I32, 12, 0);
        batch.set(ValueLayout.JAVA_BYTE, 16, (byte) 2);
        batch.set(I16, 21, (short) 0);
        batch.set(I32, 23, 0);
        batch.set(I64, 27, timestampMs);
        batch.set(I64, 35, timestampMs);
        batch.set(I64, 43, producerId);
        batch.set(I16, 51, (short) (producerId < 0 ? -1 : 0));
        batch.set(I32, 53, producerId < 0 ? -1 : sequence);
        batch.set(I32, 57, 1);
        byte[] head = {2 * (6 + VALUE_SIZE), 0, 0, 0, 1, 2 * VALUE_SIZE};
        batch.asSlice(61, head.length).copyFrom(MemorySegment.ofArray(head));
        batch.set(ValueLayout.JAVA_BYTE, SIZE - 1, (byte) 0);
        seal(batch);
        return batch;
    }

    /** A batch of this size in all, of 1 to 8 KiB: one record, of no producer. */
    public static MemorySegment whole(long offset, int size) {
        MemorySegment batch = large(offset, -1, 0, size);
        int recordSize = size - 61 - 2;
        int valueSize = recordSize - 4 - 2 - 1;
        byte[] head = {low(recordSize), high(recordSize), 0, 0, 0, 1, low(valueSize),
                high(valueSize)};
        batch.asSlice(61, head.length).copyFrom(MemorySegment.ofArray(head));
        batch.set(ValueLayout.JAVA_BYTE, size - 1, (byte) 0);
        seal(batch);
        return batch;
    }

    /** The first byte of two of a number that may be below 0. */
    private static byte low(int number) {
        return (byte) (2 * number & 0x7f | 0x80);
    }

    private static byte high(int number) {
        return (byte) (2 * number >> 7);
    }

    /** A batch of this size in all: one record, of a producer with a sequence number each. */
    public static MemorySegment large(long offset, long producerId, int sequence, int size) {
        MemorySegment batch = Arena.ofAuto().allocate(size);
        batch.fill((byte) 'v');
        batch.copyFrom(batch(offset, 1000 + offset, producerId, sequence).asSlice(0, 61));
        batch.set(I32, 8, size - 12);
        seal(batch);
        return batch;
    }

    /** The same as part of the producer's transaction. */
    static MemorySegment inTransaction(long producerId, int sequence) {
        MemorySegment batch = batch(0, 1000, producerId, sequence);
        batch.set(I16, 21, TRANSACTIONAL);
        seal(batch);
        return batch;
    }

    /** What ends a producer's transaction without it. */
    static MemorySegment abortMarker(long producerId) {
        MemorySegment marker = Arena.ofAuto().allocate(MARKER_SIZE);
        Bytes.writeEndMarker(true, producerId, 0, 0, 1000, 0, -1, marker);
        return marker;
    }

    private static void seal(MemorySegment batch) {
        batch.set(I32, 17, Bytes.crc32c(0, batch.asSlice(21)));
    }

    /** Appends so many batches of a record, a millisecond each, from 1000 on. */
    static void fill(Log log, int count) {
        Appended appended = new Appended();
        for (int at = 0; at < count; at++) {
            log.appendLeader(batch(0, 1000 + at, -1, 0), 3, 2000, Origin.CLIENT, 0, appended);
        }
    }

    static Offsets offsets(Log log) {
        Offsets offsets = new Offsets();
        log.offsets(offsets);
        return offsets;
    }
}
