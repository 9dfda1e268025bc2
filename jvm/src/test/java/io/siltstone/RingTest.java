package io.siltstone;

import static io.siltstone.Samples.SIZE;
import static io.siltstone.Samples.batch;
import static io.siltstone.Samples.offsets;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Operations whose answers are polled. */
@Timeout(60)
class RingTest {
    @TempDir
    Path home;

    private Log log;
    private final Room room = new Room(20L * SIZE);

    @BeforeEach
    void open() {
        log = Log.open(home.resolve("orders-0"), new LogOptions());
        for (int at = 0; at < 20; at++) {
            room.memory().asSlice((long) at * SIZE, SIZE).copyFrom(batch(0, 1000 + at, -1, 0));
        }
    }

    @AfterEach
    void close() {
        log.close();
    }

    private static SiltstoneException fails(Kind kind, Executable call) {
        SiltstoneException failure = assertThrows(SiltstoneException.class, call);
        assertEquals(kind, failure.kind(), failure.getMessage());
        return failure;
    }

    private void append(Ring ring, int at, boolean isFlushed) {
        ring.appendLeader(100 + at, log, room, (long) at * SIZE, SIZE, 0, 2000, Origin.CLIENT, 0,
                isFlushed);
    }

    private static boolean isOpen(int fd) {
        return Files.exists(Path.of("/proc/self/fd/" + fd));
    }

    @Test
    void transactionsBeginWhenTheyWereVerified() {
        try (Ring ring = new Ring(2)) {
            long verification = log.startVerification(9, 0, 0, false, 0);
            room.memory().asSlice(0, SIZE).copyFrom(Samples.inTransaction(9, 0));
            room.memory().asSlice(SIZE, SIZE).copyFrom(Samples.inTransaction(9, 0));
            append(ring, 0, false);
            ring.appendLeader(1, log, room, SIZE, SIZE, 0, 2000, Origin.CLIENT, 0, verification,
                    false);
            ring.submit();
            assertEquals(2, ring.poll(0));
            assertEquals(Kind.CONFLICT.code(), ring.status(0));
            assertEquals(Codes.DETAIL_INVALID_TXN_STATE, ring.detail(0));
            assertEquals(0, ring.status(1));
        }
    }

    @Test
    void operationsAreAnsweredInTheirOrder() {
        try (Ring ring = new Ring(8)) {
            assertTrue(isOpen(ring.fd()));
            append(ring, 0, true);
            append(ring, 1, false);
            assertEquals(0, ring.poll(0), "nothing is submitted yet");
            ring.submit();
            assertEquals(2, ring.poll(0));
            assertEquals(2, ring.count());
            assertEquals(100, ring.userData(0));
            assertEquals(101, ring.userData(1));
            assertEquals(0, ring.status(1));
            assertEquals(0, ring.firstOffset(0));
            assertEquals(1, ring.lastOffset(1));
            assertEquals(SIZE, ring.sizeBytes(1));
            assertEquals(0, ring.detail(0) + ring.errno(0));

            ring.appendFollower(7, log, room, 0, SIZE, 0, 2000, false);
            ring.sync(8, log, 2000);
            ring.locate(9, log, 0, 1 << 20, UpTo.LOG_END, true);
            ring.read(10, log, 1, 1 << 20, UpTo.LOG_END, true, room, 10L * SIZE, SIZE);
            ring.warm(11, log, 0, 1 << 20, UpTo.LOG_END, true);
            ring.locate(12, log, 99, 1 << 20, UpTo.LOG_END, true);
            ring.submit();
            assertEquals(6, ring.poll(1000));
            assertEquals(Kind.OUT_OF_RANGE.code(), ring.status(0), "its offsets are there already");
            assertEquals(Codes.DETAIL_UNEXPECTED_APPEND_OFFSET, ring.detail(0));
            assertEquals(0, ring.status(1));
            assertEquals(2, offsets(log).recoveryPoint());
            assertEquals(0, ring.status(2));
            assertEquals(2L * SIZE, ring.sizeBytes(2));
            assertEquals(0, ring.position(2) + ring.baseOffset(2) + ring.segmentBaseOffset(2));
            assertTrue(isOpen(ring.fd(2)) && ring.isIntact(2));
            assertFalse(ring.isFirstIncomplete(2));
            assertEquals(SIZE, ring.sizeBytes(3));
            assertEquals(-1, ring.fd(3));
            assertEquals(-1, room.memory().asSlice(10L * SIZE, SIZE)
                    .mismatch(room.memory().asSlice(SIZE, SIZE)));
            assertEquals(2L * SIZE, ring.sizeBytes(4));
            assertEquals(Kind.OUT_OF_RANGE.code(), ring.status(5));
            assertThrows(IndexOutOfBoundsException.class, () -> ring.status(6));
            ring.release();
            assertFalse(ring.isIntact(2), "its lease is released");
        }
    }

