package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class BytesTest {
    private static MemorySegment batches(int count) {
        MemorySegment all = Arena.ofAuto().allocate((long) Samples.SIZE * count);
        for (int at = 0; at < count; at++) {
            MemorySegment.copy(Samples.batch(at, 1000 + at, -1, 0), 0, all,
                    (long) at * Samples.SIZE, Samples.SIZE);
        }
        return all;
    }

    private static MemorySegment text(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        return Arena.ofAuto().allocateFrom(ValueLayout.JAVA_BYTE, bytes);
    }

    @Test
    void aChecksumGoesOnFromTheOneBefore() {
        assertEquals(0xe3069283, Bytes.crc32c(0, text("123456789")));
        assertEquals(0xe3069283, Bytes.crc32c(Bytes.crc32c(0, text("1234")), text("56789")));
        assertEquals(7, Bytes.crc32c(7, text("")));
    }

    @Test
    void headersAreReadUpToTheFirstBatchThatIsNotWhole() {
        Batches out = new Batches(8);
        MemorySegment torn = batches(3).asSlice(0, 3L * Samples.SIZE - 1);
        assertEquals(2L * Samples.SIZE, Bytes.parse(torn, out));
        assertEquals(2, out.count());
        assertTrue(out.isComplete());
        assertEquals(1, out.baseOffset(1));
        assertEquals(1, out.lastOffset(1));
        assertEquals(1001, out.maxTimestampMs(1));
        assertEquals(1001, out.baseTimestampMs(1));
        assertEquals(Samples.SIZE, out.position(1));
        assertEquals(Samples.SIZE, out.sizeBytes(1));
        assertEquals(-1, out.producerId(1));
        assertEquals(-1, out.producerEpoch(1));
        assertEquals(-1, out.baseSequence(1));
        assertEquals(1, out.recordCount(1));
        assertEquals(2, out.magic(1));
        assertEquals(0, out.codec(1));
        assertFalse(out.isTransactional(1) || out.isControl(1));
        assertFalse(out.hasLogAppendTime(1) || out.hasDeleteHorizon(1));
        assertThrows(IndexOutOfBoundsException.class, () -> out.baseOffset(2));
        assertThrows(IndexOutOfBoundsException.class, () -> out.crc(-1));
    }

    @Test
    void whatDoesNotFitIsTold() {
        Batches out = new Batches(2);
        assertEquals(2L * Samples.SIZE, Bytes.parse(batches(3), out));
        assertEquals(2, out.count());
        assertFalse(out.isComplete());
        Batches none = new Batches(0);
        assertEquals(0, Bytes.parse(batches(1), none));
        assertFalse(none.isComplete());
    }

    @Test
    void bytesThatAreNoBatchHaveTheirPosition() {
        MemorySegment bytes = batches(2);
        bytes.asSlice(Samples.SIZE + 8, 4).fill((byte) 0xff);
        Batches out = new Batches(2);
        var failure = assertThrows(SiltstoneException.class, () -> Bytes.parse(bytes, out));
        assertEquals(Kind.CORRUPT, failure.kind());
        assertEquals(Samples.SIZE, failure.position());
        assertEquals(0, out.count());
    }

    @Test
    void aChecksumThatIsWrongIsFound() {
        MemorySegment bytes = batches(3);
        Bytes.validate(bytes);
        assertEquals(3L * Samples.SIZE, Bytes.validBytes(bytes));
        bytes.set(ValueLayout.JAVA_BYTE, 2L * Samples.SIZE - 5, (byte) 0);
        assertEquals(Samples.SIZE, Bytes.validBytes(bytes));
        var failure = assertThrows(SiltstoneException.class, () -> Bytes.validate(bytes));
        assertEquals(Kind.CORRUPT, failure.kind());
        assertFalse(failure.getMessage().isEmpty());
    }

    @Test
    void indexesAreMadeOfASegmentsBytes() {
        Rebuilt out = new Rebuilt();
        MemorySegment log = batches(10);
        assertTrue(Bytes.rebuild(log, 0, 100, 0, Arena.ofAuto().allocate(800),
                Arena.ofAuto().allocate(1200), out));
        assertEquals(10, out.batchCount());
        assertEquals(log.byteSize(), out.validBytes());
        assertEquals(10, out.nextOffset());
        assertEquals(1009, out.maxTimestampMs());
        long offsetIndexSize = out.offsetIndexSizeBytes();
        assertTrue(offsetIndexSize > 8 && offsetIndexSize % 8 == 0);
        assertTrue(out.timeIndexSizeBytes() > 0);
        assertFalse(Bytes.rebuild(log, 0, 100, 0, Arena.ofAuto().allocate(8), null, out));
        assertEquals(offsetIndexSize, out.offsetIndexSizeBytes());
        assertTrue(Bytes.rebuild(log.asSlice(0, 150), 0, 0, 0, null, null, out));
        assertEquals(Samples.SIZE, out.validBytes(), "a torn tail is no failure");
    }

    @Test
    void memoryThatCannotBeGivenIsRefused() {
        MemorySegment heap = MemorySegment.ofArray(new byte[100]);
        MemorySegment fixed = Arena.ofAuto().allocate(100).asReadOnly();
        Rebuilt out = new Rebuilt();
        Class<IllegalArgumentException> refused = IllegalArgumentException.class;
        assertThrows(refused, () -> Bytes.crc32c(0, heap));
        assertThrows(refused, () -> Bytes.rebuild(batches(1), 0, 0, 0, fixed, null, out));
        assertEquals(0, Bytes.parse(fixed.asSlice(0, 0), new Batches(1)), "reading is allowed");
        assertThrows(NullPointerException.class, () -> Bytes.crc32c(0, null));
        MemorySegment gone;
        try (Arena arena = Arena.ofConfined()) {
            gone = arena.allocate(10);
        }
        assertThrows(IllegalStateException.class, () -> Bytes.crc32c(0, gone));
        Batches rows;
        try (Arena arena = Arena.ofShared()) {
            rows = new Batches(arena, 4);
            assertEquals(Samples.SIZE, Bytes.parse(batches(1), rows));
        }
        assertThrows(IllegalStateException.class, () -> Bytes.parse(batches(1), rows));
        assertThrows(IllegalArgumentException.class, () -> new Batches(-1));
    }
}
