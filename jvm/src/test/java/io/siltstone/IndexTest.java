package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

class IndexTest {
    private static final int ENTRIES = 500;

    @TempDir
    Path home;

    private Index offsets(Path path, int maxSizeBytes) {
        return Index.open(path, Index.Type.OFFSET, 100, maxSizeBytes, false);
    }

    private static void fails(Kind kind, Executable call) {
        SiltstoneException failure = assertThrows(SiltstoneException.class, call);
        assertEquals(kind, failure.kind(), failure.getMessage());
    }

    private static long packed(long relativeOffset, long position) {
        return relativeOffset << 32 | position;
    }

    @Test
    void anOffsetIndexIsAppendedToLookedUpAndCut() {
        Path path = home.resolve("00000000000000000100.index");
        try (Index index = offsets(path, 800)) {
            assertEquals(0, index.entryCount());
            assertEquals(100, index.maxEntries());
            assertEquals(800, index.fileSizeBytes());
            assertEquals(0, index.lookup(500));
            index.append(110, 1000);
            index.append(120, 2000);
            assertEquals(packed(10, 1000), index.lookup(119));
            assertEquals(packed(20, 2000), index.lookup(Long.MAX_VALUE));
            assertEquals(packed(20, 2000), index.upperBound(1000, 500));
            fails(Kind.NOT_FOUND, () -> index.upperBound(2000, 500));
            fails(Kind.INVALID_ARGUMENT, () -> index.append(120, 3000));
            fails(Kind.OUT_OF_RANGE, () -> index.append(100 + (1L << 31), 3000));
            IndexEntry entry = new IndexEntry();
            index.entry(1, entry);
            assertEquals(120, entry.offset());
            assertEquals(2000, entry.position());
            assertEquals(-1, entry.timestampMs());
            fails(Kind.OUT_OF_RANGE, () -> index.entry(2, entry));
            index.sanityCheck();
            index.truncateTo(null, 115);
            assertEquals(110, index.lastOffset());
        }
    }

    @Test
    void aTimeIndexKeepsItsLastSlot() {
        Path path = home.resolve("00000000000000000100.timeindex");
        try (Index index = Index.open(path, Index.Type.TIME, 100, 36, false)) {
            assertTrue(index.appendTime(1000, 110, false));
            assertFalse(index.appendTime(1000, 110, false));
            assertTrue(index.appendTime(2000, 120, false));
            fails(Kind.LIMIT, () -> index.appendTime(3000, 130, false));
            assertTrue(index.appendTime(3000, 130, true));
            assertEquals(3000, index.lastTimestampMs());
            IndexEntry entry = new IndexEntry();
            index.lookupTime(1999, entry);
            assertEquals(110, entry.offset());
            assertEquals(1000, entry.timestampMs());
            index.lookupTime(5, entry);
            assertEquals(-1, entry.timestampMs());
        }
    }

    @Test
    void aTransactionIndexTellsWhatAReaderMustKnow() {
        Path path = home.resolve("00000000000000000100.txnindex");
        AbortedEntries found = new AbortedEntries(4);
        try (Index index = Index.open(path, Index.Type.TXN, 100, 0, false)) {
            assertFalse(Files.exists(path), "it comes with its first entry");
            index.appendAborted(path, 7, 110, 120, 115);
            index.appendAborted(path, 8, 130, 140, 141);
            assertTrue(index.collectAborted(100, 125, found));
            assertEquals(1, found.count());
            assertEquals(7, found.producerId(0));
            assertEquals(110, found.firstOffset(0));
            assertEquals(120, found.lastOffset(0));
            assertEquals(115, found.lastStableOffset(0));
            index.collectAborted(Long.MIN_VALUE, Long.MAX_VALUE, found);
            assertEquals(2, found.count());
            fails(Kind.INVALID_ARGUMENT, () -> index.appendAborted(path, 8, 1, 2, 3));
        }
    }

    // Trap 2: what resizes makes a file that is gone.
    @Test
    void aFileThatWasDeletedIsMadeByAResize() throws Exception {
        Path path = home.resolve("00000000000000000100.index");
        try (Index index = offsets(path, 800)) {
            index.append(110, 1000);
            Files.delete(path);
            assertTrue(index.resize(path, 400));
            assertEquals(400, Files.size(path));
            assertFalse(index.resize(path, 407), "whole entries");
            fails(Kind.INVALID_ARGUMENT, () -> index.resize(path, -1));
            assertEquals(400, Files.size(path));
        }
    }

    @Test
    void aSizeBelowZeroMakesNoFile() {
        Path path = home.resolve("00000000000000000100.timeindex");
        for (int size : new int[] {-1, Integer.MIN_VALUE}) {
            fails(Kind.INVALID_ARGUMENT,
                    () -> Index.open(path, Index.Type.TIME, 100, size, false));
        }
        assertFalse(Files.exists(path));
    }

