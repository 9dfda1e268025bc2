package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;

/**
 * Log directories that no broker has open. What the last verification or recovery has found stays
 * and is read by {@link #problems}, {@link #recoveries} and {@link #plan}. While one of these
 * works, a second one on the same object, from another thread or from the progress function, gets
 * {@link Kind#CONFLICT}.
 */
public final class LogDirs implements AutoCloseable {
    private final Handle handle;

    private LogDirs(long object) {
        handle = Handle.of(this, object, DirNative.DIR_CLOSE);
    }

    /** The directories of a broker's {@code log.dirs}. Nothing is locked or written. */
    public static LogDirs open(List<Path> dirs) {
        return open(dirs, LogOptions.Io.DEFAULT);
    }

    /** The same, and how the disk is spoken to. */
    public static LogDirs open(List<Path> dirs, LogOptions.Io io) {
        long[] object = new long[1];
        List<Path> all = List.copyOf(dirs);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment names = Memory.paths(arena, all);
            MemorySegment struct = arena.allocate(DirLayouts.DIR_OPTIONS);
            struct.set(JAVA_INT, 0, Math.toIntExact(struct.byteSize()));
            struct.set(JAVA_INT, Layouts.at(DirLayouts.DIR_OPTIONS, "io"), io.ordinal());
            Scratch.call(scratch -> {
                int status = (int) DirNative.DIR_OPEN.invokeExact(
                        names, all.size(), struct, scratch.first, scratch.error);
                object[0] = scratch.firstLong();
                return status;
            });
        }
        return new LogDirs(object[0]);
    }

    /** Fills in the partitions as they are now; how many there are. */
    public long scan(PartitionDirs out) {
        return handle.fill(out, (dir, scratch) -> (int) DirNative.DIR_SCAN.invokeExact(
                dir, out.memory(), out.capacity(), scratch.first, scratch.error));
    }

    /**
     * Reads everything and writes nothing. What is wrong is no failure: how much that is.
     *
     * @param progress null for none
     */
    public int verify(VerifyOptions options, Progress progress) {
        int[] count = new int[1];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = options.write(arena);
            ProgressCall.run(handle, progress, (dir, function, scratch) -> {
                int status = (int) DirNative.DIR_VERIFY.invokeExact(dir, struct, function,
                        MemorySegment.NULL, scratch.first, scratch.error);
                count[0] = scratch.firstInt();
                return status;
            });
        }
        return count[0];
    }

    /**
     * Finds what must be done so that a broker can start on directories that were not stopped
     * cleanly, and does it where the options say so. What comes of a partition is no failure and
     * stops no other.
     *
     * @param progress null for none
     * @throws SiltstoneException {@link Kind#CONFLICT} when a broker holds a directory that is to
     *     be repaired; {@link Kind#CANCELLED}: what was done until then is told, and is done
     */
    public void recover(RecoverOptions options, Progress progress) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = options.write(arena);
            ProgressCall.run(handle, progress, (dir, function, scratch) ->
                    (int) DirNative.DIR_RECOVER.invokeExact(
                            dir, struct, function, MemorySegment.NULL, scratch.error));
        }
    }

    /**
     * The same in steps: each call does one log directory and tells how many are left. At 0 the
     * next call begins anew.
     */
    public int recoverStep(RecoverOptions options) {
        int[] left = new int[1];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = options.write(arena);
            handle.call((dir, scratch) -> {
                int status = (int) DirNative.DIR_RECOVER_STEP.invokeExact(
                        dir, struct, scratch.first, scratch.error);
                left[0] = scratch.firstInt();
                return status;
            });
        }
        return left[0];
    }

    /** Fills in what the last verification or recovery has found; how much there is. */
    public long problems(Problems out) {
        return handle.fill(out, (dir, scratch) -> (int) DirNative.DIR_PROBLEMS.invokeExact(
                dir, out.memory(), out.capacity(), scratch.first, scratch.error));
    }

    /** Fills in what came of each partition; how many there are. */
    public long recoveries(Recoveries out) {
        return handle.fill(out, (dir, scratch) -> (int) DirNative.DIR_RECOVERIES.invokeExact(
                dir, out.memory(), out.capacity(), scratch.first, scratch.error));
    }

    /** Fills in the changes; how many there are. */
    public long plan(PlanSteps out) {
        return handle.fill(out, (dir, scratch) -> (int) DirNative.DIR_PLAN.invokeExact(
                dir, out.memory(), out.capacity(), scratch.first, scratch.error));
    }

    /** Gives it back, when the calls that run have ended. */
    @Override
    public void close() {
        handle.close();
    }
}
