package io.siltstone;

import static io.siltstone.Samples.batch;
import static io.siltstone.Samples.fill;
import static io.siltstone.Samples.inTransaction;
import static io.siltstone.Samples.offsets;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

class LogTest {
    private static final UUID ID = new UUID(7, 8);
    private static final int OUT_OF_ORDER_SEQUENCE = 45;
    private static final int INVALID_PRODUCER_EPOCH = 47;
    private static final int INVALID_TXN_STATE = 48;
    private static final long EPOCH_POSITION = 15;
    private static final int UNEXPECTED_APPEND_OFFSET = 1001;

    @TempDir
    Path home;

    private Log open(String name) {
        LogOptions options = new LogOptions().topicId(ID).nowMs(2000)
                .config("segment.bytes", "1000").config("retention.ms", "1000");
        return Log.open(home.resolve(name), options);
    }

    private static SiltstoneException fails(Kind kind, Executable call) {
        SiltstoneException failure = assertThrows(SiltstoneException.class, call);
        assertEquals(kind, failure.kind(), failure.getMessage());
        return failure;
    }

    @Test
    void lookUpsGoThroughMapsWhereThatIsWanted() throws Exception {
        LogOptions options = new LogOptions().mapSealed().nowMs(2000).config("segment.bytes", "1000");
        try (Log log = Log.open(home.resolve("mapped-0"), options);
                Fetches fetches = new Fetches(1)) {
            fill(log, 20);
            for (int round = 0; round < 20; round++) {
                fetches.set(0, log, 3, 4096, UpTo.LOG_END, true);
                fetches.locate(1);
                assertEquals(3, fetches.baseOffset(0));
                fetches.release();
            }
            String maps = Files.readString(Path.of("/proc/self/maps"));
            assertTrue(maps.contains("mapped-0"));
            log.truncateTo(2, 7000);
            assertEquals(2, offsets(log).logEndOffset());
        }
    }

    @Test
    void aLogIsWrittenLookedAtAndCut() {
        try (Log log = open("orders-0")) {
            Appended appended = new Appended();
            log.appendLeader(batch(0, 1000, 77, 0), 3, 2000, Origin.CLIENT, 0, appended);
            assertEquals(0, appended.firstOffset());
            assertEquals(0, appended.lastOffset());
            assertEquals(Samples.SIZE, appended.sizeBytes());
            assertEquals(1000, appended.maxTimestampMs());
            assertEquals(-1, appended.logAppendTimeMs());
            assertEquals(0, appended.logStartOffset());
            assertFalse(appended.isDuplicate() || appended.hasRolled() || appended.isFlushDue());
            log.appendLeader(batch(0, 1000, 77, 0), 3, 2000, Origin.CLIENT, 0, appended);
            assertTrue(appended.isDuplicate());
            fill(log, 19);
            MemorySegment copied = batch(20, 1020, -1, 0);
            copied.set(ValueLayout.JAVA_BYTE, EPOCH_POSITION, (byte) 3);
            log.appendFollower(copied, 3, 2000, appended);
            assertEquals(20, appended.lastOffset());

            Offsets offsets = offsets(log);
            assertEquals(21, offsets.logEndOffset());
            assertTrue(offsets.segmentCount() > 2);
            assertEquals(21L * Samples.SIZE, offsets.sizeBytes());
            assertEquals(-1, offsets.highestRemoteOffset());
            assertEquals(15, log.setHighWatermark(15));
            assertEquals(21, log.setHighWatermark(99));

            Segments segments = new Segments(1);
            assertEquals(offsets.segmentCount(), log.segments(segments));
            assertFalse(segments.isComplete());
            assertEquals(0, segments.baseOffset(0));
            segments = new Segments(50);
            log.segments(segments);
            assertEquals(offsets.segmentCount(), segments.count());
            Epochs epochs = new Epochs(2);
            assertEquals(1, log.epochs(epochs));
            assertEquals(3, epochs.epoch(0));
            assertEquals(0, epochs.startOffset(0));
            long[] end = new long[2];
            log.epochEnd(3, end);
            assertEquals(21, end[1]);
            log.epochEnd(9, end);
            assertEquals(-1, end[0]);
            TimeOffset found = new TimeOffset();
            assertTrue(log.offsetForTime(1010, found));
            assertEquals(1010, found.timestampMs());
            assertEquals(3, found.leaderEpoch());
            assertFalse(log.offsetForTime(9999, found));
            assertEquals(0, log.aborted(0, 21, new AbortedTxns(2)));

            assertEquals(21, log.roll(5000));
            log.flush(5000);
            assertEquals(21, offsets(log).recoveryPoint());
            log.advanceStart(5);
            assertEquals(5, offsets(log).logStartOffset());
            assertTrue(log.retain(6000) > 0);
            assertEquals(0, log.deleteDueFiles(6000));
            assertTrue(log.deleteDueFiles(100_000) > 0);
            log.assignEpoch(4, 21);
            log.truncateTo(20, 7000);
            log.truncateFully(500, -1, 7000);
            assertEquals(500, offsets(log).logEndOffset());
            log.stop();
            fails(Kind.CLOSED, () -> log.flush(8000));
        }
    }

