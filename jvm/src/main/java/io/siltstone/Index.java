package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.nio.file.Path;

/**
 * One offset, time or transaction index by itself, for hosts that keep their logs themselves. The
 * path is the host's to change: it is given anew to each call that touches the file.
 *
 * <p>Any number of threads may look up while one appends, cuts or closes. Nobody is counted, since
 * a look-up takes less time than that: {@link #close()} lets go of what the index holds, and the
 * little that is left goes when nobody can reach the object.
 */
public final class Index implements AutoCloseable {
    /** What an index is for. */
    public enum Type {
        /** From offsets to positions. */
        OFFSET,
        /** From timestamps to offsets. */
        TIME,
        /** Aborted transactions. */
        TXN
    }

    private static final int READ_ONLY = 1;
    private static final int SHORT_BUFFER = Kind.SHORT_BUFFER.code();
    private static final long ENTRY_COUNT = Layouts.at(Layouts.INDEX_COUNTERS, "entry_count");
    private static final long MAX_ENTRIES = Layouts.at(Layouts.INDEX_COUNTERS, "max_entries");
    private static final long FILE_SIZE_BYTES =
            Layouts.at(Layouts.INDEX_COUNTERS, "file_size_bytes");
    private static final long LAST_OFFSET = Layouts.at(Layouts.INDEX_COUNTERS, "last_offset");
    private static final long LAST_TIMESTAMP_MS =
            Layouts.at(Layouts.INDEX_COUNTERS, "last_timestamp_ms");

    /** What is freed when nobody can reach it: a copy of this object's fields reaches it, too. */
    private static final class Held {
        final long object;

        Held(long object) {
            this.object = object;
            Handle.watch(this, () -> free(object));
        }
    }

    private final Held held;

    private Index(long object) {
        held = new Held(object);
    }

    private static void free(long object) {
        try {
            Native.INDEX_CLOSE.invokeExact(object);
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        }
    }

