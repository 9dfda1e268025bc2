package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A queue of operations whose answers are polled. They are written to slots, given to the library
 * together by {@link #submit}, and run when somebody polls, on the thread that polls; appends that
 * wait one behind the other go to the disk together. There is no object for any of them. What is
 * appended or read stands in {@link Room}s, which are left alone until the answer is there.
 *
 * <p>Any number of threads may write and submit; one polls and reads the answers, and a second one
 * gets {@link Kind#CONFLICT}. Answers come in the order of submission. A slot is free again at the
 * poll behind its answer.
 */
public final class Ring implements AutoCloseable {
    private static final int APPEND = 1;
    private static final int READ = 2;
    private static final int LOCATE = 3;
    private static final int WARM = 4;
    private static final int SYNC = 5;
    private static final int FOLLOWER = 1;
    private static final int FLUSH = 2;
    private static final int MIN_ONE = 4;
    private static final int VERIFIED = 8;
    /** How long a call waits before it looks whether the ring was closed. */
    private static final int STEP_MS = 50;
    private static final long OP_SIZE = EngineLayouts.OP.byteSize();
    private static final long ABORTED_SIZE = Layouts.ABORTED.byteSize();
    private static final long PRODUCER_ID = Layouts.at(Layouts.ABORTED, "producer_id");
    private static final long TXN_FIRST_OFFSET = Layouts.at(Layouts.ABORTED, "first_offset");
    private static final long TXN_LAST_OFFSET = Layouts.at(Layouts.ABORTED, "last_offset");
    private static final long RANGE = Layouts.at(EngineLayouts.DONE, "range");
    private static final long RANGE_FLAGS = RANGE + Layouts.at(Layouts.RANGE, "flags");
    private static final long USER_DATA = Layouts.at(EngineLayouts.DONE, "user_data");
    private static final long STATUS = Layouts.at(EngineLayouts.DONE, "status");
    private static final long DETAIL_CODE = Layouts.at(EngineLayouts.DONE, "detail_code");
    private static final long OS_ERRNO = Layouts.at(EngineLayouts.DONE, "os_errno");
    private static final long FIRST_OFFSET = Layouts.at(EngineLayouts.DONE, "first_offset");
    private static final long LAST_OFFSET = Layouts.at(EngineLayouts.DONE, "last_offset");
    private static final long FD =
            RANGE + Layouts.at(Layouts.RANGE, "fd");
    private static final long POSITION =
            RANGE + Layouts.at(Layouts.RANGE, "position");
    private static final long SIZE_BYTES =
            RANGE + Layouts.at(Layouts.RANGE, "size_bytes");
    private static final long BASE_OFFSET =
            RANGE + Layouts.at(Layouts.RANGE, "base_offset");
    private static final long SEGMENT_BASE_OFFSET =
            RANGE + Layouts.at(Layouts.RANGE, "segment_base_offset");
    private static final long ABORTED_COUNT =
            RANGE + Layouts.at(Layouts.RANGE, "aborted_count");
    private static final long OP_USER_DATA = at("user_data");
    private static final long KIND = at("kind");
    private static final long FLAGS = at("flags");
    private static final long BYTES = at("bytes");
    private static final long BYTES_SIZE = at("size_bytes");
    private static final long OFFSET = at("offset");
    private static final long NOW_MS = at("now_ms");
    private static final long LEADER_EPOCH = at("leader_epoch");
    private static final long ORIGIN = at("origin");
    private static final long TRANSACTION_VERSION = at("transaction_version");
    private static final long MAX_BYTES = at("max_bytes");
    private static final long UP_TO = at("up_to");
    private static final long ABORTED_CAPACITY = at("aborted_capacity");
    private static final long ABORTED = at("aborted");

    private final int capacity;
    private final int abortedCapacity;
    private final MemorySegment ops;
    private final MemorySegment aborted;
    /** Its lock is that of the slots, too. */
    private final LogSlots logs;
    private final RingAnswers answers;
    private final ReentrantLock polling = new ReentrantLock();
    /** What keeps the memory that operations point to. */
    private final Room[] rooms;
    private final Handle handle;
    private final Cleaner.Cleanable cleanable;
    /** Numbers of operations since the ring was made: those before are written, ... */
    private long written;
    private long submitted;
    private long answered;
    /** ... and these have free slots again. */
    private long freed;

    /** For so many operations that wait or were answered; fetches get no aborted transactions. */
    public Ring(int capacity) {
        this(capacity, 0);
    }

    /** With room for so many aborted transactions for each fetch. */
    public Ring(int capacity, int abortedCapacity) {
        Rows.checkCapacity(capacity);
        Rows.checkCapacity(abortedCapacity);
        Rows.checkCapacity(Math.multiplyExact(Math.max(capacity, 1), abortedCapacity));
        this.capacity = capacity;
        this.abortedCapacity = abortedCapacity;
        ops = Arena.ofAuto().allocate(EngineLayouts.OP, capacity);
        aborted = Arena.ofAuto().allocate(ABORTED_SIZE * abortedCapacity * capacity, Long.BYTES);
        rooms = new Room[capacity];
        LogSlots logs = new LogSlots(capacity, ops, EngineLayouts.OP);
        RingAnswers answers = new RingAnswers(capacity);
        this.logs = logs;
        this.answers = answers;
        long[] object = new long[1];
        Scratch.call(scratch -> {
            int status = (int) EngineNative.RING_NEW.invokeExact(scratch.first, scratch.error);
            object[0] = scratch.firstLong();
            return status;
        });
        handle = Handle.of(this, object[0], EngineNative.RING_CLOSE);
        cleanable = Handle.watch(this, () -> {
            answers.forget();
            logs.end();
        });
    }

    private static long at(String field) {
        return Layouts.at(EngineLayouts.OP, field);
    }

    /** How many operations fit. */
    public int capacity() {
        return capacity;
    }

    /** The eventfd, readable as long as something waits: for epoll. It is the ring's to close. */
    public int fd() {
        int[] fd = new int[1];
        handle.call((ring, scratch) -> {
            int status = (int) EngineNative.RING_FD.invokeExact(
                    ring, scratch.first, scratch.error);
            fd[0] = scratch.firstInt();
            return status;
        });
        return fd[0];
    }

    /**
     * Writes an append as {@link Log#appendLeader} does it.
     *
     * @param isFlushed whether the answer comes when it is durable
     * @throws SiltstoneException {@link Kind#LIMIT} when no slot is free
     */
    public void appendLeader(
            long userData, Log log, Room room, long position, long sizeBytes, int leaderEpoch,
            long nowMs, Origin origin, int transactionVersion, boolean isFlushed) {
        appendLeader(userData, log, room, position, sizeBytes, leaderEpoch, nowMs, origin,
                transactionVersion, 0, isFlushed);
    }

    /** The same for a batch whose transaction {@link Log#startVerification} has a number for. */
    public void appendLeader(
            long userData, Log log, Room room, long position, long sizeBytes, int leaderEpoch,
            long nowMs, Origin origin, int transactionVersion, long verification,
            boolean isFlushed) {
        int from = origin.ordinal();
        int flags = (isFlushed ? FLUSH : 0) | VERIFIED;
        MemorySegment records = room.part(position, sizeBytes);
        synchronized (logs) {
            long op = write(userData, APPEND, flags, log, room, records);
            ops.set(JAVA_LONG, op + OFFSET, verification);
            ops.set(JAVA_INT, op + LEADER_EPOCH, leaderEpoch);
            ops.set(JAVA_LONG, op + NOW_MS, nowMs);
            ops.set(JAVA_INT, op + ORIGIN, from);
            ops.set(JAVA_INT, op + TRANSACTION_VERSION, transactionVersion);
        }
    }

    /** Writes an append as {@link Log#appendFollower} does it. */
    public void appendFollower(
            long userData, Log log, Room room, long position, long sizeBytes, int leaderEpoch,
            long nowMs, boolean isFlushed) {
        int flags = FOLLOWER | (isFlushed ? FLUSH : 0);
        MemorySegment records = room.part(position, sizeBytes);
        synchronized (logs) {
            long op = write(userData, APPEND, flags, log, room, records);
            ops.set(JAVA_INT, op + LEADER_EPOCH, leaderEpoch);
            ops.set(JAVA_LONG, op + NOW_MS, nowMs);
        }
    }

    /** Writes a fetch whose bytes are copied to a place of a room, with room for so many. */
    public void read(
            long userData, Log log, long offset, int maxBytes, UpTo upTo, boolean minOne,
            Room room, long position, long capacityBytes) {
        MemorySegment bytes = room.part(position, capacityBytes);
        fetch(READ, userData, log, offset, maxBytes, upTo, minOne, room, bytes);
    }

    /** Writes a fetch that gives a range of an open file, as {@link Fetches#locate} does. */
    public void locate(
            long userData, Log log, long offset, int maxBytes, UpTo upTo, boolean minOne) {
        MemorySegment none = MemorySegment.NULL;
        fetch(LOCATE, userData, log, offset, maxBytes, upTo, minOne, null, none);
    }

    /** Has the disk read what a fetch would give, and does not wait for it. */
    public void warm(
            long userData, Log log, long offset, int maxBytes, UpTo upTo, boolean minOne) {
        MemorySegment none = MemorySegment.NULL;
        fetch(WARM, userData, log, offset, maxBytes, upTo, minOne, null, none);
    }

    /** Writes a flush, as {@link Log#flush} does it. */
    public void sync(long userData, Log log, long nowMs) {
        synchronized (logs) {
            long op = write(userData, SYNC, 0, log, null, MemorySegment.NULL);
            ops.set(JAVA_LONG, op + NOW_MS, nowMs);
        }
    }

    private void fetch(
            int kind, long userData, Log log, long offset, int maxBytes, UpTo upTo,
            boolean minOne, Room room, MemorySegment bytes) {
        int limit = upTo.ordinal();
        synchronized (logs) {
            long op = write(userData, kind, minOne ? MIN_ONE : 0, log, room, bytes);
            ops.set(JAVA_LONG, op + OFFSET, offset);
            ops.set(JAVA_INT, op + MAX_BYTES, maxBytes);
            ops.set(JAVA_INT, op + UP_TO, limit);
            if (abortedCapacity > 0) {
                long place = op / OP_SIZE * abortedCapacity * ABORTED_SIZE;
                ops.set(JAVA_INT, op + ABORTED_CAPACITY, abortedCapacity);
                ops.set(ADDRESS, op + ABORTED, aborted.asSlice(place));
            }
        }
    }

    /** Takes a slot for an operation; where its struct begins. */
    private long write(
            long userData, int kind, int flags, Log log, Room room, MemorySegment bytes) {
        if (written - freed >= capacity) {
            throw new SiltstoneException(Kind.LIMIT, "no slot of the ring is free");
        }
        int slot = (int) (written % capacity);
        long op = slot * OP_SIZE;
        // Before the log, which is part of the struct.
        logs.drop(slot);
        ops.asSlice(op, OP_SIZE).fill((byte) 0);
        logs.hold(slot, log);
        rooms[slot] = room;
        ops.set(JAVA_LONG, op + OP_USER_DATA, userData);
        ops.set(JAVA_INT, op + KIND, kind);
        ops.set(JAVA_INT, op + FLAGS, flags);
        ops.set(ADDRESS, op + BYTES, bytes);
        ops.set(JAVA_LONG, op + BYTES_SIZE, bytes.byteSize());
        written++;
        return op;
    }

    /** Gives what was written to the library. */
    public void submit() {
        if (handle.isClosed()) {
            throw Handle.closed();
        }
        synchronized (logs) {
            while (submitted < written) {
                int first = (int) (submitted % capacity);
                int count = (int) Math.min(written - submitted, capacity - first);
                MemorySegment some = ops.asSlice(first * OP_SIZE, count * OP_SIZE);
                handle.call((ring, scratch) -> (int) EngineNative.RING_SUBMIT.invokeExact(
                        ring, some, count, scratch.error));
                submitted += count;
            }
        }
    }

    /**
     * Runs what was submitted, and releases the leases of the answers before; how many answers
     * there are. When nothing waits, it waits until something does, the time is over, the thread is
     * interrupted or the ring is closed.
     *
     * @param timeoutMs 0 not at all, -1 for ever
     * @throws SiltstoneException {@link Kind#CONFLICT} while another thread polls
     */
    public int poll(int timeoutMs) {
        if (!polling.tryLock()) {
            throw new SiltstoneException(Kind.CONFLICT, "another thread is polling this ring");
        }
        try {
            free();
            long end = System.nanoTime() + timeoutMs * 1_000_000L;
            while (true) {
                long left = timeoutMs < 0 ? STEP_MS : millis(end - System.nanoTime());
                int wait = timeoutMs == 0 ? 0 : Math.clamp(left, 0, STEP_MS);
                int count = answers.poll(handle, wait);
                synchronized (logs) {
                    answered += count;
                }
                boolean isOver = timeoutMs >= 0 && left <= 0;
                if (count > 0 || isOver || Thread.currentThread().isInterrupted()) {
                    return count;
                }
            }
        } finally {
            polling.unlock();
            if (handle.isClosed()) {
                close();
            }
        }
    }

    /** Rounded up, so that nothing is over too early. */
    private static long millis(long nanos) {
        return (nanos + 999_999) / 1_000_000;
    }

    /** Forgets the answers, and frees their slots. */
    private void free() {
        answers.forget();
        synchronized (logs) {
            for (; freed < answered; freed++) {
                int slot = (int) (freed % capacity);
                logs.drop(slot);
                rooms[slot] = null;
            }
        }
    }

    /** Releases the leases that were not moved. */
    public void release() {
        answers.release();
    }

    /** Moves the lease of an answer, if it has one. */
    public void moveLease(int row, Leases leases) {
        answers.moveLease(row, leases);
    }

    /**
     * Gives the ring back, when whoever polls has come to an end. What waits is not run, and what
     * it holds is let go of.
     */
    @Override
    public void close() {
        handle.close();
        // Else whoever polls does it.
        if (polling.tryLock()) {
            try {
                cleanable.clean();
            } finally {
                polling.unlock();
            }
        }
    }

    /** How many answers there are. */
    public int count() {
        return answers.count();
    }

    /** What was given with the operation. */
    public long userData(int row) {
        return longAt(row, USER_DATA);
    }

    /**
     * 0, or the code of a {@link Kind}. {@link Kind#SHORT_BUFFER} of a fetch may be a good range,
     * of which not all aborted transactions fitted.
     */
    public int status(int row) {
        return intAt(row, STATUS);
    }

    /** Why an append was refused: {@code DETAIL_} of {@link Codes}. */
    public int detail(int row) {
        return intAt(row, DETAIL_CODE);
    }

    /** The number of the system's error; 0 when no system call failed. */
    public int errno(int row) {
        return intAt(row, OS_ERRNO);
    }

    /** The offset of the first record that was appended; -1 for none. */
    public long firstOffset(int row) {
        return longAt(row, FIRST_OFFSET);
    }

    /** The offset of the last record that was appended; -1 for none. */
    public long lastOffset(int row) {
        return longAt(row, LAST_OFFSET);
    }

    /** The file of a range; -1 when there is nothing to be seen. */
    public int fd(int row) {
        return intAt(row, FD);
    }

    /** The first byte in the file. */
    public long position(int row) {
        return longAt(row, POSITION);
    }

    /** How many bytes: of the range, or that were read or appended. */
    public long sizeBytes(int row) {
        return longAt(row, SIZE_BYTES);
    }

    /** The first offset of the first batch. */
    public long baseOffset(int row) {
        return longAt(row, BASE_OFFSET);
    }

    /** The base offset of its segment. */
    public long segmentBaseOffset(int row) {
        return longAt(row, SEGMENT_BASE_OFFSET);
    }

    /** How many aborted transactions there are, also beyond the capacity. */
    public int abortedCount(int row) {
        return intAt(row, ABORTED_COUNT);
    }

    /** Whether the first batch is larger than the limit and not whole. */
    public boolean isFirstIncomplete(int row) {
        return (intAt(row, RANGE_FLAGS) & 1) != 0;
    }

    /** Whether the log was not cut since, as {@link Fetches#isIntact}. */
    public boolean isIntact(int row) {
        return answers.isIntact(row);
    }

    /** The producer of an aborted transaction. */
    public long abortedProducerId(int row, int at) {
        return aborted(row, at, PRODUCER_ID);
    }

    /** The first offset of an aborted transaction. */
    public long abortedFirstOffset(int row, int at) {
        return aborted(row, at, TXN_FIRST_OFFSET);
    }

    /** The offset of the abort marker. */
    public long abortedLastOffset(int row, int at) {
        return aborted(row, at, TXN_LAST_OFFSET);
    }

    private long aborted(int row, int at, long field) {
        int count = Math.clamp(abortedCount(row) & 0xffff_ffffL, 0, abortedCapacity);
        Objects.checkIndex(at, count);
        long slot;
        synchronized (logs) {
            slot = (freed + row) % capacity;
        }
        return aborted.get(JAVA_LONG, (slot * abortedCapacity + at) * ABORTED_SIZE + field);
    }

    private int intAt(int row, long field) {
        return answers.intAt(row, field);
    }

    private long longAt(int row, long field) {
        return answers.longAt(row, field);
    }
}
