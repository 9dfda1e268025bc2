package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A file that another process shortens gives an exception or what was there before. */
class TruncatedFilesTest {
    private static final int RECORDS = 400;
    private static final int SEGMENT_SIZE = 20_000;

    @TempDir
    Path home;

    private Log open() {
        return Log.open(home.resolve("orders-0"), new LogOptions()
                .config("segment.bytes", Integer.toString(SEGMENT_SIZE))
                .config("segment.index.bytes", "4096").config("index.interval.bytes", "100"));
    }

    /** What is done again and again while files shrink. */
    @FunctionalInterface
    private interface Look {
        void at(int offset) throws Exception;
    }

    private void whileFilesShrink(Look look) throws Exception {
        Process truncator = Truncator.start(home.resolve("orders-0"));
        Random random = new Random(2);
        for (int tries = 0; tries < Truncator.TRIES || truncator.isAlive(); tries++) {
            try {
                look.at(random.nextInt(RECORDS));
            } catch (SiltstoneException told) {
                assertTrue(told.kind() != Kind.BUG, told.getMessage());
            }
        }
        assertEquals(0, truncator.waitFor());
    }

    // Trap 1, of a log.
    @Test
    void aLogIsLookedUpWhileItsFilesShrink() throws Exception {
        try (Log log = open(); Fetches fetches = new Fetches(1)) {
            Samples.fill(log, RECORDS);
            log.flush(3000);
            whileFilesShrink(offset -> lookUp(log, fetches, offset));
        }
    }

    private static void lookUp(Log log, Fetches fetches, int offset) {
        fetches.set(0, log, offset, 500, UpTo.LOG_END, true);
        fetches.locate(1);
        // What is cut off is passed over, as by Kafka; nothing is made up.
        assertTrue(fetches.baseOffset(0) < RECORDS);
        assertTrue(fetches.position(0) <= SEGMENT_SIZE);
        fetches.read(0, Arena.ofAuto().allocate(4096));
        TimeOffset found = new TimeOffset();
        assertTrue(!log.offsetForTime(1000 + offset, found) || found.offset() < RECORDS);
    }

    @Test
    void aLogIsLookedUpWhoseFilesHaveHoles() throws Throwable {
        try (Log log = open()) {
            Samples.fill(log, RECORDS);
            log.stop();
        }
        List<Path> files;
        try (Stream<Path> all = Files.list(home.resolve("orders-0"))) {
            // Those of the indexes first.
            files = all.filter(file -> file.toString().matches(".*(index|log)"))
                    .sorted(Comparator.comparing(file -> file.toString().endsWith(".log")))
                    .toList();
        }
        assertTrue(files.size() > 6);
        for (Path file : files) {
            // What is opened may find that a file is not as it must be, and cut the log.
            for (long position = 0; position < file.toFile().length(); position += 4096) {
                Holes.punch(file, position, 4096);
                try (Log log = open(); Fetches fetches = new Fetches(1)) {
                    for (int offset = 0; offset < RECORDS; offset += 9) {
                        try {
                            lookUp(log, fetches, offset);
                        } catch (SiltstoneException told) {
                            assertTrue(told.kind() != Kind.BUG, told.getMessage());
                        }
                    }
                } catch (SiltstoneException told) {
                    assertTrue(told.kind() != Kind.BUG, told.getMessage());
                }
            }
        }
    }

    @Test
    void aRingReadsWhileFilesShrink() throws Exception {
        try (Log log = open(); Ring ring = new Ring(3)) {
            Samples.fill(log, RECORDS);
            log.flush(3000);
            Room room = new Room(4096);
            whileFilesShrink(offset -> {
                ring.locate(1, log, offset, 500, UpTo.LOG_END, true);
                ring.read(2, log, offset, 500, UpTo.LOG_END, true, room, 0, 4096);
                ring.warm(3, log, offset, 500, UpTo.LOG_END, true);
                ring.submit();
                assertEquals(3, ring.poll(-1));
                assertTrue(ring.position(0) <= SEGMENT_SIZE);
                for (int row = 0; row < 3; row++) {
                    assertTrue(ring.status(row) != Kind.BUG.code());
                }
                ring.poll(0);
            });
        }
    }

    @Test
    void directoriesAreVerifiedAndUploadsMadeWhileFilesShrink() throws Exception {
        try (Log log = open()) {
            Samples.fill(log, RECORDS);
            log.flush(3000);
            log.setHighWatermark(RECORDS);
            Segments segments = new Segments(9);
            log.segments(segments);
            long next = segments.baseOffset(1);
            Upload.Options options = new Upload.Options().topicId(new UUID(1, 2));
            try (LogDirs dirs = LogDirs.open(List.of(home))) {
                int[] tries = new int[1];
                whileFilesShrink(offset -> {
                    if (tries[0]++ % 10 == 0) {
                        dirs.verify(new VerifyOptions(), (done, total) -> true);
                    }
                    Upload.of(log, 0, next, options).close();
                });
            }
        }
    }
}
