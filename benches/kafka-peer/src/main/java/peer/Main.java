package peer;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Crc32C;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.CheckpointFile;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LazyIndex;
import org.apache.kafka.storage.internals.log.LocalLog;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogSegments;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetMap;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.TransactionIndex;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Times Kafka's own storage classes: Main GROUP quick|full WORKDIR. Each figure is a line: name, median, least, most, and the
 * largest share of a counted round in which its thread waited for a core. Rates are in bytes, partitions or producers a second,
 * the rest in seconds.
 *
 * As in the other half of the comparison, the rounds that waited least count, and nothing is taken off; of work on directories
 * and replicas, which pools of threads do, all rounds count.
 */
public final class Main {
    private static final Time TIME = Time.SYSTEM;
    private static final ProducerStateManagerConfig PRODUCERS = new ProducerStateManagerConfig(86_400_000, false);
    private static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);
    private static final BrokerTopicStats STATS = new BrokerTopicStats(true);
    private static final long FIRST_TIMESTAMP = System.currentTimeMillis() - 3_600_000L;

    private static File work;
    private static boolean quick;
    /** Written to, so that no work is optimised away. */
    private static volatile long sink;

    private interface Body {
        /** Seconds. */
        double run() throws Exception;
    }

    private static long waited() {
        try {
            return Long.parseLong(Files.readString(Path.of("/proc/thread-self/schedstat")).trim().split(" ")[1]);
        } catch (IOException e) {
            return 0;
        }
    }

    private static void rate(String name, double amount, int warm, Body body) throws Exception {
        measure(name, amount, true, warm, body);
    }

    private static void measure(String name, double amount, boolean isRate, int warm, Body body) throws Exception {
        int rounds = quick ? 2 : 5;
        for (int i = 0; i < warm; i++) body.run();
        List<double[]> laps = new ArrayList<>();
        int undisturbed = 0;
        long begun = System.nanoTime();
        for (int i = 0; i < 3 * rounds && undisturbed < rounds && (i < rounds || System.nanoTime() - begun < 12_000_000_000L); i++) {
            long before = waited();
            long start = System.nanoTime();
            double seconds = body.run();
            double share = (waited() - before) / (double) (System.nanoTime() - start);
            laps.add(new double[]{seconds, share});
            if (share < 0.02) undisturbed++;
        }
        laps.sort(Comparator.comparingDouble(lap -> lap[1]));
        List<double[]> kept = laps.subList(0, Math.min(rounds, laps.size()));
        tell(name, amount, isRate, kept.stream().map(lap -> lap[0]).toList(), kept.get(kept.size() - 1)[1]);
    }

    /** A rate of what takes so long that one round, and no warm-up, must do. */
    private static void once(String name, double amount, Body body) throws Exception {
        long before = waited();
        long start = System.nanoTime();
        double seconds = body.run();
        double share = (waited() - before) / (double) (System.nanoTime() - start);
        tell(name, amount, true, List.of(seconds), share);
    }

    private static void tell(String name, double amount, boolean isRate, List<Double> seconds) {
        tell(name, amount, isRate, seconds, 0);
    }

    private static void tell(String name, double amount, boolean isRate, List<Double> seconds, double waited) {
        List<Double> figures = seconds.stream().map(s -> isRate ? amount / s : s / amount).sorted().toList();
        System.out.printf(Locale.ROOT, "%s\t%.6g\t%.6g\t%.6g\t%.3f%n", name, figures.get(figures.size() / 2), figures.get(0),
            figures.get(figures.size() - 1), waited);
    }

    private static double since(long start) {
        return (System.nanoTime() - start) / 1e9;
    }

    private static LogConfig config(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("segment.bytes", 1 << 30);
        settings.put("max.message.bytes", 10 << 20);
        settings.putAll(more);
        return new LogConfig(settings);
    }

    private static final String[] WORDS = ("order customer amount currency shipped pending region payment invoice status created updated "
        + "item quantity discount express").split(" ");

    /** A JSON event of so many bytes. */
    private static byte[] value(Random random, int size) {
        StringBuilder text = new StringBuilder(size + 32);
        text.append("{\"id\":").append(random.nextInt(1_000_000_000));
        while (text.length() < size) {
            text.append(",\"").append(WORDS[random.nextInt(WORDS.length)]).append("\":");
            if (random.nextInt(4) == 0) text.append('"').append(WORDS[random.nextInt(WORDS.length)]).append('"');
            else text.append(random.nextInt(1_000_000));
        }
        text.setLength(size);
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }

    /** A batch of values of 200 bytes, of about so many bytes once compressed. */
    private static ByteBuffer batch(Random random, Compression codec, int target) {
        boolean plain = codec.type() == org.apache.kafka.common.record.internal.CompressionType.NONE;
        int records = Math.max(1, plain ? target / 220 : target / 70);
        MemoryRecords made = null;
        for (int tries = 0; tries < 3; tries++) {
            ByteBuffer buffer = ByteBuffer.allocate(Math.max(1024, 240 * records + 1024));
            MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.MAGIC_VALUE_V2, codec, TimestampType.CREATE_TIME, 0L,
                RecordBatch.NO_TIMESTAMP, 1, (short) 0, 0, false, 0);
            for (int i = 0; i < records; i++) builder.append(FIRST_TIMESTAMP, null, value(random, 200));
            made = builder.build();
            if (plain || Math.abs(made.sizeInBytes() - target) < target / 10) break;
            records = Math.max(1, (int) ((long) records * target / made.sizeInBytes()));
        }
        ByteBuffer copy = ByteBuffer.allocate(made.sizeInBytes());
        copy.put(made.buffer().duplicate());
        copy.flip();
        return copy;
    }

    private static void patch(ByteBuffer batch, long offset, long timestamp, long producerId, int sequence) {
        batch.putLong(0, offset);
        batch.putInt(12, 0);
        batch.putLong(27, timestamp);
        batch.putLong(35, timestamp);
        batch.putLong(43, producerId);
        batch.putShort(51, (short) 0);
        batch.putInt(53, sequence);
        batch.putInt(17, (int) Crc32C.compute(batch, 21, batch.limit() - 21));
    }

    private record Segment(File log, long bytes, long nextOffset) { }

    /** A segment of batches of 100 idempotent producers. */
    private static Segment segment(File dir, long bytes, int batchSize, Compression codec) throws IOException {
        Random random = new Random(42);
        ByteBuffer[] pool = new ByteBuffer[64];
        for (int i = 0; i < pool.length; i++) pool[i] = batch(random, codec, batchSize);
        int[] sequences = new int[100];
        File file = LogFileUtils.logFile(dir, 0);
        long offset = 0, written = 0;
        ByteBuffer chunk = ByteBuffer.allocateDirect(4 << 20);
        try (FileChannel channel = FileChannel.open(file.toPath(), StandardOpenOption.CREATE, StandardOpenOption.WRITE,
            StandardOpenOption.TRUNCATE_EXISTING)) {
            for (int n = 0; ; n++) {
                ByteBuffer next = pool[n % pool.length];
                if (written + next.limit() > bytes) break;
                int producer = n % sequences.length, count = next.getInt(57);
                patch(next, offset, FIRST_TIMESTAMP + n, 1000 + producer, sequences[producer]);
                sequences[producer] += count;
                offset += count;
                written += next.limit();
                if (chunk.remaining() < next.limit()) drain(chunk, channel);
                chunk.put(next.duplicate());
            }
            drain(chunk, channel);
            channel.force(true);
        }
        return new Segment(file, written, offset);
    }

    private static void drain(ByteBuffer chunk, FileChannel channel) throws IOException {
        chunk.flip();
        while (chunk.hasRemaining()) channel.write(chunk);
        chunk.clear();
    }

    private static void evict(File file) throws Exception {
        new ProcessBuilder("dd", "if=" + file, "iflag=nocache", "count=0", "status=none").inheritIO().start().waitFor();
    }

    private static File fresh(String name) throws IOException {
        File dir = new File(work, name);
        if (dir.exists()) Utils.delete(dir);
        dir.mkdirs();
        return dir;
    }

    private static UnifiedLog open(File dir, LogConfig config, boolean clean) throws IOException {
        return UnifiedLog.create(dir, config, 0, 0, SCHEDULER, STATS, TIME, 900_000, PRODUCERS, 600_000, new LogDirFailureChannel(10), clean,
            Optional.empty(), new ConcurrentHashMap<>(), true, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    private static void recover() throws Exception {
        long mebibyte = quick ? 1 << 16 : 1 << 20;
        recoverOne("1k", 1024, 512 * mebibyte);
        recoverOne("16k", 16384, 1024 * mebibyte);
        recoverOne("64k", 65536, 1024 * mebibyte);
        deep("none", Compression.NONE, 512 * mebibyte);
        deep("lz4", Compression.lz4().build(), 512 * mebibyte);
    }

    private static void recoverOne(String size, int batchSize, long bytes) throws Exception {
        File dir = fresh("recover-0");
        Segment made = segment(dir, bytes, batchSize, Compression.NONE);
        Body body = () -> {
            File other = fresh("producers-0");
            TopicPartition partition = new TopicPartition("producers", 0);
            ProducerStateManager producers = new ProducerStateManager(partition, other, 900_000, PRODUCERS, TIME);
            LeaderEpochFileCache epochs = new LeaderEpochFileCache(partition,
                new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(other), new LogDirFailureChannel(1)), SCHEDULER);
            LogSegment segment = LogSegment.open(dir, 0, config(Map.of()), TIME, true, 0, false, "");
            long start = System.nanoTime();
            int truncated = segment.recover(producers, epochs);
            double seconds = since(start);
            if (truncated != 0 || producers.mapEndOffset() != made.nextOffset) throw new IllegalStateException("not recovered");
            segment.close();
            return seconds;
        };
        rate("recover-" + size, made.bytes, 2, body);
        if (size.equals("16k")) {
            rate("recover-cold-" + size, made.bytes, 0, () -> {
                evict(made.log);
                return body.run();
            });
        }
        rate("verify-" + size, made.bytes, 1, () -> {
            try (FileRecords records = FileRecords.open(made.log, false)) {
                long start = System.nanoTime(), sum = 0;
                for (RecordBatch batch : records.batches()) {
                    batch.ensureValid();
                    sum += batch.lastOffset();
                }
                sink = sum;
                return since(start);
            }
        });
        Utils.delete(dir);
    }

    private static void deep(String codec, Compression compression, long bytes) throws Exception {
        File dir = fresh("deep-0");
        Segment made = segment(dir, bytes, 16384, compression);
        rate("deep-16k-" + codec, made.bytes, 1, () -> {
            try (FileRecords records = FileRecords.open(made.log, false)) {
                long start = System.nanoTime(), sum = 0;
                for (RecordBatch batch : records.batches()) {
                    batch.ensureValid();
                    for (org.apache.kafka.common.record.internal.Record record : batch) sum += record.offset() + record.valueSize();
                }
                sink = sum;
                return since(start);
            }
        });
        Utils.delete(dir);
    }

    /** Partitions of three segments of 16 batches of 4 KiB, recovered from their first batch on. */
    private static void load() throws Exception {
        int count = quick ? 125 : 2000;
        File root = fresh("kafka");
        LogConfig config = config(Map.of("segment.bytes", 1 << 20));
        Random random = new Random(42);
        ByteBuffer[] pool = new ByteBuffer[4];
        for (int i = 0; i < pool.length; i++) pool[i] = batch(random, Compression.NONE, 4096);
        File model = new File(fresh("kafka.model"), "topic-0");
        UnifiedLog log = open(model, config, true);
        int[] sequences = new int[10];
        long offset = 0;
        for (int n = 0; n < 48; n++) {
            if (n > 0 && n % 16 == 0) log.roll();
            ByteBuffer next = pool[n % pool.length];
            int producer = n % sequences.length, records = next.getInt(57);
            patch(next, offset, FIRST_TIMESTAMP + n, 500 + producer, sequences[producer]);
            sequences[producer] += records;
            offset += records;
            log.appendAsFollower(MemoryRecords.readableRecords(next.duplicate()), 0);
        }
        log.close();
        // All partitions hold the same: made one by one, each would wait for the disk.
        List<File> dirs = new ArrayList<>();
        for (int p = 0; p < count; p++) {
            File dir = new File(root, "topic-" + p);
            dirs.add(dir);
            dir.mkdirs();
            for (File file : model.listFiles()) Files.copy(file.toPath(), dir.toPath().resolve(file.getName()));
        }
        for (boolean clean : new boolean[]{false, true}) for (int threads = 1; threads <= 2; threads++) {
            List<Double> seconds = new ArrayList<>();
            for (int round = -1; round < (quick ? 1 : 3); round++) {
                UnifiedLog[] logs = new UnifiedLog[count];
                long start = System.nanoTime();
                ExecutorService pooled = Executors.newFixedThreadPool(threads);
                List<Future<?>> parts = new ArrayList<>();
                for (int first = 0; first < threads; first++) {
                    int from = first, step = threads;
                    parts.add(pooled.submit(() -> {
                        for (int p = from; p < count; p += step) logs[p] = open(dirs.get(p), config, clean);
                        return null;
                    }));
                }
                for (Future<?> part : parts) part.get();
                double took = since(start);
                if (round >= 0) seconds.add(took);
                pooled.shutdown();
                for (UnifiedLog recovered : logs) recovered.close();
            }
            tell((clean ? "clean-" : "load-") + threads, count, true, seconds);
        }
    }

    /** A snapshot of so many producers with one batch each. */
    private static File made(File dir, int count) throws Exception {
        Method addBatch = ProducerStateEntry.class.getDeclaredMethod("addBatch", short.class, int.class, long.class, int.class, long.class);
        addBatch.setAccessible(true);
        Map<Long, ProducerStateEntry> entries = new HashMap<>();
        for (int i = 0; i < count; i++) {
            ProducerStateEntry entry = new ProducerStateEntry(100_000L + i * 7L, (short) 1, -1, FIRST_TIMESTAMP, OptionalLong.empty());
            addBatch.invoke(entry, (short) 1, i * 3, 1_000_000L + i, 2, FIRST_TIMESTAMP);
            entries.put(entry.producerId(), entry);
        }
        File file = new File(dir, "made.snapshot");
        ProducerStateManager.writeSnapshot(file, entries, true);
        return file;
    }

    private static void snapshot() throws Exception {
        int count = 10_000;
        File dir = fresh("snapshot");
        File file = made(dir, count);
        rate("snapshot", count * 50.0, 3, () -> {
            long start = System.nanoTime();
            for (int i = 0; i < 50; i++) sink += ProducerStateManager.readSnapshot(file).size();
            return since(start);
        });
        Utils.delete(dir);
    }

    /** Replicas that begin anew behind a remote segment, as TierStateMachine does it, and the producers that they load. */
    private static void aux() throws Exception {
        // With more of them the producers do not fit into the heap.
        int producers = 10_000, count = quick ? 20 : 200;
        File dir = fresh("aux");
        File snapshot = made(dir, producers);
        File loaded = new File(dir, "loaded-0");
        loaded.mkdirs();
        Files.copy(snapshot.toPath(), LogFileUtils.producerSnapshotFile(loaded, 5000).toPath());
        rate("snapshot-load", producers * 20.0, 3, () -> {
            double seconds = 0;
            for (int i = 0; i < 20; i++) {
                ProducerStateManager manager = new ProducerStateManager(new TopicPartition("loaded", 0), loaded, 900_000, PRODUCERS, TIME);
                long start = System.nanoTime();
                manager.truncateAndReload(0, 5000, System.currentTimeMillis());
                seconds += since(start);
                if (manager.activeProducers().size() != producers) throw new IllegalStateException("not all producers are loaded");
            }
            return seconds;
        });
        StringBuilder text = new StringBuilder("0\n100\n");
        for (int epoch = 0; epoch < 100; epoch++) text.append(epoch).append(' ').append(epoch * 1000).append('\n');
        Path epochs = Files.writeString(new File(dir, "epochs").toPath(), text);
        LogConfig config = config(Map.of("remote.storage.enable", "true"));
        UnifiedLog[] logs = new UnifiedLog[count];
        for (int i = 0; i < count; i++) {
            File log = new File(dir, "replica-" + i);
            log.mkdirs();
            logs[i] = open(log, config, true);
        }
        long[] next = {2_000_000};
        for (int threads = 1; threads <= 2; threads++) {
            int step = threads;
            Body body = () -> {
                next[0] += 1000;
                ExecutorService pooled = Executors.newFixedThreadPool(step);
                long start = System.nanoTime();
                List<Future<?>> parts = new ArrayList<>();
                for (int first = 0; first < step; first++) {
                    int from = first;
                    parts.add(pooled.submit(() -> {
                        for (int i = from; i < count; i += step) rebuild(logs[i], next[0], epochs, snapshot.toPath());
                        return null;
                    }));
                }
                for (Future<?> part : parts) part.get();
                double seconds = since(start);
                pooled.shutdown();
                if (logs[0].producerStateManager().activeProducers().size() != producers) throw new IllegalStateException("not all producers are there");
                return seconds;
            };
            List<Double> seconds = new ArrayList<>();
            for (int round = -1; round < (quick ? 1 : 3); round++) {
                double took = body.run();
                if (round >= 0) seconds.add(took);
            }
            tell("aux-" + threads, count, true, seconds);
        }
        for (UnifiedLog log : logs) {
            log.producerExpireCheck().cancel(true);
            log.closeHandlers();
        }
        Utils.delete(dir);
    }

    /** The calls of TierStateMachine in their order, but that the snapshot taken at the new end is let go first: else it is the fetched one that goes. */
    private static void rebuild(UnifiedLog log, long next, Path epochs, Path snapshot) throws Exception {
        log.truncateFullyAndStartAt(next, Optional.of(0L));
        log.maybeIncrementLogStartOffset(0, LogStartOffsetIncrementReason.LeaderOffsetIncremented);
        log.maybeIncrementLocalLogStartOffset(next, LogStartOffsetIncrementReason.LeaderOffsetIncremented);
        try (BufferedReader reader = Files.newBufferedReader(epochs)) {
            log.leaderEpochCache().assign(new CheckpointFile.CheckpointReadBuffer<>("", reader, 0, LeaderEpochCheckpointFile.FORMATTER).read());
        }
        log.producerStateManager().deleteSnapshotsBefore(next + 1);
        Path file = LogFileUtils.producerSnapshotFile(log.dir(), next).toPath(), beside = Path.of(file + ".tmp");
        try (InputStream in = Files.newInputStream(snapshot)) {
            Files.copy(in, beside, StandardCopyOption.REPLACE_EXISTING);
        }
        Utils.atomicMoveWithFallback(beside, file, false);
        log.producerStateManager().truncateFullyAndReloadSnapshots();
        log.loadProducerState(next);
    }

    private static void txn() throws Exception {
        int count = 100_000;
        File dir = fresh("txn");
        TransactionIndex index = new TransactionIndex(0, new File(dir, "00000000000000000000.txnindex"));
        for (int i = 0; i < count; i++) index.append(new AbortedTxn(i % 1000, i * 10L, i * 10L + 5, i * 10L + 6));
        measure("txn-collect", 1, false, 3, () -> {
            long start = System.nanoTime();
            sink = index.collectAbortedTxns(0, Long.MAX_VALUE).abortedTransactions().size();
            return since(start);
        });
        measure("txn-check", 1, false, 2, () -> {
            long start = System.nanoTime();
            index.sanityCheck();
            return since(start);
        });
        measure("txn-last", 1, false, 3, () -> {
            long start = System.nanoTime();
            sink = index.collectAbortedTxns(999_000, Long.MAX_VALUE).abortedTransactions().size();
            return since(start);
        });
        index.close();
        int segments = 1000, each = 100;
        TransactionIndex[] indexes = new TransactionIndex[segments];
        for (int s = 0; s < segments; s++) {
            long base = s * 1000L;
            indexes[s] = new TransactionIndex(base, new File(dir, String.format("%020d.txnindex", base + 1)));
            for (int i = 0; i < each; i++) {
                long first = base + i * 10L;
                indexes[s].append(new AbortedTxn(i, first, first + 5, first + 6));
            }
        }
        measure("txn-segments", 1, false, 3, () -> {
            long start = System.nanoTime();
            for (TransactionIndex one : indexes) sink += one.collectAbortedTxns(0, Long.MAX_VALUE).abortedTransactions().size();
            return since(start);
        });
        measure("txn-fetch", 1000, false, 3, () -> {
            long start = System.nanoTime();
            for (int s = 0; s < segments; s++) {
                long from = s * 1000L + 400;
                sink += indexes[s].collectAbortedTxns(from, from + 100).abortedTransactions().size();
            }
            return since(start);
        });
        for (TransactionIndex one : indexes) one.close();
        Utils.delete(dir);
    }

    /** Batches one behind the other, and where each begins; the last number is the end. */
    private record Supply(ByteBuffer bytes, int[] starts) {
        static Supply of(int batchSize, Compression codec) {
            Random random = new Random(42);
            List<ByteBuffer> batches = new ArrayList<>();
            int size = 0;
            while (size < 4 << 20) {
                ByteBuffer next = batch(random, codec, batchSize);
                patch(next, 0, FIRST_TIMESTAMP, -1, -1);
                next.putShort(51, (short) -1);
                next.putInt(17, (int) Crc32C.compute(next, 21, next.limit() - 21));
                batches.add(next);
                size += next.limit();
            }
            ByteBuffer bytes = ByteBuffer.allocate(size);
            int[] starts = new int[batches.size() + 1];
            for (int i = 0; i < batches.size(); i++) {
                starts[i] = bytes.position();
                bytes.put(batches.get(i).duplicate());
            }
            starts[batches.size()] = size;
            bytes.flip();
            return new Supply(bytes, starts);
        }

        /** Gives the batches offsets from this one on; -1: as producers send them. */
        long stamp(long offset) {
            for (int i = 0; i + 1 < starts.length; i++) {
                bytes.putLong(starts[i], Math.max(offset, 0));
                bytes.putInt(starts[i] + 12, 0);
                if (offset >= 0) offset += bytes.getInt(starts[i] + 57);
            }
            return offset;
        }

        /** Groups of batches of at most so many bytes, or one batch. */
        List<MemoryRecords> calls(int atOnce) {
            List<MemoryRecords> calls = new ArrayList<>();
            for (int i = 0; i + 1 < starts.length; ) {
                int start = starts[i++];
                while (i + 1 < starts.length && starts[i + 1] - start <= atOnce) i++;
                calls.add(MemoryRecords.readableRecords(bytes.duplicate().limit(starts[i]).position(start).slice()));
            }
            return calls;
        }
    }

    private interface Append {
        void accept(MemoryRecords records) throws Exception;
    }

    /** Seconds for so many bytes, without what it takes to number the batches. */
    private static double append(Supply supply, long offset, int atOnce, long bytes, Append to) throws Exception {
        long written = 0;
        double seconds = 0;
        while (written < bytes) {
            offset = supply.stamp(offset);
            List<MemoryRecords> calls = supply.calls(atOnce);
            long start = System.nanoTime();
            for (MemoryRecords records : calls) to.accept(records);
            seconds += since(start);
            written += supply.bytes.limit();
        }
        return seconds * bytes / written;
    }

    private static final int AT_ONCE = 256 << 10;

    private static void append() throws Exception {
        long bytes = (quick ? 8L : 128L) << 20;
        for (int batchSize : new int[]{1024, 16384, 65536}) {
            Supply supply = Supply.of(batchSize, Compression.NONE);
            for (int atOnce : new int[]{1, AT_ONCE}) {
                String name = "append-" + (batchSize >> 10) + "k-" + (atOnce == 1 ? "one" : "many");
                rate(name, bytes, 2, () -> {
                    LogSegment segment = LogSegment.open(fresh("append-0"), 0, config(Map.of()), TIME, false, 0, false, "");
                    double seconds = append(supply, 0, atOnce, bytes, records -> {
                        long last = 0;
                        for (RecordBatch batch : records.batches()) last = batch.lastOffset();
                        segment.append(last, records);
                    });
                    segment.close();
                    return seconds;
                });
            }
        }
        for (String codec : List.of("none", "lz4", "zstd")) {
            Compression compression = codec.equals("none") ? Compression.NONE
                : codec.equals("lz4") ? Compression.lz4().build() : Compression.zstd().build();
            Supply supply = Supply.of(16384, compression);
            RequestLocal local = RequestLocal.withThreadConfinedCaching();
            rate("leader-" + codec, bytes, 1, () -> {
                UnifiedLog log = open(fresh("append-0"), config(Map.of()), true);
                double seconds = append(supply, -1, 1, bytes, records -> log.appendAsLeader(records, 0, AppendOrigin.CLIENT, local,
                    VerificationGuard.SENTINEL, TransactionVersion.TV_UNKNOWN));
                log.close();
                return seconds;
            });
        }
        Supply supply = Supply.of(16384, Compression.NONE);
        rate("follower", bytes, 1, () -> {
            UnifiedLog log = open(fresh("append-0"), config(Map.of()), true);
            double seconds = append(supply, 0, AT_ONCE, bytes, records -> log.appendAsFollower(records, 0));
            log.close();
            return seconds;
        });
        durable();
        Utils.delete(new File(work, "append-0"));
    }

    /** A batch to each of 64 logs, and a flush of each. */
    private static void durable() throws Exception {
        int count = 64, turns = quick ? 5 : 40;
        ByteBuffer batch = batch(new Random(42), Compression.NONE, 4096);
        UnifiedLog[] logs = new UnifiedLog[count];
        for (int p = 0; p < count; p++) logs[p] = open(fresh("durable-" + p), config(Map.of()), true);
        long[] offset = {0};
        rate("durable", count * turns, 1, () -> {
            long start = System.nanoTime();
            for (int turn = 0; turn < turns; turn++) {
                patch(batch, offset[0], FIRST_TIMESTAMP, -1, -1);
                batch.putShort(51, (short) -1);
                batch.putInt(17, (int) Crc32C.compute(batch, 21, batch.limit() - 21));
                offset[0] += batch.getInt(57);
                for (UnifiedLog log : logs) log.appendAsFollower(MemoryRecords.readableRecords(batch.duplicate()), 0);
                for (UnifiedLog log : logs) log.flush(false);
            }
            return since(start);
        });
        for (UnifiedLog log : logs) log.close();
    }

    private static void read() throws Exception {
        for (int batchSize : new int[]{1024, 16384}) {
            String size = (batchSize >> 10) + "k";
            File dir = fresh("read-0");
            Segment made = segment(dir, (quick ? 32L : 512L) << 20, batchSize, Compression.NONE);
            UnifiedLog log = open(dir, config(Map.of()), false);
            LogSegment segment = log.activeSegment();
            Random random = new Random(3);
            long[] anywhere = random.longs(200_000, 0, made.nextOffset).toArray();
            long last = 16 * made.nextOffset * batchSize / made.bytes;
            long[] tail = random.longs(200_000, made.nextOffset - last, made.nextOffset).toArray();
            for (String which : List.of("random", "tail")) {
                long[] offsets = which.equals("tail") ? tail : anywhere;
                measure("locate-" + size + "-" + which, offsets.length, false, 2, () -> {
                    long start = System.nanoTime();
                    locate(segment, offsets);
                    return since(start);
                });
                measure("locate-" + size + "-" + which + "-2", 2.0 * offsets.length, false, 1, () -> {
                    long start = System.nanoTime();
                    Thread other = new Thread(() -> locate(segment, offsets));
                    other.start();
                    locate(segment, offsets);
                    other.join();
                    return since(start);
                });
            }
            long batches = made.bytes / batchSize;
            long[] timestamps = random.longs(20_000, 0, batches).map(n -> FIRST_TIMESTAMP + n).toArray();
            measure("timestamp-" + size, timestamps.length, false, 1, () -> {
                long start = System.nanoTime(), sum = 0;
                for (long timestamp : timestamps) sum += segment.findOffsetByTimestamp(timestamp, 0).get().offset;
                sink = sum;
                return since(start);
            });
            log.close();
            Utils.delete(dir);
        }
    }

    private static void locate(LogSegment segment, long[] offsets) {
        try {
            long sum = 0;
            for (long offset : offsets) sum += segment.read(offset, 1 << 20).records.sizeInBytes();
            sink = sum;
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static final int INDEX_BYTES = 10 << 20;

    private static OffsetIndex offsets(File dir) throws IOException {
        return new OffsetIndex(new File(dir, "00000000000000000000.index"), 0, INDEX_BYTES);
    }

    private static TimeIndex times(File dir) throws IOException {
        return new TimeIndex(new File(dir, "00000000000000000000.timeindex"), 0, INDEX_BYTES);
    }

    private static void index() throws Exception {
        File dir = fresh("index");
        Random random = new Random(8);
        OffsetIndex offsets = offsets(dir);
        TimeIndex times = times(dir);
        long offset = 0, timestamp = FIRST_TIMESTAMP;
        for (int i = 0; i < offsets.maxEntries(); i++) offsets.append(offset += 50 + random.nextInt(41), i * 1600);
        for (int i = 0; i + 1 < times.maxEntries(); i++) times.maybeAppend(timestamp += 1 + random.nextInt(5), i * 70L);
        long[] anywhere = random.longs(1_000_000, 0, offset).toArray();
        long[] last = random.longs(1_000_000, offset - 70_000, offset).toArray();
        long[] moments = random.longs(1_000_000, FIRST_TIMESTAMP, timestamp).toArray();
        for (String which : List.of("random", "last")) {
            long[] wanted = which.equals("last") ? last : anywhere;
            measure("index-" + which, wanted.length, false, 5, () -> {
                long start = System.nanoTime(), sum = 0;
                for (long target : wanted) sum += offsets.lookup(target).position();
                sink = sum;
                return since(start);
            });
        }
        measure("index-time", moments.length, false, 5, () -> {
            long start = System.nanoTime(), sum = 0;
            for (long target : moments) sum += times.lookup(target).offset();
            sink = sum;
            return since(start);
        });
        offsets.close();
        times.close();
        int pairs = 400_000;
        measure("index-append", pairs, false, 2, () -> {
            File other = fresh("index-grows");
            OffsetIndex first = offsets(other);
            TimeIndex second = times(other);
            long start = System.nanoTime();
            for (int i = 0; i < pairs; i++) {
                first.append(i * 70L + 69, i * 1600);
                second.maybeAppend(FIRST_TIMESTAMP + i, i * 70L + 69);
            }
            double seconds = since(start);
            first.close();
            second.close();
            return seconds;
        });
        Utils.delete(dir);
    }

    private static double heap() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(50);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    /** A log of so many segments of 1,000 offsets each, which all read one small file. */
    private static UnifiedLog wide(String name, int segments, FileRecords records, LogConfig config) throws Exception {
        File dir = fresh(name);
        TopicPartition partition = UnifiedLog.parseTopicPartitionName(dir);
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        LogSegments all = new LogSegments(partition);
        for (int i = 0; i < segments; i++) {
            long base = i * 1000L;
            LazyIndex<OffsetIndex> offsets = LazyIndex.forOffset(LogFileUtils.offsetIndexFile(dir, base), base, 4096);
            LazyIndex<TimeIndex> times = LazyIndex.forTime(LogFileUtils.timeIndexFile(dir, base), base, 4096);
            TransactionIndex transactions = new TransactionIndex(base, LogFileUtils.transactionIndexFile(dir, base));
            all.add(new LogSegment(records, offsets, times, transactions, base, 4096, 0, TIME));
        }
        LogOffsetMetadata end = new LogOffsetMetadata(segments * 1000L, (segments - 1) * 1000L, records.sizeInBytes());
        LocalLog local = new LocalLog(dir, config, all, 0, end, SCHEDULER, TIME, partition, failures);
        LeaderEpochFileCache epochs = UnifiedLog.createLeaderEpochCache(dir, partition, failures, Optional.empty(), SCHEDULER);
        ProducerStateManager producers = new ProducerStateManager(partition, dir, 900_000, PRODUCERS, TIME);
        return new UnifiedLog(0, local, STATS, 600_000, epochs, producers, Optional.empty(), true, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    /** The choice of the copy task itself; it looks at nothing of the task, which is therefore made without its constructor. */
    private static void upload() throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.server.log.remote.storage.RemoteLogManager$RLMCopyTask");
        Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Object task = field.getType().getMethod("allocateInstance", Class.class).invoke(field.get(null), type);
        Method choose = type.getDeclaredMethod("candidateLogSegments", UnifiedLog.class, Long.class, Long.class);
        choose.setAccessible(true);
        LogConfig config = config(Map.of("remote.storage.enable", "true"));
        Path file = new File(work, "wide.log").toPath();
        Files.write(file, new byte[4096]);
        FileRecords records = FileRecords.open(file.toFile());
        int segments = quick ? 10_000 : 100_000, logs = quick ? 100 : 1000, each = 100;
        UnifiedLog one = wide("wide-0", segments, records, config);
        measure("upload-list", 20, false, 10, () -> chosen(choose, task, List.of(one), 0, segments * 1000L, 20, segments - 1));
        List<UnifiedLog> many = new ArrayList<>();
        for (int i = 0; i < logs; i++) many.add(wide("wide-" + (i + 1), each, records, config));
        for (int left : new int[]{each - 1, 1}) {
            long from = (each - 1 - left) * 1000L;
            String name = left == 1 ? "upload-logs-1" : "upload-logs-100";
            measure(name, 10, false, 10, () -> chosen(choose, task, many, from, each * 1000L, 10, left));
        }
    }

    private static double chosen(Method choose, Object task, List<UnifiedLog> logs, long from, long stable, int times, int expected) throws Exception {
        long start = System.nanoTime();
        for (int i = 0; i < times; i++) {
            for (UnifiedLog log : logs) {
                int found = ((List<?>) choose.invoke(task, log, from, stable)).size();
                if (found != expected) throw new IllegalStateException(found + " segments, not " + expected);
            }
        }
        return since(start);
    }

    /** What an open partition, a further segment and a producer keep on the heap. */
    private static void memory() throws Exception {
        int count = quick ? 125 : 1000, further = 3;
        LogConfig config = config(Map.of());
        ByteBuffer batch = batch(new Random(42), Compression.NONE, 4096);
        UnifiedLog[] logs = new UnifiedLog[count];
        for (int p = 0; p < 10; p++) logs[p] = open(fresh("warm-" + p), config, true);
        double before = heap();
        for (int p = 0; p < count; p++) {
            logs[p] = open(fresh("memory-" + p), config, true);
            grow(logs[p], batch);
        }
        double open = heap();
        tell("memory-partition", count, false, List.of(open - before));
        for (int segment = 0; segment < further; segment++) {
            for (UnifiedLog log : logs) {
                log.roll();
                grow(log, batch);
            }
        }
        tell("memory-segment", count * further, false, List.of(heap() - open));
        int producers = quick ? 10_000 : 100_000;
        ByteBuffer small = batch(new Random(42), Compression.NONE, 64);
        UnifiedLog log = open(fresh("producers-0"), config, true);
        double none = heap(), one = 0;
        long offset = 0;
        for (int turn = 0; turn < 5; turn++) {
            for (int p = 0; p < producers; p++) {
                patch(small, offset++, FIRST_TIMESTAMP, 1000 + p, turn);
                log.appendAsFollower(MemoryRecords.readableRecords(small.duplicate()), 0);
            }
            if (turn == 0) {
                one = heap();
                tell("memory-producer", producers, false, List.of(one - none));
            }
        }
        tell("memory-batch", producers * 4.0, false, List.of(heap() - one));
        sink = logs.length + log.logEndOffset();
    }

    private static void grow(UnifiedLog log, ByteBuffer batch) {
        patch(batch, log.logEndOffset(), FIRST_TIMESTAMP, -1, -1);
        batch.putShort(51, (short) -1);
        batch.putInt(17, (int) Crc32C.compute(batch, 21, batch.limit() - 21));
        log.appendAsFollower(MemoryRecords.readableRecords(batch.duplicate()), 0);
    }

    /** A log in which most keys stand once, compacted until what is left is durable. */
    private static void compact() throws Exception {
        long total = (quick ? 64L : 1024L) << 20, keys = quick ? 625_000 : 10_000_000;
        LogConfig config = config(Map.of("segment.bytes", 128 << 20, "cleanup.policy", "compact", "file.delete.delay.ms", 0));
        File model = fresh("model-0");
        UnifiedLog log = open(model, config, true);
        byte[] value = "siltstone".repeat(9).substring(0, 80).getBytes(StandardCharsets.UTF_8);
        ByteBuffer buffer = ByteBuffer.allocate(64 << 10), key = ByteBuffer.allocate(8);
        for (long number = 0; log.size() < total; ) {
            buffer.clear();
            MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.MAGIC_VALUE_V2, Compression.NONE,
                TimestampType.CREATE_TIME, log.logEndOffset(), RecordBatch.NO_TIMESTAMP, -1, (short) -1, -1, false, 0);
            for (int i = 0; i < 160; i++) builder.append(FIRST_TIMESTAMP, key.putLong(0, number++ * 7919 % keys).array(), value);
            log.appendAsFollower(builder.build(), 0);
        }
        long bytes = log.size();
        log.roll();
        log.close();
        OffsetMap map = new SkimpyOffsetMap((quick ? 24 : 384) << 20);
        Cleaner cleaner = new Cleaner(0, map, 256 << 10, 10 << 20, 0.9, new Throttler(Double.MAX_VALUE, 300, "rate", "bytes", TIME), TIME,
            partition -> { });
        once("compact", bytes, () -> {
            File dir = fresh("compact-0");
            for (File file : model.listFiles()) Files.createLink(new File(dir, file.getName()).toPath(), file.toPath());
            UnifiedLog dirty = open(dir, config, true);
            dirty.updateHighWatermark(dirty.logEndOffset());
            long end = dirty.activeSegment().baseOffset();
            LogToClean range = new LogToClean(dirty, 0, end, false);
            long start = System.nanoTime();
            long cleaned = cleaner.doClean(range, System.currentTimeMillis()).getKey();
            double seconds = since(start);
            if (cleaned != end) throw new IllegalStateException("not compacted");
            dirty.close();
            Utils.delete(dir);
            return seconds;
        });
        Utils.delete(model);
    }

    public static void main(String[] args) {
        try {
            run(args);
            System.exit(0);
        } catch (Throwable e) {
            // The scheduler's threads would keep the process alive.
            e.printStackTrace();
            System.exit(1);
        }
    }

    private static void run(String[] args) throws Exception {
        quick = args[1].equals("quick");
        work = new File(args[2]);
        SCHEDULER.startup();
        switch (args[0]) {
            case "recover" -> recover();
            case "load" -> load();
            case "snapshot" -> snapshot();
            case "txn" -> txn();
            case "append" -> append();
            case "read" -> read();
            case "index" -> index();
            case "upload" -> upload();
            case "aux" -> aux();
            case "memory" -> memory();
            case "compact" -> compact();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }
}
