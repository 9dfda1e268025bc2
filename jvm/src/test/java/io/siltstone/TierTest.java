package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.siltstone.TierColumns.Column;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What is to be uploaded, and where a remote segment is read. */
class TierTest {
    private static final ValueLayout.OfLong BIG_LONG =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfInt BIG_INT =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final long NOW_MS = 5000;

    /** Two logs: of four segments, and of one that is written to. */
    private final TierColumns columns = new TierColumns(2, 5);

    @BeforeEach
    void fill() {
        put(Column.BASE_OFFSET, 0, 10, 20, 30, 5);
        put(Column.SEGMENT_END, 4, 5);
    }

    private void put(Column column, long... values) {
        MemorySegment memory = columns.of(column);
        for (int at = 0; at < values.length; at++) {
            memory.setAtIndex(JAVA_LONG, at, values[at]);
        }
    }

    private byte[] bytes(Column column) {
        return columns.of(column).toArray(JAVA_BYTE);
    }

    private long[] longs(Column column) {
        return columns.of(column).toArray(JAVA_LONG);
    }

    private static void refused(Executable call) {
        var failure = assertThrows(SiltstoneException.class, call);
        assertEquals(Kind.INVALID_ARGUMENT, failure.kind());
    }

    @Test
    void columnsSayWhatIsToBeUploaded() {
        put(Column.START_BYTES, 0, 100, 200, 300, 400);
        put(Column.MAX_TIMESTAMP_MS, 1000, 2000, Long.MIN_VALUE, -1, -1);
        put(Column.ACTIVE_SIZE_BYTES, 50, 60);
        for (Column answer : Column.values()) {
            if (answer.ordinal() >= Column.ELIGIBLE.ordinal()) {
                columns.of(answer);
            }
        }
        columns.decide(2, 5, 0, NOW_MS);
        assertArrayEquals(new byte[] {1, 1, 1, 0, 0}, bytes(Column.ELIGIBLE));
        byte active = (byte) Codes.WAITS_ACTIVE;
        assertArrayEquals(new byte[] {0, 0, 0, active, active}, bytes(Column.REASON));
        assertArrayEquals(new byte[] {active, active}, bytes(Column.STOP));
        assertArrayEquals(new long[] {0, 4}, longs(Column.FIRST_SEGMENT));
        assertArrayEquals(new long[] {3, 0}, longs(Column.ELIGIBLE_COUNT));
        assertArrayEquals(new long[] {300, 0}, longs(Column.SUM_BYTES));
        assertArrayEquals(new long[] {1000, Long.MIN_VALUE}, longs(Column.OLDEST_TIMESTAMP_MS));

        put(Column.LAST_STABLE_OFFSET, 20, 5);
        put(Column.COPIED_OFFSET, 9, -1);
        columns.decide(2, 5, 0, NOW_MS);
        assertArrayEquals(new byte[] {3, 0, 2, 1, 1}, bytes(Column.REASON));
        put(Column.COPIED_OFFSET, -1, -1);
        put(Column.LAST_STABLE_OFFSET, 30, 5);
        put(Column.LOG_START_OFFSET, 10, 0);
        put(Column.LINEAGE_START_OFFSET, 20, 0);
        columns.decide(2, 5, 0, NOW_MS);
        assertArrayEquals(new byte[] {4, 7, 9, 1, 1}, bytes(Column.REASON));
        columns.leaveOut(Column.LINEAGE_START_OFFSET);
        put(Column.DAMAGED, 2);
        columns.decide(2, 5, 1, NOW_MS);
        assertArrayEquals(new byte[] {4, 0, 8, 1, 1}, bytes(Column.REASON));
        put(Column.COPY_LAG_MS, 3500, 0);
        columns.decide(2, 5, 0, NOW_MS);
        assertArrayEquals(new byte[] {4, 5, 6, 1, 1}, bytes(Column.REASON));
        columns.leaveOut(Column.COPY_LAG_MS);
        put(Column.COPY_LAG_BYTES, 150, -1);
        columns.decide(2, 5, 0, NOW_MS);
        assertArrayEquals(new byte[] {4, 0, 5, 1, 1}, bytes(Column.REASON));
    }

    @Test
    void columnsThatWereNotAskedForDoNotCount() {
        columns.decide(2, 5, 0, NOW_MS);
        columns.decide(1, 4, 0, NOW_MS);
        columns.decide(0, 0, 0, NOW_MS);
        assertSame(columns.of(Column.ELIGIBLE), columns.of(Column.ELIGIBLE));
        assertEquals(5, columns.of(Column.ELIGIBLE).byteSize());
        assertEquals(5, columns.segmentCapacity());
        assertEquals(2, columns.partitionCapacity());
        columns.leaveOut(Column.ELIGIBLE);
        columns.decide(2, 5, 0, NOW_MS);
        assertThrows(IllegalArgumentException.class, () -> columns.leaveOut(Column.SEGMENT_END));
        assertThrows(IndexOutOfBoundsException.class, () -> columns.decide(3, 5, 0, NOW_MS));
        assertThrows(IndexOutOfBoundsException.class, () -> columns.decide(2, 6, 0, NOW_MS));
        assertThrows(IndexOutOfBoundsException.class, () -> columns.decide(2, 5, 1, NOW_MS));
        assertThrows(IndexOutOfBoundsException.class, () -> columns.decide(-1, 5, 0, NOW_MS));
        assertThrows(NullPointerException.class, () -> columns.of(null));
        refused(() -> columns.decide(2, 4, 0, NOW_MS));
        put(Column.SEGMENT_END, 5, 4);
        refused(() -> columns.decide(2, 4, 0, NOW_MS));
        assertThrows(IllegalArgumentException.class, () -> new TierColumns(-1, 0));
        assertThrows(IllegalArgumentException.class, () -> new TierColumns(0, Integer.MAX_VALUE));
    }