    @Test
    void slotsAreFreeBehindTheirAnswers() {
        try (Ring ring = new Ring(3); Leases leases = new Leases()) {
            for (int round = 0; round < 10; round++) {
                for (int at = 0; at < 3; at++) {
                    ring.locate(round, log, 0, 1 << 20, UpTo.LOG_END, true);
                    if (at == 1) {
                        ring.submit();
                    }
                }
                fails(Kind.LIMIT, () -> ring.sync(0, log, 0));
                ring.submit();
                assertEquals(3, ring.poll(-1));
                fails(Kind.LIMIT, () -> ring.sync(0, log, 0));
                ring.moveLease(0, leases);
                assertEquals(0, ring.poll(0));
            }
            assertEquals(0, leases.count(), "an empty log gives no range");
        }
    }

    @Test
    void aLeaseThatIsMovedOutlivesTheRing() {
        try (Leases leases = new Leases()) {
            Ring ring = new Ring(3);
            append(ring, 0, false);
            ring.locate(1, log, 0, 1000, UpTo.LOG_END, true);
            ring.locate(2, log, 0, 1000, UpTo.LOG_END, true);
            ring.submit();
            log.close();
            assertEquals(3, ring.poll(0), "it was closed behind them");
            int fd = ring.fd(1);
            ring.moveLease(1, leases);
            ring.close();
            ring.close();
            assertTrue(isOpen(fd));
            assertEquals(0, ring.count());
            leases.release();
            assertFalse(isOpen(fd));
            fails(Kind.CLOSED, () -> ring.poll(0));
            fails(Kind.CLOSED, ring::fd);
            fails(Kind.CLOSED, ring::submit);
        }
    }

    @Test
    void whoPollsWaitsUntilSomethingIsThere() throws Exception {
        try (Ring ring = new Ring(4)) {
            Thread other = Thread.ofPlatform().start(() -> {
                try {
                    Thread.sleep(120);
                } catch (InterruptedException impossible) {
                    throw new IllegalStateException(impossible);
                }
                append(ring, 0, false);
                ring.submit();
            });
            assertEquals(1, ring.poll(-1));
            other.join();
            long before = System.nanoTime();
            assertEquals(0, ring.poll(120));
            assertTrue(System.nanoTime() - before >= 119_000_000);
            Thread.currentThread().interrupt();
            assertEquals(0, ring.poll(-1));
            assertTrue(Thread.interrupted());
        }
    }

    @Test
    void aRingThatIsClosedWakesWhoPolls() throws Exception {
        Ring ring = new Ring(4);
        AtomicReference<RuntimeException> thrown = new AtomicReference<>();
        Thread poller = Thread.ofPlatform().start(() -> {
            try {
                ring.poll(-1);
            } catch (RuntimeException told) {
                thrown.set(told);
            }
        });
        while (poller.getState() != Thread.State.RUNNABLE) {
            Thread.sleep(1);
        }
        Thread.sleep(100);
        fails(Kind.CONFLICT, () -> ring.poll(0));
        append(ring, 0, false);
        ring.close();
        poller.join();
        assertEquals(Kind.CLOSED, ((SiltstoneException) thrown.get()).kind());
        assertEquals(0, offsets(log).logEndOffset(), "what waits is not run");
    }

    @Test
    void abortedTransactionsAreInTheAnswers() {
        Ring ring = new Ring(5, 2);
        ring.sync(0, log, 0);
        ring.submit();
        ring.poll(0);
        long verification = log.startVerification(9, 0, 0, false, 0);
        log.appendLeader(Samples.inTransaction(9, 0), 0, 0, Origin.CLIENT, 0, verification,
                new Appended());
        log.appendLeader(Samples.abortMarker(9), 0, 0, Origin.COORDINATOR, 1, new Appended());
        log.setHighWatermark(2);
        ring.locate(1, log, 0, 1 << 20, UpTo.LAST_STABLE, true);
        ring.submit();
        assertEquals(1, ring.poll(0));
        assertEquals(1, ring.abortedCount(0));
        assertEquals(9, ring.abortedProducerId(0, 0));
        assertEquals(0, ring.abortedFirstOffset(0, 0));
        assertEquals(1, ring.abortedLastOffset(0, 0));
        assertThrows(IndexOutOfBoundsException.class, () -> ring.abortedLastOffset(0, 1));
        ring.close();
    }

    @Test
    void operationsThatMakeNoSenseAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> new Ring(-1));
        assertThrows(IllegalArgumentException.class, () -> new Ring(1, -1));
        try (Ring ring = new Ring(2)) {
            assertThrows(IndexOutOfBoundsException.class, () -> ring.appendFollower(
                    0, log, room, 20L * SIZE, 1, 0, 0, false));
            assertThrows(NullPointerException.class, () -> ring.sync(0, null, 0));
            append(ring, 0, false);
            ring.appendLeader(0, log, room, 1, SIZE, 0, 0, Origin.CLIENT, 0, false);
            ring.submit();
            assertEquals(2, ring.poll(0));
            assertEquals(Kind.INVALID_ARGUMENT.code(), ring.status(0), "they share bytes");
            ring.poll(0);
            log.close();
            fails(Kind.CLOSED, () -> ring.sync(0, log, 0));
            assertEquals(0, ring.poll(0));
        }
    }
}
