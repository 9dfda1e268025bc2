package io.siltstone;

import static io.siltstone.Samples.inTransaction;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.CRC32;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Producers of logs and snapshots, and the walk that finds all that a segment tells. */
class SegmentScanTest {
    private static final long PRODUCER = 9;

    @TempDir
    Path home;

    /** A log with two batches of a producer, the second in a transaction that stays open. */
    private Log written() {
        Log log = Log.open(home.resolve("orders-0"),
                new LogOptions().config("index.interval.bytes", "100"));
        Appended appended = new Appended();
        Samples.fill(log, 10);
        log.appendLeader(Samples.batch(0, 1500, 7, 0), 3, 2000, Origin.CLIENT, 0, appended);
        long verification = log.startVerification(PRODUCER, 0, 0, false, 2000);
        log.appendLeader(
                inTransaction(PRODUCER, 0), 3, 2000, Origin.CLIENT, 0, verification, appended);
        return log;
    }

    private MemorySegment segment() throws IOException {
        Path file = home.resolve("orders-0/00000000000000000000.log");
        try (FileChannel channel = FileChannel.open(file)) {
            return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), Arena.ofAuto());
        }
    }

    @Test
    void theProducersOfALogAreTold() {
        try (Log log = written()) {
            Producers producers = new Producers(4);
            assertEquals(2, log.producers(producers));
            int open = producers.producerId(0) == PRODUCER ? 0 : 1;
            assertEquals(PRODUCER, producers.producerId(open));
            assertEquals(11, producers.lastOffset(open));
            assertEquals(11, producers.txnFirstOffset(open));
            assertEquals(0, producers.lastSequence(open));
            assertEquals(0, producers.offsetDelta(open));
            assertEquals(0, producers.producerEpoch(open));
            assertEquals(1000, producers.lastTimestampMs(open));
            assertEquals(-1, producers.txnFirstOffset(1 - open));
            Producers few = new Producers(1);
            assertEquals(2, log.producers(few));
            assertFalse(few.isComplete());
        }
    }

    @Test
    void aWalkFindsWhatTheLogHasWritten() throws IOException {
        try (Log log = written()) {
            log.flush(2000);
            log.stop();
        }
        SegmentScan scan = new SegmentScan(1 << 12, 1 << 12, 1 << 12, 8).intervalBytes(100);
        MemorySegment bytes = segment();
        assertTrue(scan.run(bytes, 0));
        assertEquals(12, scan.batchCount());
        assertEquals(12, scan.nextOffset());
        assertEquals(bytes.byteSize(), scan.validBytes());
        assertEquals(1500, scan.maxTimestampMs());
        assertEquals(11, scan.firstUndecidedOffset());
        assertEquals(0, scan.txnIndexSizeBytes());
        assertEquals(2, scan.producerCount());
        assertEquals(2, scan.producers().count());
        assertFalse(scan.endsAtOldFormat() || scan.endsAtFarOffset() || scan.endsAtWrongProducer());
        Path dir = home.resolve("orders-0");
        String name = "00000000000000000000";
        assertEquals(-1, MemorySegment.ofArray(Files.readAllBytes(dir.resolve(name + ".index")))
                .mismatch(scan.offsetIndex()));
        assertEquals(-1, MemorySegment.ofArray(Files.readAllBytes(dir.resolve(name + ".timeindex")))
                .mismatch(scan.timeIndex()));
        // And the producers are those of the snapshot that the stop has left.
        byte[] snapshot = Files.readAllBytes(dir.resolve("00000000000000000012.snapshot"));
        MemorySegment room = Arena.ofAuto().allocate(snapshot.length);
        Producers read = new Producers(8);
        assertEquals(2, Bytes.readSnapshot(room.copyFrom(MemorySegment.ofArray(snapshot)), read));
        assertEquals(read.producerId(0), scan.producers().producerId(0));
        assertEquals(snapshot.length, Bytes.writeSnapshot(read, room));
        assertEquals(-1, MemorySegment.ofArray(snapshot).mismatch(room));
    }

    @Test
    void whatIsKnownBeforeASegmentCounts() {
        Producers before = new Producers(1);
        before.add(5, (short) 0, 3, 99, 0, 1000, -1, -1);
        var full = assertThrows(SiltstoneException.class,
                () -> before.add(6, (short) 0, 0, 0, 0, 0, 0, -1));
        assertEquals(Kind.LIMIT, full.kind());
        SegmentScan scan = new SegmentScan(0, 0, 0, 2).producersBefore(before);
        assertTrue(scan.run(Samples.batch(100, 1000, 5, 4), 100));
        assertEquals(1, scan.producerCount());
        assertEquals(4, scan.producers().lastSequence(0));
        before.clear();
        assertTrue(scan.run(Samples.batch(100, 1000, -1, 0), 100));
        assertEquals(0, scan.producerCount());
        before.add(5, (short) 0, 3, 99, 0, 1000, -1, 99);
        assertTrue(scan.run(Samples.batch(100, 1000, 5, 4), 100));
        assertTrue(scan.endsAtWrongProducer(), "the batch is none of the open transaction");
        assertEquals(0, scan.validBytes());
    }

    // Trap 11: what is not for this function is told, and the host goes on from there itself.
    @Test
    void batchesThatTheWalkDoesNotKnowAreTheHostsToRead() {
        SegmentScan scan = new SegmentScan(0, 0, 0, 0);
        assertTrue(scan.run(Samples.batch(5 + (1L << 31), 1000, -1, 0), 5));
        assertTrue(scan.endsAtFarOffset());
        assertEquals(0, scan.validBytes());
        assertTrue(scan.run(Samples.batch(4, 1000, -1, 0), 5));
        assertTrue(scan.endsAtFarOffset());

        ByteBuffer old = ByteBuffer.allocate(12 + 23);
        old.putLong(0, 5).putInt(8, 23).put(16, (byte) 1).putLong(18, 1000);
        old.putInt(26, -1).putInt(30, 1).put(34, (byte) 'v');
        CRC32 crc = new CRC32();
        crc.update(old.array(), 16, 19);
        old.putInt(12, (int) crc.getValue());
        MemorySegment bytes = Arena.ofAuto().allocate(Samples.SIZE + 35L);
        bytes.copyFrom(Samples.batch(4, 1000, -1, 0));
        bytes.asSlice(Samples.SIZE).copyFrom(MemorySegment.ofArray(old.array()));
        assertTrue(scan.run(bytes, 4));
        assertTrue(scan.endsAtOldFormat());
        assertEquals(Samples.SIZE, scan.validBytes());
        assertEquals(5, scan.nextOffset());
    }

    @Test
    void tablesThatAreTooSmallAreToldTheirSizes() {
        MemorySegment log = Arena.ofAuto().allocate(20L * Samples.SIZE);
        for (int at = 0; at < 20; at++) {
            MemorySegment.copy(Samples.batch(at, 1000 + at, at, 0), 0, log,
                    (long) at * Samples.SIZE, Samples.SIZE);
        }
        SegmentScan scan = new SegmentScan(8, 12, 0, 1).intervalBytes(1).indexSizeBytesMax(1 << 16);
        assertFalse(scan.run(log, 0));
        assertTrue(scan.offsetIndexSizeBytes() > 8);
        assertEquals(8, scan.offsetIndex().byteSize());
        assertEquals(20, scan.producerCount());
        assertEquals(1, scan.producers().count());
        assertTrue(scan.run(log.asSlice(0, 150), 0) || scan.batchCount() == 1);
        assertEquals(Samples.SIZE, scan.validBytes(), "a torn tail is no failure");
    }

    @Test
    void memoryAndSnapshotsThatMakeNoSenseAreRefused() {
        SegmentScan scan = new SegmentScan(0, 0, 0, 0);
        assertThrows(IllegalArgumentException.class,
                () -> scan.run(MemorySegment.ofArray(new byte[10]), 0));
        assertThrows(IllegalArgumentException.class, () -> new SegmentScan(-1, 0, 0, 0));
        assertThrows(IllegalArgumentException.class, () -> new SegmentScan(0, 0, 0, -1));
        MemorySegment nonsense = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_LONG, 1, 2, 3);
        var failure = assertThrows(SiltstoneException.class,
                () -> Bytes.readSnapshot(nonsense, new Producers(1)));
        assertEquals(Kind.CORRUPT, failure.kind());
        assertTrue(Bytes.writeSnapshot(new Producers(0), Arena.ofAuto().allocate(1)) > 1);
        assertThrows(IllegalArgumentException.class,
                () -> Bytes.writeSnapshot(new Producers(0), nonsense.asReadOnly()));
    }
}
