package io.siltstone.bench;

import io.siltstone.Appended;
import io.siltstone.Fetches;
import io.siltstone.Index;
import io.siltstone.Library;
import io.siltstone.Log;
import io.siltstone.LogOptions;
import io.siltstone.Origin;
import io.siltstone.Samples;
import io.siltstone.UpTo;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.ThreadLocalRandom;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
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

/** What calls cost from Java: nanoseconds an operation, the best of seven rounds. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Crossings {
    private static final int ENTRIES = 1_310_720;
    private static final int WARM = 20_000;
    private static final int PARTITIONS = 64;

    private Path home;
    private Index index;
    private Log[] logs;
    private Fetches fetches;

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

    /** Nothing is left. */
    @TearDown
    public void close() throws Exception {
        fetches.close();
        for (Log log : logs) {
            log.close();
        }
        index.close();
        try (var files = Files.walk(home)) {
            files.sorted(java.util.Comparator.reverseOrder()).map(Path::toFile)
                    .forEach(java.io.File::delete);
        }
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

    /** Runs all and prints the best round of each. */
    public static void main(String[] arguments) throws Exception {
        var options = new OptionsBuilder().include(Crossings.class.getSimpleName())
                .forks(1).warmupIterations(3).warmupTime(TimeValue.seconds(1))
                .measurementIterations(7).measurementTime(TimeValue.seconds(1))
                .jvmArgsAppend("--enable-native-access=ALL-UNNAMED").build();
        for (RunResult run : new Runner(options).run()) {
            var rounds = run.getBenchmarkResults().iterator().next().getIterationResults();
            double best = rounds.stream()
                    .mapToDouble(round -> round.getPrimaryResult().getScore()).min().orElseThrow();
            String name = run.getParams().getBenchmark();
            System.out.println(String.format(Locale.ROOT, "best %8.1f ns  %s", best,
                    Arrays.asList(name.split("\\.")).getLast()));
        }
    }
}
