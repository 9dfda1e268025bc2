package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Log directories at rest: inventory, verification, recovery, and who hears how far it is. */
class LogDirsTest {
    private static final String SEGMENT = "00000000000000000000.log";

    @TempDir
    Path home;

    private List<Path> dirs;

    /** Two directories with a partition each, not stopped cleanly; the second has a torn tail. */
    @BeforeEach
    void write() throws IOException {
        dirs = List.of(home.resolve("one"), home.resolve("two"));
        for (int at = 0; at < 2; at++) {
            Files.createDirectory(dirs.get(at));
            Path dir = dirs.get(at).resolve("orders-" + at);
            try (Log log = Log.open(dir, new LogOptions())) {
                Samples.fill(log, 10);
                log.flush(0);
            }
        }
        Path torn = dirs.get(1).resolve("orders-1").resolve(SEGMENT);
        try (FileChannel file = FileChannel.open(torn, StandardOpenOption.WRITE)) {
            file.truncate(file.size() - 5);
        }
    }

    private static SiltstoneException fails(Kind kind, Executable call) {
        SiltstoneException failure = assertThrows(SiltstoneException.class, call);
        assertEquals(kind, failure.kind(), failure.getMessage());
        return failure;
    }

    private static RecoverOptions repair() {
        return new RecoverOptions().repair().nowMs(5000);
    }

    @Test
    void partitionsAreFoundAndVerified() {
        try (LogDirs logs = LogDirs.open(dirs, LogOptions.Io.SYSCALLS)) {
            PartitionDirs found = new PartitionDirs(4);
            assertEquals(2, logs.scan(found));
            assertEquals("orders", found.topic(1));
            assertEquals(1, found.partition(1));
            assertEquals(1, found.dir(1));
            assertEquals(-1, found.logStartOffset(1));
            assertEquals(10L * Samples.SIZE, found.logSizeBytes(0));
            assertFalse(found.isClean(0) || found.isLocked(0) || found.isFuture(0));
            AtomicInteger calls = new AtomicInteger();
            int count = logs.verify(new VerifyOptions().threads(2).nowMs(9000), (done, total) -> {
                calls.incrementAndGet();
                return done <= total;
            });
            assertTrue(calls.get() > 0);
            assertTrue(count > 0);
            Problems problems = new Problems(count);
            assertEquals(count, logs.problems(problems));
            int torn = -1;
            for (int row = 0; row < count; row++) {
                torn = problems.code(row).equals("torn_batch") ? row : torn;
                assertFalse(problems.detail(row).isEmpty());
            }
            assertTrue(torn >= 0);
            assertEquals(1, problems.dir(torn));
            assertEquals(1, problems.partition(torn));
            assertTrue(problems.file(torn).endsWith(SEGMENT), problems.file(torn));
            assertEquals(9L * Samples.SIZE, problems.position(torn));
            assertTrue(problems.severity(torn) >= Codes.SEVERITY_NOTICE);
            assertTrue(problems.offset(torn) >= -1);
            assertTrue(logs.verify(new VerifyOptions().batches(), null) > 0);
        }
    }

    @Test
    void whatIsPlannedIsDoneWhenItIsAskedFor() throws IOException {
        Path torn = dirs.get(1).resolve("orders-1").resolve(SEGMENT);
        long size = Files.size(torn);
        try (LogDirs logs = LogDirs.open(dirs)) {
            logs.recover(new RecoverOptions().nowMs(5000).all(), null);
            assertEquals(size, Files.size(torn), "a plan writes nothing");
            Recoveries recoveries = new Recoveries(4);
            assertEquals(2, logs.recoveries(recoveries));
            assertEquals(1, recoveries.dir(1));
            assertEquals("orders", recoveries.topic(1));
            assertEquals(1, recoveries.partition(1));
            assertEquals(Codes.RECOVERY_SOUND, recoveries.outcome(1));
            assertEquals(0, recoveries.status(1));
            assertEquals(0, recoveries.logStartOffset(1));
            assertEquals(9, recoveries.logEndOffset(1));
            assertEquals(9, recoveries.lastStableOffset(1));
            assertEquals(9, recoveries.cutOffset(1));
            assertEquals(Samples.SIZE - 5, recoveries.cutBytes(1));
            assertTrue(recoveries.bytesRead(1) > 0);
            assertTrue(recoveries.problemCount(1) > 0);
            assertEquals("", recoveries.reason(1));
            PlanSteps steps = new PlanSteps(50);
            long planned = logs.plan(steps);
            int cut = -1;
            for (int row = 0; row < steps.count(); row++) {
                cut = steps.kind(row) == Codes.STEP_CUT ? row : cut;
            }
            assertTrue(cut >= 0 && planned >= recoveries.stepCount(1));
            assertEquals(1, steps.partition(cut));
            assertEquals(9L * Samples.SIZE, steps.position(cut));
            assertEquals(Samples.SIZE - 5, steps.sizeBytes(cut));
            assertTrue(steps.offset(cut) == 9 || steps.offset(cut) == -1);
            assertTrue(steps.file(cut).endsWith(SEGMENT));
            assertTrue(steps.detail(cut) != null);

            logs.recover(repair().threads(2).allowLoss().discardLost().takeForClean()
                    .quarantine(home.resolve("refused")).producerExpirationMs(1000)
                    .topic("orders", 0, 0, false).otherTopics(0, 0, true), (done, total) -> true);
            assertEquals(9L * Samples.SIZE, Files.size(torn));
        }
        try (Engine engine = Engine.open(dirs, new EngineOptions());
                Log log = engine.log("orders", 1)) {
            assertEquals(9, Samples.offsets(log).logEndOffset());
        }
    }