    @Test
    void aDirectoryHasOneLogAtATime() {
        try (Log log = open("once-0")) {
            fails(Kind.CONFLICT, () -> open("once-0"));
            log.stop();
            open("once-0").close();
        }
        open("once-0").close();
    }

    @Test
    void whatIsThereIsOpenedAgain() {
        try (Log log = open("again-0")) {
            fill(log, 3);
            log.stop();
        }
        try (Log log = open("again-0")) {
            assertEquals(3, offsets(log).logEndOffset());
        }
        LogOptions other = new LogOptions().topicId(new UUID(1, 1)).unclean().keepLost()
                .io(LogOptions.Io.SYSCALLS).recoveryPoint(0).logStartOffset(0).openFilesMax(9);
        var failure = fails(Kind.CONFLICT, () -> Log.open(home.resolve("again-0"), other));
        assertTrue(failure.getMessage().contains("again-0"));
        Log.open(home.resolve("again-0"), other.topicId(ID)).close();
    }

    @Test
    void anAppendThatIsRefusedSaysWhyAndChangesNothing() {
        try (Log log = open("refused-0")) {
            Appended appended = new Appended();
            log.appendLeader(batch(0, 1000, 5, 0), 0, 0, Origin.CLIENT, 0, appended);
            MemorySegment gap = batch(0, 1000, 5, 7);
            byte[] before = gap.toArray(ValueLayout.JAVA_BYTE);
            var failure = fails(Kind.CONFLICT,
                    () -> log.appendLeader(gap, 0, 0, Origin.CLIENT, 0, appended));
            assertEquals(OUT_OF_ORDER_SEQUENCE, failure.detail());
            assertEquals(-1, MemorySegment.ofArray(before).mismatch(gap));
            MemorySegment twice = batch(0, 1000, -1, 0);
            failure = fails(Kind.OUT_OF_RANGE, () -> log.appendFollower(twice, 0, 0, appended));
            assertEquals(UNEXPECTED_APPEND_OFFSET, failure.detail());
            MemorySegment bad = batch(0, 1000, -1, 0);
            bad.set(ValueLayout.JAVA_BYTE, Samples.SIZE - 3, (byte) 0);
            fails(Kind.CORRUPT, () -> log.appendLeader(bad, 0, 0, Origin.CLIENT, 0, appended));
            fails(Kind.INVALID_ARGUMENT,
                    () -> log.appendLeader(batch(0, 0, -1, 0), 0, 0, Origin.CLIENT, -4, appended));
            assertEquals(1, offsets(log).logEndOffset());
            MemorySegment fixed = gap.asReadOnly();
            assertThrows(IllegalArgumentException.class,
                    () -> log.appendLeader(fixed, 0, 0, Origin.CLIENT, 0, appended));
            log.appendFollower(Arena.ofAuto().allocate(0), 0, 0, appended);
            assertEquals(-1, appended.lastOffset());
        }
    }

    @Test
    void aTransactionBeginsWhenItWasVerified() {
        try (Log log = open("verified-0")) {
            Appended appended = new Appended();
            var failure = fails(Kind.CONFLICT, () -> log.appendLeader(
                    inTransaction(9, 0), 0, 0, Origin.CLIENT, 0, appended));
            assertEquals(INVALID_TXN_STATE, failure.detail());
            long verification = log.startVerification(9, 0, 0, false, 0);
            assertNotEquals(0, verification);
            fails(Kind.CONFLICT, () -> log.appendLeader(
                    inTransaction(9, 0), 0, 0, Origin.CLIENT, 0, verification + 1, appended));
            assertEquals(0, offsets(log).logEndOffset());
            log.appendLeader(inTransaction(9, 0), 0, 0, Origin.CLIENT, 0, verification, appended);
            assertEquals(0, log.startVerification(9, 1, 0, false, 0));
            log.appendLeader(inTransaction(9, 1), 0, 0, Origin.CLIENT, 0, appended);
            log.setHighWatermark(2);
            assertEquals(2, offsets(log).logEndOffset());
            assertEquals(0, offsets(log).lastStableOffset());
            failure = fails(Kind.CONFLICT, () -> log.startVerification(9, 0, -1, true, 0));
            assertEquals(INVALID_PRODUCER_EPOCH, failure.detail());
            fails(Kind.INVALID_ARGUMENT, () -> log.startVerification(9, 0, 1 << 15, false, 0));
        }
    }