    /**
     * Opens or makes an index.
     *
     * @param maxSizeBytes the size of a file that is made; a transaction index has none
     * @param isReadOnly whether a missing file is not made, and nothing is written
     */
    public static Index open(
            Path path, Type type, long baseOffset, int maxSizeBytes, boolean isReadOnly) {
        long[] object = new long[1];
        int flags = isReadOnly ? READ_ONLY : 0;
        int kind = type.ordinal();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = Memory.path(arena, path);
            Scratch.call(scratch -> {
                int status = (int) Native.INDEX_OPEN.invokeExact(name, kind, baseOffset,
                        maxSizeBytes, flags, scratch.first, scratch.error);
                object[0] = scratch.firstLong();
                return status;
            });
        }
        return new Index(object[0]);
    }

    /** Lets go of the index. What was not flushed or trimmed is not written. */
    @Override
    public void close() {
        call((index, scratch) -> (int) Native.INDEX_SHUT.invokeExact(index, scratch.error));
    }

    /**
     * Of an offset index: the last entry whose offset is at most this one, as one number. Its
     * offset above the base is in the upper 32 bits and its position in the lower; 0 where there is
     * none.
     */
    public long lookup(long offset) {
        long found;
        try {
            found = (long) Native.INDEX_LOOKUP.invokeExact(held.object, offset);
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        } finally {
            Reference.reachabilityFence(held);
        }
        return checked(found);
    }

    /** Of an offset index: an entry behind the bytes of a fetch, in the same form. */
    public long upperBound(int position, int sizeBytes) {
        long found;
        try {
            found = (long) Native.INDEX_UPPER_BOUND.invokeExact(held.object, position, sizeBytes);
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        } finally {
            Reference.reachabilityFence(held);
        }
        return checked(found);
    }

    private static long checked(long found) {
        if (found < 0) {
            int status = (int) Math.max(found, Integer.MIN_VALUE);
            throw new SiltstoneException(Kind.of(status), Library.statusName(status));
        }
        return found;
    }

    /** Of a time index: the last entry whose timestamp is at most this one. */
    public void lookupTime(long timestampMs, IndexEntry out) {
        MemorySegment result = out.memory();
        call((index, scratch) -> (int) Native.INDEX_LOOKUP_TIME.invokeExact(
                index, timestampMs, result, scratch.error));
    }

    /** The entry in a slot of an offset or time index. */
    public void entry(int slot, IndexEntry out) {
        MemorySegment result = out.memory();
        call((index, scratch) -> (int) Native.INDEX_ENTRY.invokeExact(
                index, slot, result, scratch.error));
    }

    /** Appends to an offset index. */
    public void append(long offset, int position) {
        call((index, scratch) -> (int) Native.INDEX_APPEND.invokeExact(
                index, offset, position, scratch.error));
    }

    /** Appends to a time index, if the timestamp is above the last one; whether it was. */
    public boolean appendTime(long timestampMs, long offset, boolean isForced) {
        return flag((index, scratch) -> (int) Native.INDEX_APPEND_TIME.invokeExact(
                index, timestampMs, offset, isForced ? 1 : 0, scratch.first, scratch.error));
    }

    /** Appends to a transaction index and its file. */
    public void appendAborted(
            Path path, long producerId, long firstOffset, long lastOffset,
            long lastStableOffset) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = pathOrNull(arena, path);
            MemorySegment entry = arena.allocateFrom(
                    JAVA_LONG, producerId, firstOffset, lastOffset, lastStableOffset);
            call((index, scratch) -> (int) Native.INDEX_APPEND_ABORTED.invokeExact(
                    index, name, entry, scratch.error));
        }
    }

    /**
     * Of a transaction index: fills in what a reader from an offset on, of a range that ends before
     * another, must know. Whether no later segment can have more.
     */
    public boolean collectAborted(long from, long upperBound, AbortedEntries out) {
        MemorySegment rows = out.memory();
        long[] found = new long[2];
        out.filled(0);
        call((index, scratch) -> {
            scratch.second.set(JAVA_INT, 0, 0);
            int status = (int) Native.INDEX_COLLECT_ABORTED.invokeExact(index, from, upperBound,
                    rows, out.capacity(), scratch.first, scratch.second, scratch.error);
            found[0] = Integer.toUnsignedLong(scratch.firstInt());
            found[1] = scratch.second.get(JAVA_INT, 0);
            return status;
        }, SHORT_BUFFER);
        out.filled(found[0]);
        return found[1] != 0;
    }

    /** Removes every entry at or above an offset. The path may be null but for transactions. */
    public void truncateTo(Path path, long offset) {
        at(path, (index, name, scratch) -> (int) Native.INDEX_TRUNCATE_TO.invokeExact(
                index, name, offset, scratch.error));
    }

    /** Gives the file another length, and writes what was appended; whether it is another one. */
    public boolean resize(Path path, int sizeBytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = pathOrNull(arena, path);
            return flag((index, scratch) -> (int) Native.INDEX_RESIZE.invokeExact(
                    index, name, sizeBytes, scratch.first, scratch.error));
        }
    }

    /** The same, to the size of the entries. */
    public void trim(Path path) {
        at(path, (index, name, scratch) -> (int) Native.INDEX_TRIM.invokeExact(
                index, name, scratch.error));
    }

    /** Writes what was appended and makes it durable. */
    public void flush(Path path) {
        at(path, (index, name, scratch) -> (int) Native.INDEX_FLUSH.invokeExact(
                index, name, scratch.error));
    }

    /** Kafka's own check of the ends and the length. */
    public void sanityCheck() {
        call((index, scratch) -> (int) Native.INDEX_SANITY_CHECK.invokeExact(
                index, scratch.error));
    }

    /** How many entries an offset or time index has. */
    public long entryCount() {
        return counter(ENTRY_COUNT);
    }

    /** How many fit. */
    public long maxEntries() {
        return counter(MAX_ENTRIES);
    }

    /** The size of the file as it was set or found last. */
    public long fileSizeBytes() {
        return counter(FILE_SIZE_BYTES);
    }

    /** The last offset; the base offset when there is no entry. */
    public long lastOffset() {
        return counter(LAST_OFFSET);
    }

    /** The last timestamp of a time index; -1 when there is no entry. */
    public long lastTimestampMs() {
        return counter(LAST_TIMESTAMP_MS);
    }

    @SuppressWarnings("restricted")
    private long counter(long field) {
        long[] address = new long[1];
        call((index, scratch) -> {
            int status = (int) Native.INDEX_COUNTERS.invokeExact(
                    index, scratch.first, scratch.error);
            address[0] = scratch.firstLong();
            return status;
        });
        try {
            return MemorySegment.ofAddress(address[0])
                    .reinterpret(Layouts.INDEX_COUNTERS.byteSize())
                    .get(JAVA_LONG, field);
        } finally {
            Reference.reachabilityFence(held);
        }
    }

    /** What is done with a file. */
    @FunctionalInterface
    private interface AtPath {
        int run(long index, MemorySegment name, Scratch scratch) throws Throwable;
    }

    private void at(Path path, AtPath body) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = pathOrNull(arena, path);
            call((index, scratch) -> body.run(index, name, scratch));
        }
    }

    private static MemorySegment pathOrNull(Arena arena, Path path) {
        return path == null ? MemorySegment.NULL : Memory.path(arena, path);
    }

    private boolean flag(Handle.Body body) {
        int[] isSet = new int[1];
        call((index, scratch) -> {
            int status = body.run(index, scratch);
            isSet[0] = scratch.firstInt();
            return status;
        });
        return isSet[0] != 0;
    }

    private void call(Handle.Body body) {
        call(body, 0);
    }

    private int call(Handle.Body body, int other) {
        try {
            return Scratch.call(scratch -> body.run(held.object, scratch), other);
        } finally {
            Reference.reachabilityFence(held);
        }
    }
}