    // Traps 3 and 4: closed while others look up, and used after that.
    @Test
    void aClosedIndexGivesAnExceptionAlsoToThoseWhoLookUp() throws Exception {
        for (int round = 0; round < 50; round++) {
            Index index = offsets(home.resolve(round + ".index"), 800);
            index.append(110, 1000);
            AtomicInteger closed = new AtomicInteger();
            List<Thread> threads = new ArrayList<>();
            for (int at = 0; at < 3; at++) {
                threads.add(Thread.ofPlatform().start(() -> {
                    try {
                        while (true) {
                            assertEquals(packed(10, 1000), index.lookup(200));
                        }
                    } catch (SiltstoneException failure) {
                        closed.addAndGet(failure.kind() == Kind.CLOSED ? 1 : 0);
                    }
                }));
            }
            Thread.yield();
            index.close();
            index.close();
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(3, closed.get());
            fails(Kind.CLOSED, () -> index.append(120, 2000));
            fails(Kind.CLOSED, index::sanityCheck);
        }
    }

    /** An index that is let go of at once, as a copy of its fields: what a spy is. */
    private Index spyOf(Path path) throws Exception {
        Index index = offsets(path, 800);
        index.append(110, 1000);
        Constructor<Index> constructor = Index.class.getDeclaredConstructor(long.class);
        constructor.setAccessible(true);
        Index spy = constructor.newInstance(0);
        for (Field field : Index.class.getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                field.set(spy, field.get(index));
            }
        }
        return spy;
    }

    // Trap 5: spies copy fields, so two objects share one handle.
    @Test
    void aCopyOfTheFieldsOutlivesItsOriginal() throws Exception {
        Path path = home.resolve("00000000000000000100.index");
        try (Index spy = spyOf(path)) {
            for (int at = 0; at < 10; at++) {
                System.gc();
                Thread.sleep(10);
            }
            assertEquals(packed(10, 1000), spy.lookup(200));
            assertEquals(1, spy.entryCount());
            spy.append(120, 2000);
        }
    }

    // Traps 6 and 7: no descriptor is held, and the path is the host's to change.
    @Test
    void aRenamedFileIsFlushedWhereItIs() throws Exception {
        Path path = home.resolve("00000000000000000100.index");
        try (Index index = offsets(path, 800)) {
            index.append(110, 1000);
            Path renamed = Files.move(path, home.resolve("00000000000000000100.index.deleted"));
            fails(Kind.NOT_FOUND, () -> index.flush(path));
            index.flush(renamed);
            index.trim(renamed);
            assertEquals(8, Files.size(renamed));
            try (var all = Files.list(Path.of("/proc/self/fd"))) {
                assertTrue(all.noneMatch(fd -> isLinkTo(fd, renamed)));
            }
        }
    }

    private static boolean isLinkTo(Path fd, Path file) {
        try {
            return Files.readSymbolicLink(fd).equals(file);
        } catch (java.io.IOException gone) {
            return false;
        }
    }

    // Trap 8: a created index has no entries, an existing one is full up to its length.
    @Test
    void whetherTheFileWasThereSaysHowFullItIs() {
        Path path = home.resolve("00000000000000000100.index");
        try (Index index = offsets(path, 805)) {
            assertEquals(0, index.entryCount());
            assertEquals(800, path.toFile().length());
        }
        try (Index index = offsets(path, 80)) {
            assertEquals(100, index.entryCount());
        }
        fails(Kind.NOT_FOUND, () -> Index.open(
                home.resolve("none.index"), Index.Type.OFFSET, 0, 80, true));
        fails(Kind.INVALID_ARGUMENT, () -> offsets(home.resolve("small.index"), 7));
    }

    // Trap 1: a fault of a map would end the virtual machine.
    @Test
    void anIndexIsLookedUpWhileAnotherProcessShortensItsFile() throws Exception {
        Path path = home.resolve("00000000000000000100.index");
        try (Index index = offsets(path, ENTRIES * 8)) {
            for (int at = 1; at <= ENTRIES; at++) {
                index.append(100 + at, at * 10);
            }
            index.flush(path);
            Process truncator = Truncator.start(home);
            Random random = new Random(3);
            for (int tries = 0; tries < Truncator.TRIES || truncator.isAlive(); tries++) {
                int at = 1 + random.nextInt(ENTRIES);
                try {
                    assertEquals(packed(at, at * 10L), index.lookup(100 + at));
                    if (tries % 100 == 0) {
                        Index.open(path, Index.Type.OFFSET, 100, 80, true).close();
                    }
                } catch (SiltstoneException told) {
                    assertTrue(told.kind() != Kind.BUG, told.getMessage());
                }
            }
            assertEquals(0, truncator.waitFor());
        }
    }
}
