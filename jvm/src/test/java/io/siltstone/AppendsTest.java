package io.siltstone;

import static io.siltstone.Samples.SIZE;
import static io.siltstone.Samples.offsets;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AppendsTest {
    @TempDir
    Path home;

    private Log first;
    private Log second;
    private final Room room = new Room(10L * SIZE);

    @BeforeEach
    void open() {
        first = Log.open(home.resolve("orders-0"), new LogOptions());
        second = Log.open(home.resolve("orders-1"), new LogOptions());
        // What producers send begins with offset 0, what a leader sends has its offsets.
        for (int at = 0; at < 10; at++) {
            put(at, Samples.batch(at < 5 ? 0 : at, 1000 + at, -1, 0));
        }
    }

    @AfterEach
    void close() {
        first.close();
        second.close();
    }

    private void put(int place, MemorySegment batch) {
        MemorySegment.copy(batch, 0, room.memory(), (long) place * SIZE, SIZE);
    }

    @Test
    void manyLogsAreAppendedToAtOnce() {
        try (Appends appends = new Appends(4)) {
            appends.setLeader(0, first, room, 0, SIZE, 3, 2000, Origin.CLIENT, 0);
            appends.setLeader(1, second, room, SIZE, SIZE, 3, 2000, Origin.CLIENT, 0);
            appends.setLeader(2, first, room, 2L * SIZE, SIZE, 4, 2000, Origin.CLIENT, 0);
            appends.append(3);
            assertEquals(0, appends.status(0));
            assertEquals(0, appends.firstOffset(0));
            assertEquals(0, appends.firstOffset(1));
            assertEquals(1, appends.lastOffset(2));
            assertEquals(1002, appends.maxTimestampMs(2));
            assertEquals(-1, appends.logAppendTimeMs(2));
            assertEquals(0, appends.logStartOffset(2));
            assertEquals(SIZE, appends.sizeBytes(2));
            assertEquals(0, appends.detail(2));
            assertFalse(appends.isDuplicate(2) || appends.hasRolled(2) || appends.isFlushDue(2));
            assertEquals(2, offsets(first).logEndOffset());
            assertEquals(1, offsets(second).logEndOffset());
            long given = room.memory().get(
                    ValueLayout.JAVA_LONG_UNALIGNED.withOrder(java.nio.ByteOrder.BIG_ENDIAN),
                    2L * SIZE);
            assertEquals(1, given, "the offset is written where the records are");
        }
    }

    @Test
    void oneThatIsRefusedKeepsOutNoOther() {
        try (Appends appends = new Appends(3)) {
            room.memory().set(ValueLayout.JAVA_BYTE, SIZE - 3, (byte) 0);
            appends.setLeader(0, first, room, 0, SIZE, 0, 0, Origin.CLIENT, 0);
            appends.setFollower(1, second, room, 5L * SIZE, SIZE, 0, 0);
            appends.setLeader(2, first, room, 3L * SIZE, SIZE, 0, 0, Origin.CLIENT, 0);
            appends.append(3);
            assertEquals(Kind.CORRUPT.code(), appends.status(0));
            assertEquals(Codes.DETAIL_CORRUPT_MESSAGE, appends.detail(0));
            assertEquals(-1, appends.firstOffset(0));
            assertEquals(0, appends.status(1), "a follower of an empty log begins anywhere");
            assertEquals(5, appends.lastOffset(1));
            assertEquals(0, appends.lastOffset(2));
            appends.setFollower(0, second, room, 8L * SIZE, SIZE, 0, 0);
            appends.setFollower(1, second, room, 6L * SIZE, SIZE, 0, 0);
            appends.append(2);
            assertEquals(Kind.OUT_OF_RANGE.code(), appends.status(1));
            assertEquals(Codes.DETAIL_UNEXPECTED_APPEND_OFFSET, appends.detail(1));
            assertEquals(9, offsets(second).logEndOffset());
        }
    }

    @Test
    void transactionsBeginWhenTheyWereVerified() {
        try (Appends appends = new Appends(2)) {
            long verification = first.startVerification(9, 0, 0, false, 0);
            second.startVerification(9, 0, 0, false, 0);
            put(0, Samples.inTransaction(9, 0));
            put(1, Samples.inTransaction(9, 0));
            appends.setLeader(0, first, room, 0, SIZE, 0, 0, Origin.CLIENT, 0, verification);
            appends.setLeader(1, second, room, SIZE, SIZE, 0, 0, Origin.CLIENT, 0);
            appends.append(2);
            assertEquals(0, appends.status(0));
            assertEquals(Kind.CONFLICT.code(), appends.status(1));
            assertEquals(Codes.DETAIL_INVALID_TXN_STATE, appends.detail(1));
        }
    }

    @Test
    void bytesAreSharedByNoTwo() {
        try (Appends appends = new Appends(2)) {
            appends.setLeader(0, first, room, 0, SIZE, 0, 0, Origin.CLIENT, 0);
            appends.setLeader(1, second, room, SIZE - 1, SIZE, 0, 0, Origin.CLIENT, 0);
            var failure = assertThrows(SiltstoneException.class, () -> appends.append(2));
            assertEquals(Kind.INVALID_ARGUMENT, failure.kind());
            assertEquals(0, offsets(first).logEndOffset());
        }
    }

    @Test
    void slotsOfClosedLogsAndEmptySlotsAreTold() {
        Appends appends = new Appends(3);
        appends.setLeader(0, first, room, 0, SIZE, 0, 0, Origin.CLIENT, 0);
        appends.setLeader(1, second, room, SIZE, SIZE, 0, 0, Origin.CLIENT, 0);
        appends.clear(1);
        first.close();
        appends.append(3);
        for (int slot = 0; slot < 3; slot++) {
            assertEquals(Kind.CLOSED.code(), appends.status(slot));
        }
        assertThrows(SiltstoneException.class,
                () -> appends.setLeader(0, first, room, 0, SIZE, 0, 0, Origin.CLIENT, 0));
        assertThrows(IndexOutOfBoundsException.class, () -> appends.append(4));
        assertThrows(IndexOutOfBoundsException.class, () -> appends.append(-1));
        assertThrows(IndexOutOfBoundsException.class, () -> appends.status(3));
        assertThrows(IndexOutOfBoundsException.class,
                () -> appends.setFollower(0, second, room, 9L * SIZE, SIZE + 1, 0, 0));
        assertThrows(IndexOutOfBoundsException.class,
                () -> appends.setFollower(0, second, room, -1, SIZE, 0, 0));
        appends.close();
        appends.close();
        var failure = assertThrows(SiltstoneException.class, () -> appends.append(0));
        assertEquals(Kind.CLOSED, failure.kind());
        assertThrows(IllegalArgumentException.class, () -> new Appends(-1));
        assertThrows(IllegalArgumentException.class, () -> new Room(-1));
        assertThrows(IllegalArgumentException.class, () -> new Room(Long.MAX_VALUE));
    }

    @Test
    void rangesOfManyFetchesAreBoundedTogether() {
        Samples.fill(first, 10);
        Samples.fill(second, 10);
        try (Fetches fetches = new Fetches(3)) {
            fetches.set(0, first, 0, 1 << 20, UpTo.LOG_END, true);
            fetches.set(1, second, 0, 1 << 20, UpTo.LOG_END, true);
            fetches.locateWithin(2, 12L * SIZE);
            assertEquals(10L * SIZE, fetches.sizeBytes(0));
            assertEquals(2L * SIZE, fetches.sizeBytes(1));
            fetches.locateWithin(3, 1);
            assertEquals(SIZE, fetches.sizeBytes(0));
            assertEquals(0, fetches.sizeBytes(1));
            assertEquals(Kind.CLOSED.code(), fetches.status(2));
            assertTrue(fetches.isIntact(0));
        }
    }
}
