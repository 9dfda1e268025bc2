package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.UUID;

/**
 * One partition. Any number of threads may read; of those that write (append, roll, truncate,
 * stop) a second one gets {@link Kind#CONFLICT} and nothing happens. What goes on beside the one
 * that writes, such as {@link #retain}, keeps it waiting at most.
 */
public final class Log implements AutoCloseable {
    private static final int NOT_FOUND = Kind.NOT_FOUND.code();
    private static final int EPOCH_BUMPS = 1;
    private static final long LEADER_EPOCH = Layouts.at(Layouts.APPEND, "leader_epoch");
    private static final long NOW_MS = Layouts.at(Layouts.APPEND, "now_ms");
    private static final long ORIGIN = Layouts.at(Layouts.APPEND, "origin");
    private static final long TRANSACTION_VERSION =
            Layouts.at(Layouts.APPEND, "transaction_version");
    private static final long VERIFICATION = Layouts.at(Layouts.APPEND, "verification");

    private final Handle handle;

    /** An object that nobody else closes. */
    Log(long object) {
        handle = Handle.of(this, object, Native.LOG_CLOSE);
    }

    /**
     * Opens the log of a partition's directory; one that is missing is made.
     *
     * @throws SiltstoneException {@link Kind#CONFLICT} while a log of this directory that this
     *     process has opened is neither stopped nor given back
     */
    public static Log open(Path dir, LogOptions options) {
        long[] object = new long[1];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = Memory.path(arena, dir);
            MemorySegment struct = options.write(arena);
            Scratch.call(scratch -> {
                int status = (int) Native.LOG_OPEN.invokeExact(
                        name, struct, scratch.first, scratch.error);
                object[0] = scratch.firstLong();
                return status;
            });
        }
        return new Log(object[0]);
    }

    Handle handle() {
        return handle;
    }

    /** Whether {@link #close()} was called. */
    public boolean isClosed() {
        return handle.isClosed();
    }

    /**
     * Ends the log as a clean stop does: makes it durable and writes its snapshot. Then every call
     * but {@link #close()} gives {@link Kind#CLOSED}.
     *
     * @throws SiltstoneException {@link Kind#CONFLICT} for a log of an {@link Engine}
     */
    public void stop() {
        handle.call((log, scratch) -> (int) Native.LOG_STOP.invokeExact(log, scratch.error));
    }

    /**
     * Gives the log back, when the calls that run have ended and no {@link Fetches},
     * {@link Appends} or {@link Ring} names it any more. Until then its directory cannot be opened
     * again: {@link #stop()} lets go of it at once. What was not flushed may be lost in a crash of
     * the machine.
     */
    @Override
    public void close() {
        handle.close();
    }

    /**
     * Appends what a producer has sent: one batch, which gets its offsets, leader epoch and, where
     * the topic says so, timestamp in {@code records} itself. When it is refused, neither the log
     * nor {@code records} changes, and {@link SiltstoneException#detail()} says why.
     *
     * @param transactionVersion of who wrote a marker: 1 or 2; 0 when it is not known
     */
    public void appendLeader(
            MemorySegment records, int leaderEpoch, long nowMs, Origin origin,
            int transactionVersion, Appended out) {
        appendLeader(records, leaderEpoch, nowMs, origin, transactionVersion, 0, out);
    }

    /** The same for a batch whose transaction {@link #startVerification} has a number for. */
    public void appendLeader(
            MemorySegment records, int leaderEpoch, long nowMs, Origin origin,
            int transactionVersion, long verification, Appended out) {
        MemorySegment bytes = Memory.output(records);
        MemorySegment result = out.memory();
        int from = origin.ordinal();
        handle.call((log, scratch) -> {
            MemorySegment request = scratch.append;
            request.set(JAVA_INT, LEADER_EPOCH, leaderEpoch);
            request.set(JAVA_LONG, NOW_MS, nowMs);
            request.set(JAVA_INT, ORIGIN, from);
            request.set(JAVA_INT, TRANSACTION_VERSION, transactionVersion);
            request.set(JAVA_LONG, VERIFICATION, verification);
            return (int) Native.LOG_APPEND_LEADER.invokeExact(
                    log, bytes, bytes.byteSize(), request, result, scratch.error);
        });
    }

    /**
     * What comes before the first batch of a producer's transaction, which is refused without it:
     * the coordinator is asked whether the transaction is open and has this partition, and the
     * batch is appended with the number that this gives. A marker that comes in between ends the
     * verification. 0: the transaction is open in this log, and nothing is to be asked.
     *
     * @param epochBumps whether the producer gets a new epoch with each transaction
     */
    public long startVerification(
            long producerId, int baseSequence, int producerEpoch, boolean epochBumps, long nowMs) {
        int flags = epochBumps ? EPOCH_BUMPS : 0;
        return number((log, scratch) -> (int) Native.LOG_START_VERIFICATION.invokeExact(
                log, producerId, baseSequence, producerEpoch, flags, nowMs, scratch.first,
                scratch.error));
    }

    /** Appends what a leader has sent, offsets and all; the bytes are written as they are. */
    public void appendFollower(MemorySegment records, int leaderEpoch, long nowMs, Appended out) {
        MemorySegment bytes = Memory.input(records);
        MemorySegment result = out.memory();
        handle.call((log, scratch) -> (int) Native.LOG_APPEND_FOLLOWER.invokeExact(
                log, bytes, bytes.byteSize(), leaderEpoch, nowMs, result, scratch.error));
    }

    /** Makes durable what was appended before. After a failure the log must be opened again. */
    public void flush(long nowMs) {
        handle.call((log, scratch) ->
                (int) Native.LOG_FLUSH.invokeExact(log, nowMs, scratch.error));
    }

    /** Begins a new segment at the log end; its base offset. */
    public long roll(long nowMs) {
        return number((log, scratch) -> (int) Native.LOG_ROLL.invokeExact(
                log, nowMs, scratch.first, scratch.error));
    }

    /** Removes everything from {@code offset} on. */
    public void truncateTo(long offset, long nowMs) {
        handle.call((log, scratch) -> (int) Native.LOG_TRUNCATE_TO.invokeExact(
                log, offset, nowMs, scratch.error));
    }

    /**
     * Removes everything and goes on at {@code offset}. The log start is {@code logStartOffset},
     * which is below it where remote storage has the offsets between, and -1 for the offset itself.
     */
    public void truncateFully(long offset, long logStartOffset, long nowMs) {
        handle.call((log, scratch) -> (int) Native.LOG_TRUNCATE_FULLY.invokeExact(
                log, offset, logStartOffset, nowMs, scratch.error));
    }

    /** The offsets. */
    public void offsets(Offsets out) {
        MemorySegment result = out.memory();
        handle.call((log, scratch) -> (int) Native.LOG_OFFSETS.invokeExact(
                log, result, scratch.error));
    }

    /** Sets the high watermark, within log start and log end; what it is then. */
    public long setHighWatermark(long offset) {
        return number((log, scratch) -> (int) Native.LOG_SET_HIGH_WATERMARK.invokeExact(
                log, offset, scratch.first, scratch.error));
    }

    /** The id of the topic; null where none is known. */
    public UUID topicId() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment id = arena.allocate(Memory.UUID_SIZE);
            handle.call((log, scratch) ->
                    (int) Native.LOG_TOPIC_ID.invokeExact(log, id, scratch.error));
            UUID known = Memory.uuid(id, 0);
            return known.equals(new UUID(0, 0)) ? null : known;
        }
    }

    /**
     * Takes note that all up to {@code offset}, inclusive, is in remote storage: what local
     * retention may remove. It goes back by itself when the log is cut, and when remote storage is
     * switched off.
     */
    public void setHighestRemote(long offset) {
        handle.call((log, scratch) -> (int) Native.LOG_SET_HIGHEST_REMOTE.invokeExact(
                log, offset, scratch.error));
    }

    /**
     * Forgets producers that have been silent for longer than {@code producer.id.expiration.ms}.
     * Of an {@link Engine}'s logs that is work that is due.
     */
    public void expireProducers(long nowMs) {
        handle.call((log, scratch) -> (int) Native.LOG_EXPIRE_PRODUCERS.invokeExact(
                log, nowMs, scratch.error));
    }

    /**
     * Raises the log start, up to the high watermark or the local log start, whichever lies further;
     * a lower offset changes nothing.
     */
    public void advanceStart(long offset) {
        handle.call((log, scratch) -> (int) Native.LOG_ADVANCE_START.invokeExact(
                log, offset, scratch.error));
    }

    /** Removes the segments that the topic's retention does not keep; their number. */
    public long retain(long nowMs) {
        return number((log, scratch) -> (int) Native.LOG_RETAIN.invokeExact(
                log, nowMs, scratch.first, scratch.error));
    }

    /** Unlinks files whose {@code file.delete.delay.ms} is over; their number. */
    public long deleteDueFiles(long nowMs) {
        return number((log, scratch) -> (int) Native.LOG_DELETE_DUE_FILES.invokeExact(
                log, nowMs, scratch.first, scratch.error));
    }

    /** Fills in the segments; how many there are. */
    public long segments(Segments out) {
        return handle.fill(out, (log, scratch) -> (int) Native.LOG_SEGMENTS.invokeExact(
                log, out.memory(), out.capacity(), scratch.first, scratch.error));
    }

    /** Fills in the leader epochs; how many there are. */
    public long epochs(Epochs out) {
        return handle.fill(out, (log, scratch) -> (int) Native.LOG_EPOCHS.invokeExact(
                log, out.memory(), out.capacity(), scratch.first, scratch.error));
    }

    /** Fills in the aborted transactions that a reader from one offset to another must know. */
    public long aborted(long from, long to, AbortedTxns out) {
        return handle.fill(out, (log, scratch) -> (int) Native.LOG_ABORTED.invokeExact(
                log, from, to, out.memory(), out.capacity(), scratch.first, scratch.error));
    }

    /** Fills in the producers; a log that is written to by another thread cannot tell them. */
    public long producers(Producers out) {
        return handle.fill(out, (log, scratch) -> (int) StateNative.LOG_PRODUCERS.invokeExact(
                log, out.memory(), out.capacity(), scratch.first, scratch.error));
    }

    /**
     * The largest epoch that is not above this one goes to {@code out[0]}, and where it ends,
     * exclusive, to {@code out[1]}; -1 and -1 where there is none.
     */
    public void epochEnd(int epoch, long[] out) {
        if (out.length < 2) {
            throw new IllegalArgumentException("no room for two numbers");
        }
        handle.call((log, scratch) -> {
            int status = (int) Native.LOG_EPOCH_END.invokeExact(
                    log, epoch, scratch.first, scratch.second, scratch.error);
            if (status == 0) {
                out[0] = scratch.firstInt();
                out[1] = scratch.second.get(JAVA_LONG, 0);
            }
            return status;
        });
    }

    /** Says that batches from an offset on are of this epoch: what a new leader does first. */
    public void assignEpoch(int epoch, long startOffset) {
        handle.call((log, scratch) -> (int) Native.LOG_ASSIGN_EPOCH.invokeExact(
                log, epoch, startOffset, scratch.error));
    }

    /** Finds the first record that is as late as this or later; false where there is none. */
    public boolean offsetForTime(long timestampMs, TimeOffset out) {
        MemorySegment result = out.memory();
        return handle.call((log, scratch) -> (int) Native.LOG_OFFSET_FOR_TIME.invokeExact(
                log, timestampMs, result, scratch.error), NOT_FOUND) == 0;
    }

    /** A call whose result is a number. */
    private long number(Handle.Body body) {
        long[] number = new long[1];
        handle.call((log, scratch) -> {
            int status = body.run(log, scratch);
            number[0] = scratch.firstLong();
            return status;
        });
        return number[0];
    }
}
