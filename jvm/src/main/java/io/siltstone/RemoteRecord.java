package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.UUID;

/**
 * What is said of a segment in remote storage, as {@code __remote_log_metadata} has it. Which
 * fields a kind does not have, is 0 or empty. One thread at a time should use it.
 */
public final class RemoteRecord extends Struct {
    private static final long KIND = Layouts.at(TierLayouts.REMOTE_RECORD, "kind");
    private static final long STATE = Layouts.at(TierLayouts.REMOTE_RECORD, "state");
    private static final long PARTITION = Layouts.at(TierLayouts.REMOTE_RECORD, "partition");
    private static final long BROKER_ID = Layouts.at(TierLayouts.REMOTE_RECORD, "broker_id");
    private static final long SIZE_BYTES = Layouts.at(TierLayouts.REMOTE_RECORD, "size_bytes");
    private static final long START_OFFSET = Layouts.at(TierLayouts.REMOTE_RECORD, "start_offset");
    private static final long END_OFFSET = Layouts.at(TierLayouts.REMOTE_RECORD, "end_offset");
    private static final long MAX_TIMESTAMP_MS =
            Layouts.at(TierLayouts.REMOTE_RECORD, "max_timestamp_ms");
    private static final long EVENT_TIMESTAMP_MS =
            Layouts.at(TierLayouts.REMOTE_RECORD, "event_timestamp_ms");
    private static final long FLAGS = Layouts.at(TierLayouts.REMOTE_RECORD, "flags");
    private static final long EPOCH_COUNT = Layouts.at(TierLayouts.REMOTE_RECORD, "epoch_count");
    private static final long TOPIC_SIZE =
            Layouts.at(TierLayouts.REMOTE_RECORD, "topic_size_bytes");
    private static final long CUSTOM_SIZE =
            Layouts.at(TierLayouts.REMOTE_RECORD, "custom_size_bytes");
    private static final long TOPIC_ID = Layouts.at(TierLayouts.REMOTE_RECORD, "topic_id");
    private static final long SEGMENT_ID = Layouts.at(TierLayouts.REMOTE_RECORD, "segment_id");
    private static final long START_OF_EPOCH = Layouts.at(Layouts.EPOCH, "start_offset");
    private static final long EPOCH = Layouts.at(Layouts.EPOCH, "epoch");
    private static final int TXN_INDEX_EMPTY = 1;
    private static final int SHORT_BUFFER = Kind.SHORT_BUFFER.code();
    private static final int TOPIC_CAPACITY = 256;
    private static final int EPOCHS_AT_FIRST = 64;
    private static final int CUSTOM_AT_FIRST = 1024;
    private static final long HEAD_SIZE = TierLayouts.REMOTE_RECORD.byteSize();

    private final int epochCapacity;
    private final int customCapacity;
    /** The struct, and behind it all that it points to. */
    private final MemorySegment memory = memory();
    private final MemorySegment epochs;
    private final MemorySegment topic;
    private final MemorySegment custom;

    /** Nothing yet, with room for 64 leader epochs and 1024 bytes of custom metadata. */
    public RemoteRecord() {
        this(EPOCHS_AT_FIRST, CUSTOM_AT_FIRST);
    }

    /** Nothing yet, with room for so many leader epochs and bytes of custom metadata. */
    public RemoteRecord(int epochCapacity, int customCapacity) {
        super(TierLayouts.REMOTE_RECORD, room(epochCapacity, customCapacity));
        this.epochCapacity = epochCapacity;
        this.customCapacity = customCapacity;
        long epochsSize = Layouts.EPOCH.byteSize() * epochCapacity;
        epochs = memory.asSlice(HEAD_SIZE, epochsSize);
        topic = memory.asSlice(HEAD_SIZE + epochsSize, TOPIC_CAPACITY);
        custom = memory.asSlice(HEAD_SIZE + epochsSize + TOPIC_CAPACITY, customCapacity);
        memory.set(JAVA_INT, CUSTOM_SIZE, -1);
        point("epochs", epochs, "epoch_capacity", epochCapacity);
        point("topic", topic, "topic_capacity", TOPIC_CAPACITY);
        point("custom", custom, "custom_capacity", customCapacity);
    }

    private static MemorySegment room(int epochCapacity, int customCapacity) {
        Rows.checkCapacity(epochCapacity);
        Rows.checkCapacity(customCapacity);
        long epochsSize = Layouts.EPOCH.byteSize() * epochCapacity;
        return Arena.ofAuto().allocate(
                HEAD_SIZE + epochsSize + TOPIC_CAPACITY + customCapacity, Long.BYTES);
    }

    private void point(String field, MemorySegment array, String capacityField, int capacity) {
        memory.set(ADDRESS, Layouts.at(TierLayouts.REMOTE_RECORD, field), array);
        memory.set(JAVA_INT, Layouts.at(TierLayouts.REMOTE_RECORD, capacityField), capacity);
    }

