package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.UUID;

/**
 * What is uploaded of one segment: its parts, whose files stay open, through deletion and close of
 * the log, until the upload is closed. Any number of threads may use it.
 */
public final class Upload implements AutoCloseable {
    /** Which upload it is. */
    public static final class Options {
        private int flags;
        private long nowMs;
        private UUID topicId = new UUID(0, 0);
        private UUID segmentId = new UUID(0, 0);
        private int brokerId;

        /** A new segment id, and the log's own topic id. */
        public Options() {}

        /** A producer snapshot that is missing is made, which Kafka does not. */
        public Options rebuildSnapshot() {
            flags = REBUILD_SNAPSHOT;
            return this;
        }

        /** The time. */
        public Options nowMs(long nowMs) {
            this.nowMs = nowMs;
            return this;
        }

        /** The topic's id, where the log does not know it. */
        public Options topicId(UUID id) {
            topicId = Objects.requireNonNull(id);
            return this;
        }

        /** The segment's id: another for each attempt. */
        public Options segmentId(UUID id) {
            segmentId = Objects.requireNonNull(id);
            return this;
        }

        /** Who uploads. */
        public Options brokerId(int id) {
            brokerId = id;
            return this;
        }

        private MemorySegment write(Arena arena) {
            MemorySegment out = arena.allocate(TierLayouts.UPLOAD_OPTIONS);
            out.set(JAVA_INT, 0, Math.toIntExact(out.byteSize()));
            out.set(JAVA_INT, at("flags"), flags);
            out.set(JAVA_LONG, at("now_ms"), nowMs);
            Memory.put(out, at("topic_id"), topicId);
            Memory.put(out, at("segment_id"), segmentId);
            out.set(JAVA_INT, at("broker_id"), brokerId);
            return out;
        }

        private static long at(String field) {
            return Layouts.at(TierLayouts.UPLOAD_OPTIONS, field);
        }
    }

    private static final int REBUILD_SNAPSHOT = 1;
    private static final int PARTS_MAX = 6;

    private final Handle handle;

    private Upload(long object) {
        handle = Handle.of(this, object, TierNative.UPLOAD_CLOSE);
    }

    /**
     * Gathers what is uploaded of the segment from one base offset to the next one's, and reads its
     * indexes: none that is damaged is uploaded.
     *
     * @throws SiltstoneException {@link Kind#NOT_FOUND} for a segment or snapshot that is not
     *     there, {@link Kind#CONFLICT} for a segment that is written to, ends elsewhere, is not
     *     stable yet or has no leader epoch, {@link Kind#CORRUPT} for an index
     */
    public static Upload of(Log log, long baseOffset, long nextOffset, Options options) {
        long[] object = new long[1];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = options.write(arena);
            log.handle().call((it, scratch) -> {
                int status = (int) TierNative.TIER_MANIFEST.invokeExact(
                        it, baseOffset, nextOffset, struct, scratch.first, scratch.error);
                object[0] = scratch.firstLong();
                return status;
            });
        }
        return new Upload(object[0]);
    }

    /** Fills in the parts, of which there are at most 6; how many there are. */
    public long parts(Parts out) {
        return handle.fill(out, (upload, scratch) -> (int) TierNative.UPLOAD_PARTS.invokeExact(
                upload, out.memory(), out.capacity(), scratch.first, scratch.error));
    }

    /**
     * Copies what a part has in memory; how many bytes that were.
     *
     * @param part {@code PART_} of {@link Codes}
     * @throws SiltstoneException {@link Kind#NOT_FOUND} for a part that is not there or is in a
     *     file, {@link Kind#SHORT_BUFFER} when there is no room for it
     */
    @SuppressWarnings("restricted")
    public long read(int part, MemorySegment out) {
        MemorySegment room = Memory.output(out);
        Parts parts = new Parts(PARTS_MAX);
        handle.enter();
        try {
            parts(parts);
            for (int row = 0; row < parts.count(); row++) {
                if (parts.part(row) == part && parts.fd(row) < 0) {
                    long size = parts.sizeBytes(row);
                    if (size > room.byteSize()) {
                        throw new SiltstoneException(Kind.SHORT_BUFFER, "no room for the part");
                    }
                    room.copyFrom(parts.bytes(row).reinterpret(size));
                    return size;
                }
            }
        } finally {
            handle.leave();
        }
        throw new SiltstoneException(Kind.NOT_FOUND, "no such part in memory");
    }

    /**
     * What is to be said of the segment before it is uploaded: that its copy has started.
     *
     * @throws SiltstoneException {@link Kind#SHORT_BUFFER} when its leader epochs have no room
     */
    public void segment(RemoteRecord out) {
        long object = handle.enter();
        try {
            out.fill(scratch -> (int) TierNative.UPLOAD_SEGMENT.invokeExact(
                    object, out.memory(), scratch.error));
        } finally {
            handle.leave();
        }
    }

    /** Whether the log was not cut since: to be asked when the parts were read. */
    public boolean isIntact() {
        boolean[] isIntact = new boolean[1];
        handle.call((upload, scratch) -> {
            isIntact[0] = (int) TierNative.UPLOAD_IS_INTACT.invokeExact(upload) == 1;
            return 0;
        });
        return isIntact[0];
    }

    /** Closes the files, when the calls that run have ended. */
    @Override
    public void close() {
        handle.close();
    }
}
