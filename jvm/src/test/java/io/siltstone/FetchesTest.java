package io.siltstone;

import static io.siltstone.Samples.SIZE;
import static io.siltstone.Samples.fill;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
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
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FetchesTest {
    @TempDir
    Path home;

    private Log log;

    @BeforeEach
    void open() {
        log = Log.open(home.resolve("orders-0"), new LogOptions().config("segment.bytes", "1000"));
        fill(log, 30);
        log.setHighWatermark(20);
    }

    @AfterEach
    void close() {
        log.close();
    }

    private static boolean isOpen(int fd) {
        return Files.exists(Path.of("/proc/self/fd/" + fd));
    }

    @Test
    void manyFetchesAreLookedUpAtOnce() throws IOException {
        try (Fetches fetches = new Fetches(4); Log other = Log.open(
                home.resolve("orders-1"), new LogOptions())) {
            fill(other, 2);
            fetches.set(0, log, 3, 2 * SIZE, UpTo.HIGH_WATERMARK, false);
            fetches.set(1, log, 20, 1000, UpTo.HIGH_WATERMARK, false);
            fetches.set(2, log, 99, 1000, UpTo.LOG_END, false);
            fetches.set(3, other, 1, 10, UpTo.LOG_END, true);
            fetches.locate(4);
            assertEquals(0, fetches.status(0));
            assertEquals(3, fetches.baseOffset(0));
            assertEquals(0, fetches.segmentBaseOffset(0));
            assertEquals(3L * SIZE, fetches.position(0));
            assertEquals(2L * SIZE, fetches.sizeBytes(0));
            assertFalse(fetches.isFirstIncomplete(0));
            assertTrue(fetches.isIntact(0));
            assertArrayEquals(read(fetches, 0), copied(fetches, 0, 2 * SIZE));
            assertEquals(0, fetches.status(1));
            assertEquals(-1, fetches.fd(1));
            assertEquals(0, fetches.sizeBytes(1));
            assertFalse(fetches.isIntact(1));
            assertEquals(Kind.OUT_OF_RANGE.code(), fetches.status(2));
            assertEquals(-1, fetches.fd(2));
            assertEquals(SIZE, fetches.sizeBytes(3));
            fetches.setOffset(2, 29);
            fetches.locate(3);
            assertEquals(29, fetches.baseOffset(2));
        }
    }

    /** What the range of a slot has, by the descriptor that a host would give to sendfile. */
    private static byte[] read(Fetches fetches, int slot) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(Math.toIntExact(fetches.sizeBytes(slot)));
        try (FileChannel file = FileChannel.open(Path.of("/proc/self/fd/" + fetches.fd(slot)))) {
            file.read(bytes, fetches.position(slot));
        }
        return bytes.array();
    }

    private static byte[] copied(Fetches fetches, int slot, int capacity) {
        MemorySegment bytes = Arena.ofAuto().allocate(capacity);
        long size = fetches.read(slot, bytes);
        return bytes.asSlice(0, size).toArray(ValueLayout.JAVA_BYTE);
    }

    @Test
    void aFileStaysOpenUntilItsLeaseIsReleased() {
        try (Fetches fetches = new Fetches(2); Leases leases = new Leases()) {
            fetches.set(0, log, 0, 1000, UpTo.LOG_END, false);
            fetches.set(1, log, 25, 1000, UpTo.LOG_END, false);
            fetches.locate(2);
            int first = fetches.fd(0);
            int second = fetches.fd(1);
            fetches.moveLease(0, leases);
            fetches.moveLease(0, leases);
            assertEquals(1, leases.count());
            assertFalse(fetches.isIntact(0), "its lease is elsewhere");
            log.stop();
            log.close();
            fetches.close();
            assertTrue(isOpen(first));
            assertFalse(isOpen(second));
            leases.release();
            leases.release();
            assertFalse(isOpen(first));
            assertEquals(0, leases.count());
        }
    }

    @Test
    void manyLeasesAreHeld() {
        try (Fetches fetches = new Fetches(1); Leases leases = new Leases()) {
            fetches.set(0, log, 0, 1000, UpTo.LOG_END, false);
            for (int at = 0; at < 100; at++) {
                fetches.locate(1);
                fetches.moveLease(0, leases);
            }
            assertEquals(100, leases.count());
            int fd = fetches.fd(0);
            leases.close();
            assertEquals(0, leases.count());
            fetches.locate(1);
            assertThrows(SiltstoneException.class, () -> fetches.moveLease(0, leases));
            assertTrue(isOpen(fd) && fetches.isIntact(0), "a lease that was not moved stays");
        }
    }

    @Test
    void aCutIsSeenByWhoHasReadTheBytes() {
        try (Fetches fetches = new Fetches(1)) {
            fetches.set(0, log, 0, 1000, UpTo.LOG_END, false);
            fetches.locate(1);
            assertTrue(fetches.isIntact(0));
            log.truncateTo(0, 3000);
            assertFalse(fetches.isIntact(0));
        }
    }

    @Test
    void slotsOfClosedLogsAndEmptySlotsAreTold() {
        try (Fetches fetches = new Fetches(3)) {
            fetches.set(0, log, 0, 1000, UpTo.LOG_END, false);
            fetches.set(1, log, 0, 1000, UpTo.LOG_END, false);
            fetches.clear(1);
            log.close();
            fetches.locate(3);
            for (int slot = 0; slot < 3; slot++) {
                assertEquals(Kind.CLOSED.code(), fetches.status(slot));
                assertEquals(-1, fetches.fd(slot));
            }
            var failure = assertThrows(SiltstoneException.class,
                    () -> fetches.read(0, Arena.ofAuto().allocate(10)));
            assertEquals(Kind.CLOSED, failure.kind());
            assertThrows(SiltstoneException.class,
                    () -> fetches.set(0, log, 0, 1000, UpTo.LOG_END, false));
            assertThrows(IndexOutOfBoundsException.class, () -> fetches.locate(4));
            assertThrows(IndexOutOfBoundsException.class, () -> fetches.locate(-1));
            assertThrows(IndexOutOfBoundsException.class, () -> fetches.status(3));
            fetches.close();
            failure = assertThrows(SiltstoneException.class, () -> fetches.locate(1));
            assertEquals(Kind.CLOSED, failure.kind());
            fetches.close();
        }
        assertThrows(IllegalArgumentException.class, () -> new Fetches(-1));
        assertThrows(IllegalArgumentException.class, () -> new Fetches(1, -1));
    }

    @Test
    void copiesAreBoundedByTheirMemory() {
        try (Fetches fetches = new Fetches(1)) {
            fetches.set(0, log, 0, 1 << 20, UpTo.LOG_END, true);
            assertEquals(100, copiedWithoutMinimum(fetches));
            fetches.set(0, log, 0, 1 << 20, UpTo.LOG_END, true);
            var failure = assertThrows(SiltstoneException.class,
                    () -> fetches.read(0, Arena.ofAuto().allocate(10)));
            assertEquals(Kind.SHORT_BUFFER, failure.kind());
            assertThrows(IllegalArgumentException.class,
                    () -> fetches.read(0, Arena.ofAuto().allocate(1000).asReadOnly()));
        }
    }

    private long copiedWithoutMinimum(Fetches fetches) {
        fetches.set(0, log, 0, 1 << 20, UpTo.LOG_END, false);
        return fetches.read(0, Arena.ofAuto().allocate(100));
    }
}