    /** Which of so many partitions of {@code __remote_log_metadata} has a partition's records. */
    public static int metadataPartition(UUID topicId, int partition, int partitionCount) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment id = arena.allocate(Memory.UUID_SIZE);
            Memory.put(id, 0, topicId);
            return (int) TierNative.REMOTE_METADATA_PARTITION.invokeExact(
                    id, partition, partitionCount);
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        }
    }

    /** Empties it. */
    public synchronized void clear() {
        memory.asSlice(Integer.BYTES, EPOCH_COUNT).fill((byte) 0);
        memory.set(JAVA_INT, TOPIC_SIZE, 0);
        memory.set(JAVA_INT, CUSTOM_SIZE, -1);
    }

    /**
     * Makes the value of a record, byte for byte as Kafka writes it; how many bytes that takes.
     * When it takes more than there is room for, nothing of use is written.
     *
     * @throws SiltstoneException {@link Kind#INVALID_ARGUMENT} for what Kafka would refuse
     */
    public synchronized long encode(MemorySegment out) {
        MemorySegment room = Memory.output(out);
        long[] size = new long[1];
        Scratch.call(scratch -> {
            int status = (int) TierNative.REMOTE_RECORD_ENCODE.invokeExact(
                    memory, room, room.byteSize(), scratch.first, scratch.error);
            size[0] = scratch.firstLong();
            return status;
        }, SHORT_BUFFER);
        return size[0];
    }

    /**
     * Reads the value of a record.
     *
     * @throws SiltstoneException {@link Kind#SHORT_BUFFER} when topic, leader epochs or custom
     *     metadata have no room: this has as much of them as fits
     */
    public synchronized void decode(MemorySegment bytes) {
        MemorySegment input = Memory.input(bytes);
        fill(scratch -> (int) TierNative.REMOTE_RECORD_DECODE.invokeExact(
                input, input.byteSize(), memory, scratch.error));
    }

    /** Has a call fill this; afterwards nothing is said to be longer than its room. */
    synchronized void fill(Scratch.Body call) {
        try {
            Scratch.call(call);
        } finally {
            memory.set(JAVA_INT, EPOCH_COUNT, epochCount());
            memory.set(JAVA_INT, TOPIC_SIZE, topicSize());
            memory.set(JAVA_INT, CUSTOM_SIZE, customSize());
        }
    }

    /** A copy that nobody else changes. */
    synchronized RemoteRecord copy() {
        RemoteRecord copy = new RemoteRecord(epochCount(), Math.max(customSize(), 0));
        MemorySegment.copy(memory, Integer.BYTES, copy.memory, Integer.BYTES, EPOCH_COUNT);
        copy.epochs.copyFrom(epochs.asSlice(0, copy.epochs.byteSize()));
        copy.topic.copyFrom(topic);
        copy.custom.copyFrom(custom.asSlice(0, copy.custom.byteSize()));
        copy.memory.set(JAVA_INT, TOPIC_SIZE, topicSize());
        copy.memory.set(JAVA_INT, CUSTOM_SIZE, customSize());
        return copy;
    }

    /** What is said: {@code REMOTE_SEGMENT} and those behind it of {@link Codes}. */
    public int kind() {
        return intAt(KIND);
    }

    /** What is said: {@code REMOTE_SEGMENT} and those behind it of {@link Codes}. */
    public RemoteRecord kind(int value) {
        setInt(KIND, value);
        return this;
    }

    /** Of a segment: {@code REMOTE_COPY_STARTED} and those behind it of {@link Codes}. */
    public int state() {
        return intAt(STATE);
    }

    /** Of a segment: {@code REMOTE_COPY_STARTED} and those behind it of {@link Codes}. */
    public RemoteRecord state(int value) {
        setInt(STATE, value);
        return this;
    }

    /** The partition's number. */
    public int partition() {
        return intAt(PARTITION);
    }

    /** The partition's number. */
    public RemoteRecord partition(int value) {
        setInt(PARTITION, value);
        return this;
    }

    /** Who says it. */
    public int brokerId() {
        return intAt(BROKER_ID);
    }

    /** Who says it. */
    public RemoteRecord brokerId(int value) {
        setInt(BROKER_ID, value);
        return this;
    }

    /** The size of the segment's log. */
    public int sizeBytes() {
        return intAt(SIZE_BYTES);
    }

    /** The size of the segment's log. */
    public RemoteRecord sizeBytes(int value) {
        setInt(SIZE_BYTES, value);
        return this;
    }

    /** The segment's first offset. */
    public long startOffset() {
        return longAt(START_OFFSET);
    }

    /** The segment's first offset. */
    public RemoteRecord startOffset(long value) {
        setLong(START_OFFSET, value);
        return this;
    }

    /** The segment's last offset. */
    public long endOffset() {
        return longAt(END_OFFSET);
    }

    /** The segment's last offset. */
    public RemoteRecord endOffset(long value) {
        setLong(END_OFFSET, value);
        return this;
    }

    /** The latest timestamp. */
    public long maxTimestampMs() {
        return longAt(MAX_TIMESTAMP_MS);
    }

    /** The latest timestamp. */
    public RemoteRecord maxTimestampMs(long value) {
        setLong(MAX_TIMESTAMP_MS, value);
        return this;
    }

    /** When it was said. */
    public long eventTimestampMs() {
        return longAt(EVENT_TIMESTAMP_MS);
    }

    /** When it was said. */
    public RemoteRecord eventTimestampMs(long value) {
        setLong(EVENT_TIMESTAMP_MS, value);
        return this;
    }

    /** The topic's id. */
    public UUID topicId() {
        return Memory.uuid(memory, TOPIC_ID);
    }

    /** The topic's id. */
    public RemoteRecord topicId(UUID id) {
        Memory.put(memory, TOPIC_ID, id);
        return this;
    }

    /** The segment's id, which is another for each attempt to upload it. */
    public UUID segmentId() {
        return Memory.uuid(memory, SEGMENT_ID);
    }

    /** The segment's id. */
    public RemoteRecord segmentId(UUID id) {
        Memory.put(memory, SEGMENT_ID, id);
        return this;
    }

    /** Whether it is known to have no aborted transaction. */
    public boolean isTxnIndexEmpty() {
        return (intAt(FLAGS) & TXN_INDEX_EMPTY) != 0;
    }

    /** Whether it is known to have no aborted transaction. */
    public RemoteRecord isTxnIndexEmpty(boolean isEmpty) {
        setInt(FLAGS, isEmpty ? TXN_INDEX_EMPTY : 0);
        return this;
    }

    /** The topic. */
    public synchronized String topic() {
        byte[] text = topic.asSlice(0, topicSize()).toArray(JAVA_BYTE);
        return new String(text, StandardCharsets.UTF_8);
    }

    /**
     * The topic.
     *
     * @throws IllegalArgumentException for one of more than 256 bytes; Kafka allows 249
     */
    public synchronized RemoteRecord topic(String name) {
        byte[] text = name.getBytes(StandardCharsets.UTF_8);
        setInt(TOPIC_SIZE, put(text, topic));
        return this;
    }

    /** What the object store wants to be told again; null for nothing. */
    public synchronized byte[] custom() {
        int size = customSize();
        return size < 0 ? null : custom.asSlice(0, size).toArray(JAVA_BYTE);
    }

    /**
     * What the object store wants to be told again; null for nothing.
     *
     * @throws IllegalArgumentException for what has no room
     */
    public synchronized RemoteRecord custom(byte[] bytes) {
        setInt(CUSTOM_SIZE, bytes == null ? -1 : put(bytes, custom));
        return this;
    }

    private static int put(byte[] bytes, MemorySegment room) {
        if (bytes.length > room.byteSize()) {
            throw new IllegalArgumentException("no room for " + bytes.length + " bytes");
        }
        MemorySegment.copy(bytes, 0, room, JAVA_BYTE, 0, bytes.length);
        return bytes.length;
    }

    /** How many leader epochs the segment has. */
    public int epochCount() {
        return Math.clamp(intAt(EPOCH_COUNT) & 0xffff_ffffL, 0, epochCapacity);
    }

    /** A leader epoch of the segment; they rise. */
    public int epoch(int row) {
        return epochs.get(JAVA_INT, epochAt(row) + EPOCH);
    }

    /** The first offset of a leader epoch; that of the first one is the segment's. */
    public long epochStartOffset(int row) {
        return epochs.get(JAVA_LONG, epochAt(row) + START_OF_EPOCH);
    }

    /** Forgets the leader epochs. */
    public synchronized void clearEpochs() {
        setInt(EPOCH_COUNT, 0);
    }

    /**
     * Adds a leader epoch.
     *
     * @throws SiltstoneException {@link Kind#LIMIT} when there is no room
     */
    public synchronized RemoteRecord addEpoch(int epoch, long startOffset) {
        int row = epochCount();
        if (row == epochCapacity) {
            throw new SiltstoneException(Kind.LIMIT, "no room for another leader epoch");
        }
        setInt(EPOCH_COUNT, row + 1);
        epochs.set(JAVA_INT, epochAt(row) + EPOCH, epoch);
        epochs.set(JAVA_LONG, epochAt(row) + START_OF_EPOCH, startOffset);
        return this;
    }

    private long epochAt(int row) {
        return Objects.checkIndex(row, epochCount()) * Layouts.EPOCH.byteSize();
    }

    private int topicSize() {
        return Math.clamp(intAt(TOPIC_SIZE) & 0xffff_ffffL, 0, TOPIC_CAPACITY);
    }

    private int customSize() {
        return Math.clamp(intAt(CUSTOM_SIZE), -1, customCapacity);
    }
}
