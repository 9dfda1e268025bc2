package io.siltstone;

import static io.siltstone.Samples.batch;
import static io.siltstone.Samples.fill;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What becomes of objects that are closed, forgotten, or used by many threads. */
class LifetimeTest {
    @TempDir
    Path home;

    private Log open(String name) {
        return Log.open(home.resolve(name), new LogOptions().config("segment.bytes", "1000"));
    }

    /** How many descriptors are open below a folder. */
    private static long descriptors(Path folder) throws IOException {
        long count = 0;
        try (var all = Files.list(Path.of("/proc/self/fd"))) {
            for (Path fd : all.toList()) {
                try {
                    count += Files.readSymbolicLink(fd).startsWith(folder) ? 1 : 0;
                } catch (IOException gone) {
                    // It was the listing's own.
                }
            }
        }
        return count;
    }

    private static void eventuallyNoDescriptors(Path folder) throws Exception {
        for (int at = 0; at < 200 && descriptors(folder) > 0; at++) {
            System.gc();
            Thread.sleep(20);
        }
        assertEquals(0, descriptors(folder));
    }

    @Test
    void closingGivesBackAtOnceAndTwiceIsOnce() throws IOException {
        Log log = open("closed-0");
        fill(log, 3);
        assertTrue(descriptors(home) > 0);
        log.close();
        log.close();
        assertTrue(log.isClosed());
        assertEquals(0, descriptors(home));
        var failure = assertThrows(SiltstoneException.class, () -> log.flush(0));
        assertEquals(Kind.CLOSED, failure.kind());
    }

    @Test
    void aFetchKeepsItsLogUntilItLetsGo() throws IOException {
        try (Fetches fetches = new Fetches(1)) {
            Log log = open("kept-0");
            fill(log, 3);
            fetches.set(0, log, 0, 1000, UpTo.LOG_END, false);
            log.close();
            assertTrue(descriptors(home) > 0);
            fetches.clear(0);
            assertEquals(0, descriptors(home));
        }
    }

    /** Slots of each kind that name logs which nothing else does, and bounds of another. */
    private void nameAlone(Fetches fetches, Appends appends, Ring ring, Bounds bounds) {
        Log log = open("named-0");
        fill(log, 3);
        fetches.set(0, log, 0, 1000, UpTo.LOG_END, false);
        bounds.log(log);
        appends.setLeader(0, open("named-1"), roomOf(batch(0, 1000, -1, 0)), 0, Samples.SIZE, 3,
                2000, Origin.CLIENT, 0);
        ring.appendLeader(7, open("named-2"), roomOf(batch(0, 1000, -1, 0)), 0, Samples.SIZE, 3,
                2000, Origin.CLIENT, 0, false);
    }

    private static Room roomOf(MemorySegment batch) {
        Room room = new Room(batch.byteSize());
        room.memory().copyFrom(batch);
        return room;
    }

    // A log was closed by the garbage collector as soon as slots alone named it.
    @Test
    void aLogThatOnlyASlotNamesStaysOpen() throws Exception {
        Bounds bounds = new Bounds(0).leaderEpoch(3);
        try (Fetches fetches = new Fetches(1); Appends appends = new Appends(1);
                Ring ring = new Ring(1)) {
            nameAlone(fetches, appends, ring, bounds);
            for (int at = 0; at < 10; at++) {
                System.gc();
                Thread.sleep(10);
            }
            fetches.locate(1);
            assertEquals(0, fetches.status(0));
            assertTrue(fetches.sizeBytes(0) > 0);
            appends.append(1);
            assertEquals(0, appends.status(0));
            ring.submit();
            assertEquals(1, ring.poll(-1));
            assertEquals(0, ring.status(0));
            // By itself, too.
            fetches.clear(0);
            System.gc();
            Thread.sleep(10);
            bounds.leaderFetch(false, 0, 3, -1, new FetchVerdict());
        }
        bounds.log(null);
        eventuallyNoDescriptors(home);
    }

    private void forget() {
        Log log = open("forgotten-0");
        fill(log, 3);
        Fetches fetches = new Fetches(1);
        fetches.set(0, log, 0, 1000, UpTo.LOG_END, false);
        fetches.locate(1);
        fetches.moveLease(0, new Leases());
        fetches.locate(1);
    }

    @Test
    void whatIsForgottenIsGivenBack() throws Exception {
        forget();
        eventuallyNoDescriptors(home);
    }

    /** Many threads call, one closes what they use and opens another. */
    @Test
    void callsAndClosesMeet() throws Exception {
        AtomicBoolean isOver = new AtomicBoolean();
        AtomicLong good = new AtomicLong();
        Log[] current = {open("shared-0")};
        fill(current[0], 20);
        Callable<Void> caller = () -> {
            Offsets offsets = new Offsets();
            TimeOffset found = new TimeOffset();
            try (Fetches fetches = new Fetches(4)) {
                while (!isOver.get()) {
                    Log log = current[0];
                    try {
                        log.offsets(offsets);
                        assertEquals(20, offsets.logEndOffset());
                        fetches.set((int) (good.get() & 3), log, 3, 99, UpTo.LOG_END, true);
                        fetches.locate(4);
                        assertTrue(log.offsetForTime(1010, found));
                        good.incrementAndGet();
                    } catch (SiltstoneException closed) {
                        assertEquals(Kind.CLOSED, closed.kind());
                    }
                }
            }
            return null;
        };
        try (ExecutorService pool = Executors.newFixedThreadPool(3)) {
            List<Future<Void>> callers = new ArrayList<>();
            for (int at = 0; at < 3; at++) {
                callers.add(pool.submit(caller));
            }
            try {
                for (int at = 0; at < 100; at++) {
                    Log last = current[0];
                    // Who fetches from it still names it: closed alone it would not be let go.
                    last.stop();
                    last.close();
                    current[0] = open("shared-0");
                    Thread.yield();
                }
            } finally {
                isOver.set(true);
            }
            for (Future<Void> each : callers) {
                each.get();
            }
        }
        current[0].close();
        assertTrue(good.get() > 0);
        assertEquals(0, descriptors(home));
    }

    /** A virtual thread may be on another carrier at its next call: its failure stays its own. */
    @Test
    void failuresBelongToTheirCalls() throws Exception {
        try (ExecutorService pool = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<String>> messages = new ArrayList<>();
            for (int at = 0; at < 500; at++) {
                String name = "none-" + at + "x";
                messages.add(pool.submit(() -> {
                    Thread.yield();
                    return assertThrows(SiltstoneException.class, () -> open(name)).getMessage();
                }));
            }
            for (int at = 0; at < 500; at++) {
                String message = messages.get(at).get();
                assertTrue(message.contains("none-" + at + "x"), message);
            }
        }
    }

    /** The library is built with a function that panics. */
    @Test
    void aFaultOfTheLibraryIsAnExceptionAndEndsTheObject() throws Throwable {
        try (Log log = open("panics-0")) {
            MemorySegment symbol = SymbolLookup.libraryLookup(Library.path(), Arena.global())
                    .find("silt_test_panic_on_log").orElseThrow();
            var panic = Linker.nativeLinker().downcallHandle(symbol, FunctionDescriptor.of(
                    ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
            var failure = assertThrows(SiltstoneException.class, () -> log.handle().call(
                    (object, scratch) -> (int) panic.invokeExact(object, scratch.error)));
            assertEquals(Kind.BUG, failure.kind());
            assertTrue(failure.getMessage().contains("as it was asked to"));
            failure = assertThrows(SiltstoneException.class, () -> log.flush(0));
            assertEquals(Kind.CLOSED, failure.kind());
        }
    }
}