    @Test
    void aTransactionEndsWithAMarker() {
        try (Log log = open("ended-0")) {
            Appended appended = new Appended();
            long verification = log.startVerification(9, 0, 0, false, 0);
            log.appendLeader(inTransaction(9, 0), 0, 0, Origin.CLIENT, 0, verification, appended);
            MemorySegment marker = Arena.ofAuto().allocate(Samples.MARKER_SIZE);
            MemorySegment small = marker.asSlice(0, 10);
            assertEquals(Samples.MARKER_SIZE,
                    Bytes.writeEndMarker(true, 9, 0, 5, 1000, 7, 3, small));
            assertEquals(0, marker.get(ValueLayout.JAVA_BYTE, 7), "nothing is written");
            Bytes.writeEndMarker(true, 9, 0, 5, 1000, 7, 3, marker);
            assertEquals(7, marker.get(ValueLayout.JAVA_BYTE, 7));
            Bytes.validate(marker);
            log.appendLeader(marker, 0, 0, Origin.COORDINATOR, 1, appended);
            assertEquals(1, appended.lastOffset());
            log.setHighWatermark(2);
            AbortedTxns aborted = new AbortedTxns(2);
            assertEquals(1, log.aborted(0, 2, aborted));
            assertEquals(9, aborted.producerId(0));
            fails(Kind.INVALID_ARGUMENT,
                    () -> Bytes.writeEndMarker(false, -1, 0, 0, 0, 0, 0, marker));
            fails(Kind.INVALID_ARGUMENT,
                    () -> Bytes.writeEndMarker(false, 1, 1 << 15, 0, 0, 0, 0, marker));
        }
    }

    @Test
    void aLogKnowsItsTopicAndForgetsProducers() {
        LogOptions options = new LogOptions().topicId(ID).producerExpirationMs(1000);
        try (Log log = Log.open(home.resolve("silent-0"), options)) {
            assertEquals(ID, log.topicId());
            log.appendLeader(batch(0, 1000, 5, 0), 0, 0, Origin.CLIENT, 0, new Appended());
            Producers producers = new Producers(2);
            log.expireProducers(1999);
            assertEquals(1, log.producers(producers));
            log.expireProducers(2000);
            assertEquals(0, log.producers(producers));
            log.setHighestRemote(7);
            log.setHighestRemote(3);
            assertEquals(7, offsets(log).highestRemoteOffset());
            fails(Kind.INVALID_ARGUMENT, () -> log.setHighestRemote(-1));
        }
        try (Log log = Log.open(home.resolve("unknown-0"), new LogOptions())) {
            assertNull(log.topicId());
        }
        LogOptions never = new LogOptions().producerExpirationMs(-1);
        fails(Kind.INVALID_ARGUMENT, () -> Log.open(home.resolve("unknown-0"), never));
    }

    @Test
    void argumentsThatMakeNoSenseAreRefused() {
        LogOptions options = new LogOptions();
        fails(Kind.INVALID_ARGUMENT, () -> Log.open(home.resolve("nothing"), options));
        var failure = fails(Kind.NOT_FOUND, () -> Log.open(home.resolve("no/where-0"), options));
        assertEquals(2, failure.errno());
        for (var config : Map.of("segment.bytes", "many", "no.such.config", "1").entrySet()) {
            LogOptions wrong = new LogOptions().config(config.getKey(), config.getValue());
            failure = fails(Kind.INVALID_ARGUMENT, () -> Log.open(home.resolve("x-0"), wrong));
            assertTrue(failure.getMessage().contains(config.getKey()));
        }
        LogOptions cut = new LogOptions().config("segment.bytes", "1\0002");
        assertThrows(IllegalArgumentException.class, () -> Log.open(home.resolve("x-0"), cut));
        assertThrows(NullPointerException.class, () -> Log.open(null, options));
        assertThrows(NullPointerException.class, () -> Log.open(home.resolve("x-0"), null));
        try (Log log = open("sense-0")) {
            fill(log, 2);
            log.setHighWatermark(1);
            fails(Kind.OUT_OF_RANGE, () -> log.advanceStart(2));
            fails(Kind.INVALID_ARGUMENT, () -> log.setHighWatermark(-1));
            fails(Kind.INVALID_ARGUMENT, () -> log.truncateTo(-1, 0));
            fails(Kind.INVALID_ARGUMENT, () -> log.truncateFully(5, -7, 0));
            fails(Kind.INVALID_ARGUMENT, () -> log.assignEpoch(-1, 0));
            assertThrows(IllegalArgumentException.class, () -> log.epochEnd(0, new long[1]));
            assertThrows(NullPointerException.class, () -> log.offsets(null));
        }
    }
}
