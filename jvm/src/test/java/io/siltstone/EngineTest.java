package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** The log directories of a broker. */
class EngineTest {
    private static final UUID ID = new UUID(7, 8);
    private static final long NOW_MS = 1_000_000;

    @TempDir
    Path home;

    private Engine open(String... dirs) {
        EngineOptions options = new EngineOptions().nowMs(NOW_MS).threads(2)
                .config("log.segment.bytes", "1000").config("log.retention.ms", "1000")
                .topicConfig("kept", "segment.bytes", "2000").keepLost().openFilesMax(50);
        return Engine.open(List.of(dirs).stream().map(home::resolve).toList(), options);
    }

    private static SiltstoneException fails(Kind kind, Executable call) {
        SiltstoneException failure = assertThrows(SiltstoneException.class, call);
        assertEquals(kind, failure.kind(), failure.getMessage());
        return failure;
    }

    private static EngineStats stats(Engine engine) {
        EngineStats stats = new EngineStats();
        engine.stats(stats);
        return stats;
    }

    /** Runs what is due; the kinds of it. */
    private static Set<Integer> work(Engine engine, long nowMs) {
        Set<Integer> kinds = new TreeSet<>();
        Works works = new Works(3);
        while (engine.due(nowMs, works) > 0) {
            for (int row = 0; row < works.count(); row++) {
                engine.run(works.id(row), nowMs);
                kinds.add(works.kind(row));
            }
        }
        return kinds;
    }

    @Test
    void logsAreMadeWrittenStoppedAndFoundAgain() {
        try (Engine engine = open("one", "two")) {
            NewLog how = new NewLog().topicId(ID).nowMs(NOW_MS).config("segment.bytes", "2000");
            for (int partition = 0; partition < 3; partition++) {
                try (Log log = engine.create("orders", partition, how)) {
                    Samples.fill(log, 5 + partition);
                    log.setHighWatermark(3);
                }
            }
            EnginePartitions partitions = new EnginePartitions(2);
            assertEquals(3, engine.partitions(partitions));
            assertFalse(partitions.isComplete());
            assertEquals("orders", partitions.topic(1));
            assertEquals(1, partitions.partition(1));
            assertEquals(3, stats(engine).logs());
            assertEquals(-1, stats(engine).previousBrokerEpoch());
            fails(Kind.CONFLICT, () -> engine.create(
                    "orders", 0, new NewLog().topicId(new UUID(1, 1))));
            Map<String, String> wrong = Map.of("segment.byte", "1");
            SiltstoneException unknown =
                    fails(Kind.INVALID_ARGUMENT, () -> engine.setConfig("orders", wrong));
            assertTrue(unknown.getMessage().contains("\"segment.byte\""), unknown.getMessage());
            fails(Kind.INVALID_ARGUMENT, () -> engine.create(
                    "orders", 9, new NewLog().config("segment.byte", "1")));
            engine.checkpoint();
            assertTrue(Files.exists(home.resolve("one/replication-offset-checkpoint")));
            assertEquals(2, engine.stop(17, 2));
            fails(Kind.CLOSED, () -> engine.log("orders", 0));
        }
        try (Engine engine = open("one", "two")) {
            EngineStats stats = stats(engine);
            assertEquals(3, stats.logs());
            assertEquals(17, stats.previousBrokerEpoch());
            assertEquals(0, stats.shutLogs() + stats.failedLogs() + stats.offlineDirs()
                    + stats.futureLogs() + stats.uncleanableLogs() + stats.waitingFolders());
            assertEquals(3, stats.segments());
            assertTrue(stats.sizeBytes() > 0 && stats.openFiles() > 0);
            assertTrue(stats.openSegments() >= 0 && stats.dirtyBytes() >= 0);
            try (Log log = engine.log("orders", 2)) {
                assertEquals(7, Samples.offsets(log).logEndOffset());
                assertEquals(3, Samples.offsets(log).highWatermark());
            }
            fails(Kind.NOT_FOUND, () -> engine.log("orders", 9));
        }
    }

    @Test
    void aLoadTellsHowFarItIsAndCanBeEnded() {
        List<Path> dirs = List.of(home.resolve("data"));
        try (Engine engine = Engine.open(dirs, new EngineOptions(), (done, total) -> true);
                Log log = engine.create("orders", 0, new NewLog())) {
            Samples.fill(log, 30);
        }
        fails(Kind.CANCELLED, () -> Engine.open(dirs, new EngineOptions(), (done, total) -> false));
        IllegalStateException own = assertThrows(IllegalStateException.class,
                () -> Engine.open(dirs, new EngineOptions(), (done, total) -> {
                    throw new IllegalStateException("no more");
                }));
        assertEquals("no more", own.getMessage());
        long[] told = {-1, -1};
        try (Engine engine = Engine.open(dirs, new EngineOptions(), (done, total) -> {
                    told[0] = done;
                    told[1] = total;
                    return true;
                });
                Log log = engine.log("orders", 0)) {
            assertEquals(30, Samples.offsets(log).logEndOffset());
        }
        assertTrue(told[0] >= 0 && told[0] <= told[1]);
    }

