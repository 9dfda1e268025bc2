package io.siltstone.bench;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.siltstone.Appended;
import io.siltstone.Fetches;
import io.siltstone.Index;
import io.siltstone.Library;
import io.siltstone.Log;
import io.siltstone.LogOptions;
import io.siltstone.Origin;
import io.siltstone.Samples;
import io.siltstone.SegmentScan;
import io.siltstone.TierColumns;
import io.siltstone.TierColumns.Column;
import io.siltstone.UpTo;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.ThreadLocalRandom;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;

/**
 * What calls cost from Java: nanoseconds an operation, the mean and the best of two hundred rounds
 * of 10 ms. A round is so short that on a machine that others use, too, some are not interrupted.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Crossings {
    private static final int ENTRIES = 1_310_720;
    private static final int WARM = 20_000;
    private static final int PARTITIONS = 64;

    private static final int LOGS = 1000;
    private static final int SEGMENTS = 100_000;
    private static final int BATCH_SIZE = 16 << 10;
    /** More than caches hold, and a part that they do. */
    private static final long LOG_SIZE = 256L << 20;
    private static final long PART_SIZE = 8L << 20;

    private static final int APPENDED_SIZE = 1 << 10;

    /** A function of the C library that does next to nothing. */
    private static final MethodHandle ABS = Linker.nativeLinker().downcallHandle(
            Linker.nativeLinker().defaultLookup().find("abs").orElseThrow(),
            FunctionDescriptor.of(JAVA_INT, JAVA_INT));

    private Path home;
    private Index index;
    private Log[] logs;
    private Fetches fetches;
    private TierColumns oneAsRange;
    private TierColumns oneAsList;
    private TierColumns many;

    /** The bytes of a log, in memory of the host, of one idempotent producer. */
    @State(Scope.Benchmark)
    public static class Scanned {
        private final MemorySegment log = Arena.ofAuto().allocate(LOG_SIZE);
        private final SegmentScan scan = new SegmentScan(1 << 20, 1 << 20, 0, 8);
        private long position;

        /** Writes to all of its pages. */
        @Setup
        public void fill() {
            for (int at = 0; at < LOG_SIZE / BATCH_SIZE; at++) {
                MemorySegment batch = Samples.large(at, 7, at, BATCH_SIZE);
                log.asSlice((long) at * BATCH_SIZE, BATCH_SIZE).copyFrom(batch);
            }
        }

        /** All that a part tells, as a segment of its own. */
        private long walk(long begin) {
            scan.run(log.asSlice(begin, PART_SIZE), begin / BATCH_SIZE);
            return scan.nextOffset();
        }
    }

    /** A log that is appended to, and emptied before each round. */
    @State(Scope.Thread)
    public static class Appending {
        private Path home;
        private Log log;
        private final MemorySegment batch = Samples.whole(0, APPENDED_SIZE);
        private final MemorySegment sent = Arena.ofAuto().allocate(APPENDED_SIZE);
        private final Appended appended = new Appended();

        /** Opens it. */
        @Setup
        public void open() throws Exception {
            home = Files.createTempDirectory("siltstone-bench-");
            log = Log.open(home.resolve("appended-0"), new LogOptions());
        }

        /** Rounds would fill a disk. */
        @Setup(Level.Iteration)
        public void empty() {
            log.truncateFully(0, 0, 1000);
        }

        /** Nothing is left. */
        @TearDown
        public void close() throws Exception {
            log.close();
            delete(home);
        }
    }

    /** An index as large as Kafka makes one, and partitions with a batch each. */
    @Setup
    public void open() throws Exception {
        home = Files.createTempDirectory("siltstone-bench-");
        index = Index.open(home.resolve("0.index"), Index.Type.OFFSET, 0, ENTRIES * 8, false);
        for (int at = 0; at < ENTRIES; at++) {
            index.append(at + 1, at);
        }
        logs = new Log[PARTITIONS];
        fetches = new Fetches(PARTITIONS);
        Appended appended = new Appended();
        for (int at = 0; at < PARTITIONS; at++) {
            logs[at] = Log.open(home.resolve("orders-" + at), new LogOptions());
            for (int batch = 0; batch < 20; batch++) {
                MemorySegment bytes = Samples.batch(0, 1000, -1, 0);
                logs[at].appendLeader(bytes, 0, 1000, Origin.CLIENT, 0, appended);
            }
            logs[at].setHighWatermark(20);
            fetches.set(at, logs[at], 10, 1 << 20, UpTo.HIGH_WATERMARK, true);
        }
    }

    /** Columns of many logs, of which all but the last segments are to be uploaded. */
    @Setup
    public void fillColumns() {
        oneAsRange = columns(1);
        oneAsRange.of(Column.FIRST_SEGMENT);
        oneAsRange.of(Column.ELIGIBLE_COUNT);
        oneAsList = columns(1);
        oneAsList.of(Column.ELIGIBLE);
        many = columns(LOGS);
        many.of(Column.FIRST_SEGMENT);
        many.of(Column.ELIGIBLE_COUNT);
        many.of(Column.SUM_BYTES);
    }

    private static TierColumns columns(int logs) {
        TierColumns columns = new TierColumns(logs, SEGMENTS);
        for (int at = 0; at < SEGMENTS; at++) {
            int number = at % (SEGMENTS / logs);
            columns.of(Column.BASE_OFFSET).setAtIndex(JAVA_LONG, at, number * 1000L);
            columns.of(Column.START_BYTES).setAtIndex(JAVA_LONG, at, at * 1_000_000L);
            columns.of(Column.MAX_TIMESTAMP_MS).setAtIndex(JAVA_LONG, at, number);
        }
        for (int at = 0; at < logs; at++) {
            long end = (long) (at + 1) * SEGMENTS / logs;
            columns.of(Column.SEGMENT_END).setAtIndex(JAVA_LONG, at, end);
            columns.of(Column.LAST_STABLE_OFFSET).setAtIndex(JAVA_LONG, at, Long.MAX_VALUE);
            columns.of(Column.COPIED_OFFSET).setAtIndex(JAVA_LONG, at, 39_999);
        }
        return columns;
    }

    /** Nothing is left. */
    @TearDown
    public void close() throws Exception {
        fetches.close();
        for (Log log : logs) {
            log.close();
        }
        index.close();
        delete(home);
    }

    private static void delete(Path folder) throws Exception {
        try (var files = Files.walk(folder)) {
            files.sorted(java.util.Comparator.reverseOrder()).map(Path::toFile)
                    .forEach(java.io.File::delete);
        }
    }

    /** What any call must cost: one of another library that does nothing either. */
    @Benchmark
    public int emptyFunction() throws Throwable {
        return (int) ABS.invokeExact(1);
    }

    /** A call that does nothing. */
    @Benchmark
    public int emptyCrossing() {
        return Library.abiVersion();
    }

    /** Any offset. */
    @Benchmark
    public long lookupRandom() {
        return index.lookup(ThreadLocalRandom.current().nextInt(ENTRIES));
    }

    /** Offsets near the end, where consumers read. */
    @Benchmark
    public long lookupWarmEnd() {
        return index.lookup(ENTRIES - ThreadLocalRandom.current().nextInt(WARM));
    }

    /** The same by two threads on one index. */
    @Benchmark
    @Threads(2)
    public long lookupWarmEndTwoThreads() {
        return index.lookup(ENTRIES - ThreadLocalRandom.current().nextInt(WARM));
    }

    /** A fetch for each of many partitions, by partition; leases are given back. */
    @Benchmark
    @OperationsPerInvocation(PARTITIONS)
    public long locate() {
        for (int slot = 0; slot < PARTITIONS; slot++) {
            fetches.setOffset(slot, 10 + (slot & 7));
        }
        fetches.locate(PARTITIONS);
        long size = 0;
        for (int slot = 0; slot < PARTITIONS; slot++) {
            size += fetches.sizeBytes(slot);
        }
        return size;
    }

    /** A batch of 1 KiB, which is copied anew as the log writes its offsets into it. */
    @Benchmark
    public long append(Appending to) {
        to.sent.copyFrom(to.batch);
        to.log.appendLeader(to.sent, 0, 1000, Origin.CLIENT, 0, to.appended);
        return to.appended.lastOffset();
    }

    /** What is to be uploaded of 100,000 segments of one log: where it begins, and how many. */
    @Benchmark
    public void eligibleAsRange() {
        oneAsRange.decide(1, SEGMENTS, 0, 1000);
    }

    /** The same with an answer for each segment. */
    @Benchmark
    public void eligibleAsList() {
        oneAsList.decide(1, SEGMENTS, 0, 1000);
    }

    /** Of 100,000 segments of 1000 logs: where it begins, how many and how large. */
    @Benchmark
    public void eligibleOfManyLogs() {
        many.decide(LOGS, SEGMENTS, 0, 1000);
    }

    /**
     * All that 8 MiB of 16 KiB batches in the host's memory tell, which are in no cache: the next
     * part of a larger log each time. A walk over all of that would be longer than a round, and on
     * a machine that others use it would be interrupted each time.
     */
    @Benchmark
    public long recover(Scanned of) {
        of.position = (of.position + PART_SIZE) % LOG_SIZE;
        return of.walk(of.position);
    }

    /** The same of one part, which is in a cache. */
    @Benchmark
    public long recoverWarm(Scanned of) {
        return of.walk(0);
    }

    /** Runs all and prints the best round of each. */
    public static void main(String[] arguments) throws Exception {
        var options = new OptionsBuilder().include(Crossings.class.getSimpleName())
                .forks(1).warmupIterations(3).warmupTime(TimeValue.seconds(1))
                .measurementIterations(200).measurementTime(TimeValue.milliseconds(10))
                .jvmArgsAppend("--enable-native-access=ALL-UNNAMED").build();
        for (RunResult run : new Runner(options).run()) {
            var rounds = run.getBenchmarkResults().iterator().next().getIterationResults();
            double best = rounds.stream()
                    .mapToDouble(round -> round.getPrimaryResult().getScore()).min().orElseThrow();
            String name = run.getParams().getBenchmark();
            String last = Arrays.asList(name.split("\\.")).getLast();
            long bytes = switch (last) {
                case "recover", "recoverWarm" -> PART_SIZE;
                default -> 0;
            };
            String rate = bytes > 0
                    ? String.format(Locale.ROOT, ", %.1f GB/s", bytes / best) : "";
            System.out.println(String.format(Locale.ROOT, "best %10.1f ns  %s%s", best, last,
                    rate));
        }
    }
}
