package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Files that can grow no further give an exception, and what was appended before is there. That is
 * tried in a virtual machine of its own, whose files have a largest size.
 */
class FullDiskTest {
    private static final int ENTRIES_MAX = 10_000;
    /** {@code EFBIG}. */
    private static final int TOO_LARGE = 27;
    private static final String LIMITS = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";

    @TempDir
    Path home;

    private static LogOptions options() {
        return new LogOptions().config("segment.index.bytes", "4096");
    }

    /** What is done until no file can grow. */
    @FunctionalInterface
    private interface Step {
        void at(long number);
    }

    /** How often something went well before a file was full. */
    private static long untilFull(Step step) {
        for (long number = 0; number < ENTRIES_MAX; number++) {
            try {
                step.at(number);
            } catch (SiltstoneException told) {
                boolean isFull = told.kind() == Kind.IO && told.errno() == TOO_LARGE;
                if (!isFull) {
                    throw told;
                }
                return number;
            }
        }
        throw new IllegalStateException("nothing was full");
    }

    /** Of the virtual machine with the limit: what it prints is how much went well. */
    public static void main(String[] arguments) {
        Path home = Path.of(arguments[0]);
        try (Log log = Log.open(home.resolve("full-0"), options())) {
            Appended appended = new Appended();
            System.out.println(untilFull(number -> log.appendLeader(
                    Samples.batch(0, 1000 + number, -1, 0), 3, 2000, Origin.CLIENT, 0, appended)));
            // It is read as before.
            try (Fetches fetches = new Fetches(1)) {
                fetches.set(0, log, 0, 1000, UpTo.LOG_END, true);
                fetches.locate(1);
                assertTrue(fetches.sizeBytes(0) > 0);
            }
        }
        Path path = home.resolve("0.txnindex");
        try (Index index = Index.open(path, Index.Type.TXN, 0, 0, false)) {
            System.out.println(untilFull(
                    number -> index.appendAborted(path, 9, number, number, number)));
        }
        Path offsets = home.resolve("0.index");
        try (Index index = Index.open(offsets, Index.Type.OFFSET, 0, 800, false)) {
            index.append(1, 100);
            untilFull(number -> index.resize(offsets, 8000 * (1 + (int) number)));
            assertEquals(1L << 32 | 100, index.lookup(5));
            index.trim(offsets);
        }
        untilFull(number -> Index.open(home.resolve("large.index"), Index.Type.TIME, 0, 1 << 20,
                false).close());
    }

    @Test
    void whatWasAppendedBeforeADiskIsFullIsThere() throws Exception {
        List<String> command = new ArrayList<>(List.of("sh", "-c", LIMITS, "sh"));
        // Whose own files would be too large, too.
        List<String> options = List.of("-XX:-UsePerfData",
                "-Dsiltstone.library.path=" + Library.path().toAbsolutePath());
        command.addAll(Children.java(FullDiskTest.class, options, List.of(home.toString())));
        var child = Children.run(command, home);
        assertEquals(0, child.code(), child.text());
        List<String> counts = child.text().lines().toList();
        assertEquals(2, counts.size(), child.text());

        long appended = Long.parseLong(counts.get(0));
        assertTrue(appended > 100, child.text());
        try (Log log = Log.open(home.resolve("full-0"), options().unclean())) {
            assertEquals(appended, Samples.offsets(log).logEndOffset());
        }
        int entries = Integer.parseInt(counts.get(1));
        assertTrue(entries > 100, child.text());
        AbortedEntries found = new AbortedEntries(ENTRIES_MAX);
        Path path = home.resolve("0.txnindex");
        try (Index index = Index.open(path, Index.Type.TXN, 0, 0, true)) {
            index.collectAborted(Long.MIN_VALUE, Long.MAX_VALUE, found);
        }
        assertEquals(entries, found.count());
        try (Index index = Index.open(home.resolve("0.index"), Index.Type.OFFSET, 0, 0, true)) {
            assertEquals(1L << 32 | 100, index.lookup(5));
        }
    }
}
