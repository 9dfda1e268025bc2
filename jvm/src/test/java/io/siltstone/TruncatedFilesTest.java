package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A file that another process shortens gives an exception or what was there before. */
class TruncatedFilesTest {
    private static final int RECORDS = 400;
    private static final int TRIES = 10_000;

    @TempDir
    Path home;

    @Test
    void aLogIsLookedUpWhileItsFilesShrink() throws Exception {
        Path dir = home.resolve("orders-0");
        LogOptions options = new LogOptions().config("segment.bytes", "20000")
                .config("segment.index.bytes", "4096").config("index.interval.bytes", "100");
        try (Log log = Log.open(dir, options); Fetches fetches = new Fetches(1)) {
            Samples.fill(log, RECORDS);
            log.flush(3000);
            Process truncator = new ProcessBuilder(Children.java(
                    Truncator.class, List.of(), List.of(dir.toString(), "1500")))
                    .redirectError(ProcessBuilder.Redirect.DISCARD).start();
            MemorySegment bytes = Arena.ofAuto().allocate(4096);
            TimeOffset found = new TimeOffset();
            Random random = new Random(2);
            int tries = 0;
            for (; tries < TRIES || truncator.isAlive(); tries++) {
                int offset = random.nextInt(RECORDS);
                try {
                    fetches.set(0, log, offset, 500, UpTo.LOG_END, true);
                    fetches.locate(1);
                    // What is cut off is passed over, as by Kafka; nothing is made up.
                    assertTrue(fetches.baseOffset(0) < RECORDS);
                    assertTrue(fetches.position(0) <= 20_000);
                    fetches.read(0, bytes);
                    log.offsetForTime(1000 + offset, found);
                } catch (SiltstoneException told) {
                    assertTrue(told.kind() != Kind.BUG, told.getMessage());
                }
            }
            assertEquals(0, truncator.waitFor());
        }
    }
}
