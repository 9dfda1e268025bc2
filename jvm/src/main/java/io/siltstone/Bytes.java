package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Pure functions over native memory. */
public final class Bytes {
    private static final int SHORT_BUFFER = Kind.SHORT_BUFFER.code();
    private static final int ABORT = 1;
    private static final int CORRUPT = Kind.CORRUPT.code();

    private Bytes() {}

    /** CRC-32C of some bytes, going on from the one of those before; 0 to begin with. */
    public static int crc32c(int crc, MemorySegment bytes) {
        MemorySegment input = Memory.input(bytes);
        try {
            return (int) Native.CRC32C.invokeExact(crc, input, input.byteSize());
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        }
    }

    /**
     * Reads the headers of the batches that lie in some bytes, as many as fit; checksums are not
     * looked at. The result is where the first batch begins that is not whole, or that did not fit.
     *
     * @throws SiltstoneException {@link Kind#CORRUPT} for bytes that are no batch
     */
    public static long parse(MemorySegment bytes, Batches out) {
        MemorySegment input = Memory.input(bytes);
        MemorySegment rows = out.memory();
        long[] found = new long[2];
        out.filled(0);
        int status = Scratch.call(scratch -> {
            int outcome = (int) Native.BATCH_PARSE.invokeExact(input, input.byteSize(), rows,
                    out.capacity(), scratch.first, scratch.second, scratch.error);
            found[0] = scratch.firstInt();
            found[1] = scratch.second.get(JAVA_LONG, 0);
            return outcome;
        }, SHORT_BUFFER);
        out.filled(status == SHORT_BUFFER ? found[0] + 1 : found[0]);
        return found[1];
    }

    /** Where the last batch ends whose frame and checksum are good. */
    public static long validBytes(MemorySegment bytes) {
        return validate(bytes, CORRUPT);
    }

    /**
     * Checks frames and checksums.
     *
     * @throws SiltstoneException {@link Kind#CORRUPT} for the first batch that is not good
     */
    public static void validate(MemorySegment bytes) {
        validate(bytes, 0);
    }

    private static long validate(MemorySegment bytes, int allowed) {
        MemorySegment input = Memory.input(bytes);
        long[] valid = new long[1];
        Scratch.call(scratch -> {
            int status = (int) Native.BATCH_VALIDATE.invokeExact(
                    input, input.byteSize(), scratch.first, scratch.error);
            valid[0] = scratch.firstLong();
            return status;
        }, allowed);
        return valid[0];
    }

    /**
     * Writes the batch that ends a transaction, as Kafka's coordinator has it written: to be
     * appended with {@link Origin#COORDINATOR}. How many bytes that takes; when it takes more than
     * there is room for, nothing is written.
     *
     * @param isAbort else the transaction is committed
     * @param baseOffset and {@code leaderEpoch}: an append as a leader gives it its own
     */
    public static long writeEndMarker(
            boolean isAbort, long producerId, int producerEpoch, int coordinatorEpoch,
            long timestampMs, long baseOffset, int leaderEpoch, MemorySegment out) {
        MemorySegment room = Memory.output(out);
        long[] size = new long[1];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment marker = arena.allocate(Layouts.END_MARKER);
            marker.set(JAVA_INT, 0, Math.toIntExact(marker.byteSize()));
            marker.set(JAVA_INT, inMarker("flags"), isAbort ? ABORT : 0);
            marker.set(JAVA_LONG, inMarker("producer_id"), producerId);
            marker.set(JAVA_LONG, inMarker("timestamp_ms"), timestampMs);
            marker.set(JAVA_LONG, inMarker("base_offset"), baseOffset);
            marker.set(JAVA_INT, inMarker("coordinator_epoch"), coordinatorEpoch);
            marker.set(JAVA_INT, inMarker("leader_epoch"), leaderEpoch);
            marker.set(JAVA_INT, inMarker("producer_epoch"), producerEpoch);
            Scratch.call(scratch -> {
                int status = (int) Native.END_MARKER_WRITE.invokeExact(
                        marker, room, room.byteSize(), scratch.first, scratch.error);
                size[0] = scratch.firstLong();
                return status;
            }, SHORT_BUFFER);
        }
        return size[0];
    }

    private static long inMarker(String field) {
        return Layouts.at(Layouts.END_MARKER, field);
    }

    /**
     * Walks the bytes of a whole segment and makes its offset and time index as Kafka's recovery
     * does. A tail that is torn or damaged ends the walk and is no error. Either index may be null
     * when it is not wanted. False when one does not fit: {@code out} has the sizes that it takes.
     *
     * @param intervalBytes an entry behind every so many bytes of log; 0 for Kafka's default
     * @param indexSizeBytesMax the size of an index at most; 0 for Kafka's default
     */
    public static boolean rebuild(
            MemorySegment log, long baseOffset, int intervalBytes, int indexSizeBytesMax,
            MemorySegment offsetIndex, MemorySegment timeIndex, Rebuilt out) {
        MemorySegment input = Memory.input(log);
        MemorySegment offsets = Memory.outputOrNull(offsetIndex);
        MemorySegment times = Memory.outputOrNull(timeIndex);
        MemorySegment result = out.memory();
        return Scratch.call(scratch -> (int) Native.SEGMENT_REBUILD.invokeExact(
                input, input.byteSize(), baseOffset, intervalBytes, indexSizeBytesMax,
                offsets, offsets.byteSize(), times, times.byteSize(), result, scratch.error),
                SHORT_BUFFER) == 0;
    }

    /**
     * Reads the producers in the bytes of a snapshot; how many there are.
     *
     * @throws SiltstoneException {@link Kind#CORRUPT} for a file that Kafka would delete
     */
    public static long readSnapshot(MemorySegment snapshot, Producers out) {
        MemorySegment input = Memory.input(snapshot);
        MemorySegment rows = out.memory();
        long[] total = new long[1];
        out.filled(0);
        Scratch.call(scratch -> {
            int status = (int) StateNative.SNAPSHOT_READ.invokeExact(input, input.byteSize(), rows,
                    out.capacity(), scratch.first, scratch.error);
            total[0] = Integer.toUnsignedLong(scratch.firstInt());
            return status;
        }, SHORT_BUFFER);
        return out.filled(total[0]);
    }

    /**
     * Writes the bytes of a snapshot of these producers, in their order; how many bytes that takes.
     * When it takes more than there is room for, nothing of use is written.
     */
    public static long writeSnapshot(Producers producers, MemorySegment out) {
        MemorySegment room = Memory.output(out);
        MemorySegment rows = producers.memory();
        int count = producers.count();
        long[] size = new long[1];
        Scratch.call(scratch -> {
            int status = (int) StateNative.SNAPSHOT_WRITE.invokeExact(
                    rows, count, room, room.byteSize(), scratch.first, scratch.error);
            size[0] = scratch.firstLong();
            return status;
        }, SHORT_BUFFER);
        return size[0];
    }
}
