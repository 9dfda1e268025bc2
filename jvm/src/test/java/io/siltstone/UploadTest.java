package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Records of remote storage, the parts of an upload, and replicas built from them. */
class UploadTest {
    private static final UUID TOPIC_ID = new UUID(0x0410_4104_1041_0410L, 0x4104_1041_0410_4104L);
    private static final UUID SEGMENT_ID = new UUID(5, 6);
    private static final List<String> SUFFIXES = List.of(
            ".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".leader_epoch_checkpoint");

    @TempDir
    Path home;

    private static SiltstoneException fails(Kind kind, Executable call) {
        SiltstoneException failure = assertThrows(SiltstoneException.class, call);
        assertEquals(kind, failure.kind(), failure.getMessage());
        return failure;
    }

    private static RemoteRecord record(int kind) {
        return new RemoteRecord().kind(kind).state(kind % 3).partition(7).brokerId(2)
                .sizeBytes(4096).startOffset(100).endOffset(199).maxTimestampMs(5000)
                .eventTimestampMs(6000).topicId(TOPIC_ID).segmentId(SEGMENT_ID)
                .isTxnIndexEmpty(true).topic("orders").custom(new byte[] {1, 2, 3})
                .addEpoch(3, 100).addEpoch(5, 140);
    }

    private static byte[] encoded(RemoteRecord record) {
        MemorySegment bytes = Arena.ofAuto().allocate(256);
        return bytes.asSlice(0, record.encode(bytes)).toArray(JAVA_BYTE);
    }

    private static MemorySegment memory(byte[] bytes) {
        return Arena.ofAuto().allocateFrom(JAVA_BYTE, bytes);
    }

    @Test
    void recordsComeBackAsTheyWere() {
        for (int kind = 0; kind < 4; kind++) {
            byte[] bytes = encoded(record(kind));
            assertEquals(kind, bytes[1]);
            RemoteRecord read = new RemoteRecord();
            read.decode(memory(bytes));
            assertEquals(kind, read.kind());
            assertEquals(kind % 3, read.state());
            assertEquals(2, read.brokerId());
            assertEquals(6000, read.eventTimestampMs());
            if (kind != Codes.REMOTE_SNAPSHOT) {
                assertEquals("orders", read.topic());
                assertEquals(7, read.partition());
                assertEquals(TOPIC_ID, read.topicId());
            }
            if (kind == Codes.REMOTE_PARTITION_DELETE) {
                assertNull(read.custom());
            } else {
                assertArrayEquals(new byte[] {1, 2, 3}, read.custom());
                assertEquals(SEGMENT_ID, read.segmentId());
            }
            if (kind == Codes.REMOTE_SEGMENT || kind == Codes.REMOTE_SNAPSHOT) {
                assertEquals(100, read.startOffset());
                assertEquals(199, read.endOffset());
                assertEquals(4096, read.sizeBytes());
                assertEquals(5000, read.maxTimestampMs());
                assertTrue(read.isTxnIndexEmpty());
                assertEquals(2, read.epochCount());
                assertEquals(5, read.epoch(1));
                assertEquals(140, read.epochStartOffset(1));
            }
            assertArrayEquals(bytes, encoded(read));
            for (int cut = 0; cut < bytes.length; cut++) {
                MemorySegment torn = memory(bytes).asSlice(0, cut);
                fails(Kind.CORRUPT, () -> read.decode(torn));
            }
            bytes[1] = 9;
            fails(Kind.UNSUPPORTED, () -> read.decode(memory(bytes)));
        }
    }

    @Test
    void recordsThatCannotBeAreRefused() {
        fails(Kind.INVALID_ARGUMENT, () -> encoded(record(0).kind(4)));
        fails(Kind.INVALID_ARGUMENT, () -> encoded(record(0).state(-1)));
        fails(Kind.INVALID_ARGUMENT, () -> encoded(record(0).endOffset(99)));
        RemoteRecord none = record(0);
        none.clearEpochs();
        fails(Kind.INVALID_ARGUMENT, () -> encoded(none));
        none.clear();
        assertEquals("", none.topic());
        assertNull(none.custom());
        assertEquals(new UUID(0, 0), none.topicId());
        RemoteRecord small = new RemoteRecord(1, 2);
        small.addEpoch(1, 0);
        fails(Kind.LIMIT, () -> small.addEpoch(2, 1));
        assertThrows(IllegalArgumentException.class, () -> small.custom(new byte[3]));
        assertThrows(IllegalArgumentException.class, () -> small.topic("x".repeat(257)));
        assertThrows(IndexOutOfBoundsException.class, () -> small.epoch(1));
        fails(Kind.SHORT_BUFFER, () -> small.decode(memory(encoded(record(0)))));
        assertEquals(1, small.epochCount(), "what is said is never longer than its room");
        assertEquals(2, small.custom().length);
        assertEquals(100, small.endOffset() - 99);
        assertTrue(record(0).encode(Arena.ofAuto().allocate(0)) > 20);
        assertThrows(IllegalArgumentException.class,
                () -> small.encode(Arena.ofAuto().allocate(9).asReadOnly()));
        assertEquals(0, RemoteRecord.metadataPartition(TOPIC_ID, 7, 1));
        assertTrue(RemoteRecord.metadataPartition(TOPIC_ID, 7, 50) < 50);
    }

    /** A log of some segments. */
    private Log log(String name) {
        Log log = Log.open(home.resolve(name), new LogOptions().topicId(TOPIC_ID)
                .config("segment.bytes", "1000").config("remote.storage.enable", "true"));
        return log;
    }

    private static byte[] bytes(Upload upload, Parts parts, int row) throws IOException {
        int size = Math.toIntExact(parts.sizeBytes(row));
        if (parts.fd(row) < 0) {
            MemorySegment room = Arena.ofAuto().allocate(size);
            assertEquals(size, upload.read(parts.part(row), room));
            return room.toArray(JAVA_BYTE);
        }
        ByteBuffer buffer = ByteBuffer.allocate(size);
        try (FileChannel file = FileChannel.open(Path.of("/proc/self/fd/" + parts.fd(row)))) {
            file.read(buffer, parts.position(row));
        }
        return buffer.array();
    }

    private static String text(UUID id) {
        byte[] bytes = ByteBuffer.allocate(16).putLong(id.getMostSignificantBits())
                .putLong(id.getLeastSignificantBits()).array();
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    /** Uploads the first segment to a folder, as Kafka's LocalTieredStorage has it. */
    private RemoteRecord uploaded(Log log, Path store) throws IOException {
        Segments segments = new Segments(9);
        log.segments(segments);
        Path folder = store.resolve("kafka-tiered-storage/orders-0-" + text(TOPIC_ID));
        Files.createDirectories(folder);
        RemoteRecord segment = new RemoteRecord();
        try (Upload upload = Upload.of(log, 0, segments.baseOffset(1),
                new Upload.Options().segmentId(SEGMENT_ID).brokerId(3).nowMs(9000))) {
            Parts parts = new Parts(6);
            assertEquals(5, upload.parts(parts));
            for (int row = 0; row < parts.count(); row++) {
                String name = String.format("%020d-%s%s", 0, text(SEGMENT_ID),
                        SUFFIXES.get(parts.part(row)));
                Files.write(folder.resolve(name), bytes(upload, parts, row));
            }
            assertTrue(upload.isIntact());
            upload.segment(segment);
            fails(Kind.NOT_FOUND,
                    () -> upload.read(Codes.PART_LOG, Arena.ofAuto().allocate(9)));
            fails(Kind.SHORT_BUFFER,
                    () -> upload.read(Codes.PART_LEADER_EPOCHS, Arena.ofAuto().allocate(1)));
            Parts few = new Parts(1);
            assertEquals(5, upload.parts(few));
            assertFalse(few.isComplete());
        }
        assertEquals(Codes.REMOTE_COPY_STARTED, segment.state());
        assertEquals("orders", segment.topic());
        assertEquals(SEGMENT_ID, segment.segmentId());
        assertEquals(segments.baseOffset(1) - 1, segment.endOffset());
        assertEquals(3, segment.epoch(0));
        return segment.state(Codes.REMOTE_COPY_FINISHED);
    }

    @Test
    void aSegmentIsUploadedAndReplicasAreBuiltBehindIt() throws IOException {
        Path store = home.resolve("store");
        RemoteRecord segment;
        try (Log log = log("orders-0")) {
            Samples.fill(log, 25);
            log.setHighWatermark(25);
            segment = uploaded(log, store);
        }
        try (Log replica = log("orders-1"); Rebuilds rebuilds = new Rebuilds(4)) {
            Path closed = home.resolve("orders-2");
            try (Log other = log("orders-2")) {
                Samples.fill(other, 3);
                other.stop();
            }
            RebuildOptions options = new RebuildOptions(store).threads(2).nowMs(9000);
            rebuilds.set(0, replica, segment, 0);
            rebuilds.set(1, closed, segment, 0);
            rebuilds.set(2, replica, segment.state(Codes.REMOTE_COPY_STARTED), 0);
            segment.state(Codes.REMOTE_COPY_FINISHED);
            rebuilds.run(4, options);
            assertEquals(0, rebuilds.status(0));
            assertEquals(segment.endOffset() + 1, rebuilds.nextOffset(0));
            assertEquals(-1, rebuilds.firstOpenOffset(0));
            assertTrue(rebuilds.bytesRead(0) > 0);
            assertEquals(0, rebuilds.producerCount(0));
            assertEquals(0, rebuilds.status(1));
            assertNotEquals(0, rebuilds.status(2));
            assertEquals(-1, rebuilds.nextOffset(2));
            assertEquals(Kind.CLOSED.code(), rebuilds.status(3));
            assertEquals(segment.endOffset() + 1, Samples.offsets(replica).logEndOffset());
            Epochs epochs = new Epochs(4);
            assertEquals(1, replica.epochs(epochs));
            assertEquals(3, epochs.epoch(0));

            rebuilds.run(1, new RebuildOptions(home.resolve("nowhere")).prefix("x/"));
            assertNotEquals(0, rebuilds.status(0));
            assertFalse(rebuilds.isRetryable(0) && rebuilds.status(0) == Kind.CORRUPT.code());
            rebuilds.clear(1);
            rebuilds.run(2, options);
            assertEquals(Kind.CLOSED.code(), rebuilds.status(1));
        }
    }

    @Test
    void anUploadOutlivesItsLog() throws IOException {
        Upload upload;
        try (Log log = log("orders-0")) {
            Samples.fill(log, 25);
            log.setHighWatermark(25);
            Segments segments = new Segments(9);
            log.segments(segments);
            long next = segments.baseOffset(1);
            Upload.Options options = new Upload.Options();
            fails(Kind.CONFLICT, () -> Upload.of(log, 0, next - 1, options));
            fails(Kind.NOT_FOUND, () -> Upload.of(log, 777, 999, options));
            log.setHighWatermark(25);
            upload = Upload.of(log, 0, next, options.rebuildSnapshot());
            log.truncateTo(next - 2, 0);
            assertFalse(upload.isIntact());
        }
        Parts parts = new Parts(6);
        upload.parts(parts);
        assertTrue(bytes(upload, parts, 0).length > 0);
        upload.close();
        upload.close();
        fails(Kind.CLOSED, () -> upload.parts(parts));
        fails(Kind.CLOSED, upload::isIntact);
        fails(Kind.CLOSED, () -> upload.segment(new RemoteRecord()));
        fails(Kind.CLOSED, () -> upload.read(0, Arena.ofAuto().allocate(9)));
    }

    @Test
    void slotsThatMakeNoSenseAreRefused() {
        Rebuilds rebuilds = new Rebuilds(1);
        RemoteRecord segment = record(0);
        assertThrows(IndexOutOfBoundsException.class,
                () -> rebuilds.set(1, home, segment, 0));
        assertThrows(IndexOutOfBoundsException.class,
                () -> rebuilds.run(2, new RebuildOptions(home)));
        assertThrows(NullPointerException.class, () -> rebuilds.set(0, (Log) null, segment, 0));
        assertThrows(IllegalArgumentException.class, () -> new RebuildOptions(home).threads(-1));
        rebuilds.close();
        fails(Kind.CLOSED, () -> rebuilds.run(1, new RebuildOptions(home)));
        fails(Kind.CLOSED, () -> rebuilds.set(0, home, segment, 0));
        assertEquals("orders", new String(encoded(segment), StandardCharsets.ISO_8859_1)
                .replaceAll("(?s).*(orders).*", "$1"));
    }
}
