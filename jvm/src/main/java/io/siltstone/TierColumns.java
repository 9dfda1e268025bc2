package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/**
 * What is known of the segments of many logs, and what of them is to be uploaded: columns of native
 * memory, an element for each segment or partition, and no object for any of them. The host writes
 * what it knows and reads the answers where they stand:
 *
 * <pre>{@code
 * TierColumns columns = new TierColumns(partitions, segments);
 * MemorySegment bases = columns.of(Column.BASE_OFFSET);
 * bases.setAtIndex(JAVA_LONG, 0, 4711);
 * ...
 * columns.decide(partitions, segments, 0, nowMs);
 * byte isDue = columns.of(Column.ELIGIBLE).get(JAVA_BYTE, 0);
 * }</pre>
 *
 * <p>A column that was never asked for does not count, and an answer that was not is not made. Of
 * the segments of a partition, which follow each other by rising base offset, the last one is
 * written to. Elements are longs unless it says bytes.
 */
public final class TierColumns {
    /** A column. */
    public enum Column {
        /** Of each segment: its base offset. Needed. */
        BASE_OFFSET(true, 8),
        /** Of each segment: the bytes of all before it, counted from anywhere. */
        START_BYTES(true, 8),
        /**
         * Of each segment: its latest timestamp; -1: no record has one, Long.MIN_VALUE: not known.
         */
        MAX_TIMESTAMP_MS(true, 8),
        /** Of each partition: the number of the segment behind its last, of all. Needed. */
        SEGMENT_END(false, 8),
        /** Of each partition: the size of the segment that is written to. */
        ACTIVE_SIZE_BYTES(false, 8),
        /** Of each partition: where its log starts. */
        LOG_START_OFFSET(false, 8),
        /** Of each partition: its last stable offset. */
        LAST_STABLE_OFFSET(false, 8),
        /** Of each partition: the last offset that is copied; -1 for none. */
        COPIED_OFFSET(false, 8),
        /** Of each partition: from where on leader epochs are known. */
        LINEAGE_START_OFFSET(false, 8),
        /** Of each partition: an upload is put off for so long; 0: not at all, -1: not by time. */
        COPY_LAG_MS(false, 8),
        /** Of each partition: until so much is behind a segment; the same. */
        COPY_LAG_BYTES(false, 8),
        /** Segments that must not be uploaded: their rising numbers among all. */
        DAMAGED(true, 8),
        /** Answer for each segment: 1 where it is to be uploaded, else 0. A byte each. */
        ELIGIBLE(true, 1),
        /** Answer for each segment: {@code WAITS_} of {@link Codes}. A byte each. */
        REASON(true, 1),
        /** Answer for each partition: the number of the first candidate, or of who waits. */
        FIRST_SEGMENT(false, 8),
        /** Answer for each partition: how many candidates follow each other. */
        ELIGIBLE_COUNT(false, 8),
        /**
         * Answer for each partition: {@code WAITS_} of the segment behind the last candidate. A
         * byte each.
         */
        STOP(false, 1),
        /** Answer for each partition: the bytes of the candidates; 0 without START_BYTES. */
        SUM_BYTES(false, 8),
        /**
         * Answer for each partition: the timestamp of the first candidate; Long.MIN_VALUE: not
         * known, or none.
         */
        OLDEST_TIMESTAMP_MS(false, 8);

        private final boolean isOfSegments;
        private final int elementSize;

        Column(boolean isOfSegments, int elementSize) {
            this.isOfSegments = isOfSegments;
            this.elementSize = elementSize;
        }

        private long field() {
            return at(name().toLowerCase(Locale.ROOT));
        }
    }

    private static final long SEGMENT_COUNT = at("segment_count");
    private static final long PARTITION_COUNT = at("partition_count");
    private static final long DAMAGED_COUNT = at("damaged_count");
    private static final long NOW_MS = at("now_ms");

    private final int partitionCapacity;
    private final int segmentCapacity;
    private final MemorySegment struct = Arena.ofAuto().allocate(TierLayouts.TIER_COLUMNS);
    private final Map<Column, MemorySegment> columns = new EnumMap<>(Column.class);

    /** Columns for so many partitions, with so many segments together. */
    public TierColumns(int partitionCapacity, int segmentCapacity) {
        Rows.checkCapacity(partitionCapacity);
        Rows.checkCapacity(segmentCapacity);
        this.partitionCapacity = partitionCapacity;
        this.segmentCapacity = segmentCapacity;
        struct.set(JAVA_INT, 0, Math.toIntExact(struct.byteSize()));
        of(Column.BASE_OFFSET);
        of(Column.SEGMENT_END);
    }

    private static long at(String field) {
        return Layouts.at(TierLayouts.TIER_COLUMNS, field);
    }

    /** How many partitions fit. */
    public int partitionCapacity() {
        return partitionCapacity;
    }

    /** How many segments fit. */
    public int segmentCapacity() {
        return segmentCapacity;
    }

    /** A column, which counts from now on; full of zeros at first, and always the same memory. */
    public synchronized MemorySegment of(Column column) {
        MemorySegment memory = columns.get(Objects.requireNonNull(column));
        if (memory == null) {
            long count = column.isOfSegments ? segmentCapacity : partitionCapacity;
            // Of the garbage collector's arena: nobody can close it under the library.
            memory = Arena.ofAuto().allocate(count * column.elementSize, Long.BYTES);
            columns.put(column, memory);
            struct.set(ADDRESS, column.field(), memory);
        }
        return memory;
    }

    /** Has a column not count any more; what it is full of is forgotten. */
    public synchronized void leaveOut(Column column) {
        if (column == Column.BASE_OFFSET || column == Column.SEGMENT_END) {
            throw new IllegalArgumentException(column + " is needed");
        }
        columns.remove(column);
        struct.set(ADDRESS, column.field(), MemorySegment.NULL);
    }

    /**
     * Says what is to be uploaded of the first partitions and segments.
     *
     * @param damaged how many elements of {@link Column#DAMAGED} count
     * @throws SiltstoneException {@link Kind#INVALID_ARGUMENT} for numbers that do not rise as they
     *     must, where that is found out; else the answers are of no use
     */
    public synchronized void decide(int partitions, int segments, int damaged, long nowMs) {
        Objects.checkFromToIndex(0, partitions, partitionCapacity);
        Objects.checkFromToIndex(0, segments, segmentCapacity);
        boolean isAnyDamaged = columns.containsKey(Column.DAMAGED);
        Objects.checkFromToIndex(0, damaged, isAnyDamaged ? segmentCapacity : 0);
        struct.set(JAVA_INT, PARTITION_COUNT, partitions);
        struct.set(JAVA_LONG, SEGMENT_COUNT, segments);
        struct.set(JAVA_LONG, DAMAGED_COUNT, damaged);
        struct.set(JAVA_LONG, NOW_MS, nowMs);
        try {
            Scratch.call(scratch ->
                    (int) TierNative.TIER_ELIGIBLE.invokeExact(struct, scratch.error));
        } finally {
            // The struct has bare addresses of memory that only the columns keep.
            Reference.reachabilityFence(columns);
        }
    }
}