    @Test
    void stepsDoADirectoryEach() {
        try (LogDirs logs = LogDirs.open(dirs)) {
            assertEquals(1, logs.recoverStep(repair()));
            assertEquals(0, logs.recoverStep(repair()));
            assertEquals(2, logs.recoveries(new Recoveries(1)));
            assertEquals(1, logs.recoverStep(repair()));
        }
    }

    @Test
    void whatAProgressFunctionThrowsComesOutOfTheCall() {
        try (LogDirs logs = LogDirs.open(dirs)) {
            for (Throwable thrown : List.of(new IllegalStateException("mine"),
                    new OutOfMemoryError("mine"), new StackOverflowError(),
                    new IOException("checked"))) {
                Progress throwing = (done, total) -> {
                    throw LogDirsTest.<RuntimeException>sneaky(thrown);
                };
                Throwable out = assertThrows(Throwable.class,
                        () -> logs.recover(repair(), throwing));
                assertSame(thrown, thrown instanceof IOException ? out.getCause() : out);
                out = assertThrows(Throwable.class,
                        () -> logs.verify(new VerifyOptions(), throwing));
                assertSame(thrown, thrown instanceof IOException ? out.getCause() : out);
            }
            var failure = fails(Kind.CANCELLED,
                    () -> logs.recover(repair(), (done, total) -> false));
            assertEquals(1, failure.detail());
            fails(Kind.CANCELLED, () -> logs.verify(new VerifyOptions(), (done, total) -> false));
            logs.recover(repair(), (done, total) -> true);
        }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T sneaky(Throwable thrown) throws T {
        throw (T) thrown;
    }

    @Test
    void aProgressFunctionMayCallTheLibrary() {
        LogDirs logs = LogDirs.open(dirs);
        AtomicInteger calls = new AtomicInteger();
        logs.verify(new VerifyOptions(), (done, total) -> {
            if (calls.getAndIncrement() == 0) {
                fails(Kind.CONFLICT, () -> logs.recover(repair(), null));
                fails(Kind.CONFLICT, () -> logs.verify(new VerifyOptions(), null));
                assertEquals(2, logs.scan(new PartitionDirs(0)));
                // The object goes when this call is over.
                logs.close();
            }
            return true;
        });
        fails(Kind.CLOSED, () -> logs.scan(new PartitionDirs(1)));
        fails(Kind.CLOSED, () -> logs.recoverStep(repair()));
    }

    @Test
    void directoriesThatMakeNoSenseAreRefused() throws IOException {
        fails(Kind.NOT_FOUND, () -> LogDirs.open(List.of(home.resolve("nowhere"))));
        assertThrows(NullPointerException.class, () -> LogDirs.open(null));
        assertThrows(IllegalArgumentException.class, () -> new VerifyOptions().threads(-1));
        assertThrows(NullPointerException.class,
                () -> new RecoverOptions().topic(null, 0, 0, true));
        try (LogDirs logs = LogDirs.open(dirs)) {
            assertThrows(NullPointerException.class, () -> logs.recover(null, null));
            assertThrows(NullPointerException.class, () -> logs.verify(null, null));
            assertThrows(NullPointerException.class, () -> logs.scan(null));
        }
    }
}