    @Test
    void whatIsDueIsHandedOutOnceAndRun() {
        try (Engine engine = open("data")) {
            Log log = engine.create("orders", 0, new NewLog().nowMs(NOW_MS));
            Log kept = engine.create(
                    "kept", 0, new NewLog().nowMs(NOW_MS).config("retention.ms", "-1"));
            Samples.fill(log, 30);
            Samples.fill(kept, 30);
            log.setHighWatermark(30);
            kept.setHighWatermark(30);
            Set<Integer> kinds = work(engine, NOW_MS + 3_600_000);
            assertTrue(kinds.contains(Codes.WORK_RETENTION), kinds.toString());
            assertTrue(kinds.contains(Codes.WORK_HIGH_WATERMARKS), kinds.toString());
            assertTrue(Samples.offsets(log).logStartOffset() > 0);
            assertEquals(0, Samples.offsets(kept).logStartOffset());

            engine.setConfig("kept", Map.of("retention.ms", "1"));
            Works works = new Works(64);
            long later = NOW_MS + 7_200_000;
            int due = engine.due(later, works);
            assertTrue(due > 0);
            assertEquals(0, engine.due(later, new Works(64)), "it is handed out once");
            for (int row = 0; row < due; row++) {
                engine.drop(works.id(row));
            }
            fails(Kind.NOT_FOUND, () -> engine.run(works.id(0), later));
            fails(Kind.NOT_FOUND, () -> engine.drop(works.id(0)));
            work(engine, later);
            assertTrue(Samples.offsets(kept).logStartOffset() > 0);

            engine.delete("orders", 0, later);
            fails(Kind.NOT_FOUND, () -> engine.log("orders", 0));
            assertEquals(1, stats(engine).waitingFolders());
            work(engine, later + 3_600_000);
            assertEquals(0, stats(engine).waitingFolders());
            log.close();
            kept.close();
        }
    }

    @Test
    void logsMoveFromOneDirectoryToAnother() {
        try (Engine engine = open("one", "two")) {
            Path one = home.resolve("one");
            Path two = home.resolve("two");
            engine.create("orders", 0, new NewLog().dir(one)).close();
            fails(Kind.NOT_FOUND, () -> engine.futureLog("orders", 0));
            fails(Kind.NOT_FOUND, () -> engine.replace("orders", 0, NOW_MS));
            NewLog future = new NewLog().dir(two).isFuture();
            engine.create("orders", 0, future).close();
            engine.deleteFuture("orders", 0, NOW_MS);
            fails(Kind.NOT_FOUND, () -> engine.deleteFuture("orders", 0, NOW_MS));
            engine.create("orders", 0, future).close();
            try (Log log = engine.futureLog("orders", 0)) {
                Samples.fill(log, 3);
            }
            engine.replace("orders", 0, NOW_MS);
            try (Log log = engine.log("orders", 0)) {
                assertEquals(3, Samples.offsets(log).logEndOffset());
            }
            engine.create("old", 0, new NewLog().dir(one)).close();
            engine.markStray("old", 0, NOW_MS);
            fails(Kind.NOT_FOUND, () -> engine.log("old", 0));
            engine.takeOffline(two);
            fails(Kind.NOT_FOUND, () -> engine.takeOffline(two));
            fails(Kind.IO, () -> engine.log("orders", 0));
            assertEquals(1, stats(engine).offlineDirs());
        }
    }

    @Test
    void logsOutliveTheirEngine() {
        Engine engine = open("data");
        Log log = engine.create("orders", 0, new NewLog());
        Samples.fill(log, 3);
        fails(Kind.CONFLICT, () -> open("data"));
        engine.close();
        engine.close();
        assertTrue(engine.isClosed());
        fails(Kind.CLOSED, () -> engine.checkpoint());
        Samples.offsets(log);
        log.close();
        try (Engine again = open("data"); Log found = again.log("orders", 0)) {
            assertEquals(3, Samples.offsets(found).logEndOffset(), "it was recovered");
        }
    }

    @Test
    void enginesThatMakeNoSenseAreRefused() throws Exception {
        EngineOptions options = new EngineOptions();
        fails(Kind.INVALID_ARGUMENT, () -> Engine.open(List.of(), options));
        assertThrows(NullPointerException.class, () -> Engine.open(null, options));
        assertThrows(NullPointerException.class, () -> Engine.open(List.of(home), null));
        assertThrows(NullPointerException.class, () -> options.topicConfig("x", null, "y"));
        assertThrows(IllegalArgumentException.class, () -> options.threads(1 << 20));
        fails(Kind.INVALID_ARGUMENT, () -> Engine.open(
                List.of(home.resolve("x")), new EngineOptions().config("log.segment.bytes", "z")));
        Path file = Files.writeString(home.resolve("file"), "");
        assertThrows(SiltstoneException.class, () -> Engine.open(
                List.of(file), new EngineOptions().io(LogOptions.Io.SYSCALLS)));
        try (Engine engine = Engine.open(
                List.of(home.resolve("d")), new EngineOptions().owner("cluster", 3))) {
            fails(Kind.INVALID_ARGUMENT, () -> engine.create("no/topic", 0, new NewLog()));
            fails(Kind.INVALID_ARGUMENT, () -> engine.create(
                    "orders", 0, new NewLog().config("segment.bytes", "many")));
            assertThrows(SiltstoneException.class, () -> engine.create(
                    "orders", 0, new NewLog().dir(home.resolve("elsewhere")).isNew()));
            fails(Kind.INVALID_ARGUMENT, () -> engine.setConfig(
                    "orders", Map.of("segment.bytes", "many")));
            assertThrows(IllegalArgumentException.class, () -> engine.log("a\0b", 0));
            assertThrows(IllegalArgumentException.class, () -> engine.stop(0, -1));
            assertThrows(SiltstoneException.class, () -> engine.create(
                    "orders", 0, new NewLog().isFuture()));
        }
    }
}