    @Test
    void numbersThatMakeNoSenseGiveUselessAnswersAndNothingWorse() {
        Random random = new Random(5);
        TierColumns many = new TierColumns(8, 64);
        for (int round = 0; round < 500; round++) {
            for (Column column : Column.values()) {
                MemorySegment memory = many.of(column);
                for (long at = 0; at < memory.byteSize(); at++) {
                    memory.set(JAVA_BYTE, at, (byte) random.nextInt());
                }
            }
            if (round % 2 == 0) {
                for (int log = 0; log < 8; log++) {
                    many.of(Column.SEGMENT_END).setAtIndex(JAVA_LONG, log, 8L * log + 8);
                }
                many.decide(8, 64, 0, random.nextLong());
                for (byte reason : many.of(Column.REASON).toArray(JAVA_BYTE)) {
                    assertTrue(reason >= 0 && reason <= Codes.WAITS_INCONSISTENT);
                }
            } else {
                refused(() -> many.decide(8, 64, 64, 0));
            }
        }
    }

    /** Offsets 0 to 199 in 16000 bytes, with a place at 49, 99 and 149. */
    private static DirectRead segmentOf200(int abortedCapacity) {
        Room index = new Room(100);
        for (int at = 0; at < 3; at++) {
            index.memory().set(BIG_INT, 8L * at, 49 + 50 * at);
            index.memory().set(BIG_INT, 8L * at + 4, 4000 + 4000 * at);
        }
        return new DirectRead(abortedCapacity).segment(0, 199, 16_000, index, 24);
    }

    @Test
    void aPlanSaysWhereARemoteSegmentIsRead() {
        DirectRead read = segmentOf200(0);
        assertTrue(read.plan(60, 1000, Long.MAX_VALUE));
        assertEquals(4000, read.position());
        assertEquals(12_000, read.sizeBytes());
        assertEquals(200, read.upperBoundOffset());
        assertEquals(200, read.nextOffset());
        assertEquals(0, read.abortedCount());
        assertFalse(read.hasMoreAborted());
        assertTrue(read.plan(60, 1000, 1));
        assertEquals(4000, read.sizeBytes());
        assertTrue(read.plan(60, 60, 1));
        assertEquals(0, read.sizeBytes());
        assertEquals(-1, read.nextOffset());
    }

    @Test
    void readersOfCommittedDataAreToldAbortedTransactions() {
        Room transactions = new Room(68);
        for (int at = 0; at < 2; at++) {
            MemorySegment entry = transactions.memory().asSlice(34L * at);
            entry.set(BIG_LONG, 2, 70 + at);
            entry.set(BIG_LONG, 10, 55 + 20 * at);
            entry.set(BIG_LONG, 18, 65 + 20 * at);
            entry.set(BIG_LONG, 26, 60 + 60 * at);
        }
        DirectRead small = segmentOf200(1).txnIndex(transactions, 68);
        assertFalse(small.plan(60, 99, 1));
        assertEquals(2, small.abortedCount());
        assertEquals(4000, small.sizeBytes());
        assertThrows(IndexOutOfBoundsException.class, () -> small.abortedLastOffset(1));
        DirectRead read = segmentOf200(2).txnIndex(transactions, 68);
        assertTrue(read.plan(60, 99, 1));
        assertEquals(70, read.abortedProducerId(0));
        assertEquals(55, read.abortedFirstOffset(0));
        assertEquals(85, read.abortedLastOffset(1));
        assertTrue(read.txnIndex(transactions, 34).plan(60, 99, 1));
        assertEquals(1, read.abortedCount());
        assertTrue(read.hasMoreAborted());
        assertTrue(read.txnIndex(new Room(0), 0).plan(60, 99, 1));
        assertEquals(0, read.abortedCount());
        assertTrue(read.hasMoreAborted(), "the segment has none, the next ones may");
        assertTrue(read.withoutTxnIndex().plan(60, 99, 1));
        assertEquals(0, read.abortedCount());
        assertFalse(read.hasMoreAborted());
        assertThrows(IndexOutOfBoundsException.class, () -> read.abortedFirstOffset(0));
        // Kafka takes the versions up to 255.
        transactions.memory().set(JAVA_BYTE, 0, (byte) 1);
        var failure = assertThrows(SiltstoneException.class,
                () -> read.txnIndex(transactions, 34).plan(60, 99, 1));
        assertEquals(Kind.UNSUPPORTED, failure.kind());
    }

    @Test
    void plansThatMakeNoSenseAreRefused() {
        DirectRead read = segmentOf200(0);
        for (long offset : new long[] {200, -1}) {
            var failure = assertThrows(SiltstoneException.class, () -> read.plan(offset, 9, 1));
            assertEquals(Kind.OUT_OF_RANGE, failure.kind());
        }
        Room none = new Room(0);
        assertTrue(read.segment(0, 199, 16_000, none, 0).plan(0, 1000, Long.MAX_VALUE));
        assertEquals(16_000, read.sizeBytes(), "without an entry it is all of the segment");
        refused(() -> read.segment(300, 199, 16_000, none, 0).plan(0, 1000, 1));
        assertThrows(IndexOutOfBoundsException.class, () -> read.segment(0, 9, 99, none, 1));
        assertThrows(NullPointerException.class, () -> read.txnIndex(null, 0));
        assertThrows(IllegalArgumentException.class, () -> new DirectRead(-1));
    }
}
