package io.siltstone;

import java.lang.foreign.Arena;

/** The headers of record batches. What an old format does not have is -1. */
public final class Batches extends Rows {
    private static final long BASE_OFFSET = Layouts.at(Layouts.BATCH, "base_offset");
    private static final long LAST_OFFSET = Layouts.at(Layouts.BATCH, "last_offset");
    private static final long BASE_TIMESTAMP_MS = Layouts.at(Layouts.BATCH, "base_timestamp_ms");
    private static final long MAX_TIMESTAMP_MS = Layouts.at(Layouts.BATCH, "max_timestamp_ms");
    private static final long PRODUCER_ID = Layouts.at(Layouts.BATCH, "producer_id");
    private static final long POSITION = Layouts.at(Layouts.BATCH, "position");
    private static final long SIZE_BYTES = Layouts.at(Layouts.BATCH, "size_bytes");
    private static final long CRC = Layouts.at(Layouts.BATCH, "crc");
    private static final long LEADER_EPOCH = Layouts.at(Layouts.BATCH, "leader_epoch");
    private static final long BASE_SEQUENCE = Layouts.at(Layouts.BATCH, "base_sequence");
    private static final long RECORD_COUNT = Layouts.at(Layouts.BATCH, "record_count");
    private static final long PRODUCER_EPOCH = Layouts.at(Layouts.BATCH, "producer_epoch");
    private static final long MAGIC = Layouts.at(Layouts.BATCH, "magic");
    private static final long CODEC = Layouts.at(Layouts.BATCH, "codec");
    private static final long FLAGS = Layouts.at(Layouts.BATCH, "flags");

    /** Room for so many, in memory that the garbage collector frees. */
    public Batches(int capacity) {
        this(Arena.ofAuto(), capacity);
    }

    /** Room for so many, in memory of an arena. */
    public Batches(Arena arena, int capacity) {
        super(Layouts.BATCH, arena, capacity);
    }

    /** The first offset. */
    public long baseOffset(int row) {
        return longAt(row, BASE_OFFSET);
    }

    /** The last offset. */
    public long lastOffset(int row) {
        return longAt(row, LAST_OFFSET);
    }

    /** The timestamp that those of the records are told from, or the delete horizon. */
    public long baseTimestampMs(int row) {
        return longAt(row, BASE_TIMESTAMP_MS);
    }

    /** The latest timestamp. */
    public long maxTimestampMs(int row) {
        return longAt(row, MAX_TIMESTAMP_MS);
    }

    /** The producer. */
    public long producerId(int row) {
        return longAt(row, PRODUCER_ID);
    }

    /** Its first byte in the bytes that were given. */
    public long position(int row) {
        return longAt(row, POSITION);
    }

    /** Its size. */
    public int sizeBytes(int row) {
        return intAt(row, SIZE_BYTES);
    }

    /** Its checksum. */
    public int crc(int row) {
        return intAt(row, CRC);
    }

    /** The epoch of the leader that appended it. */
    public int leaderEpoch(int row) {
        return intAt(row, LEADER_EPOCH);
    }

    /** The sequence number of its first record. */
    public int baseSequence(int row) {
        return intAt(row, BASE_SEQUENCE);
    }

    /** How many records. */
    public int recordCount(int row) {
        return intAt(row, RECORD_COUNT);
    }

    /** The epoch of the producer. */
    public short producerEpoch(int row) {
        return shortAt(row, PRODUCER_EPOCH);
    }

    /** The version of its format. */
    public byte magic(int row) {
        return byteAt(row, MAGIC);
    }

    /** 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. */
    public byte codec(int row) {
        return byteAt(row, CODEC);
    }

    /** Whether it belongs to a transaction. */
    public boolean isTransactional(int row) {
        return (intAt(row, FLAGS) & 1) != 0;
    }

    /** Whether it has markers instead of records. */
    public boolean isControl(int row) {
        return (intAt(row, FLAGS) & 2) != 0;
    }

    /** Whether its timestamps are those of the append. */
    public boolean hasLogAppendTime(int row) {
        return (intAt(row, FLAGS) & 4) != 0;
    }

    /** Whether {@link #baseTimestampMs} is the delete horizon. */
    public boolean hasDeleteHorizon(int row) {
        return (intAt(row, FLAGS) & 8) != 0;
    }
}
