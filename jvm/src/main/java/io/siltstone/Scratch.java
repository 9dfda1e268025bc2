package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * The memory of one call: for what goes wrong in it, and for numbers that come back. Taken from a
 * pool, so that neither a call nor a virtual thread allocates some.
 */
final class Scratch {
    private static final int SLOTS = 64;
    /** Threads that use neighbouring slots do not share a line of the cache. */
    private static final int STRIDE = 16;
    private static final AtomicReferenceArray<Scratch> POOL =
            new AtomicReferenceArray<>(SLOTS * STRIDE);

    private static final StructLayout SCRATCH = MemoryLayout.structLayout(
            Layouts.ERROR.withName("error"), JAVA_LONG.withName("first"),
            JAVA_LONG.withName("second"), Layouts.APPEND.withName("append"));

    private static final long CODE = Layouts.at(Layouts.ERROR, "code");
    private static final long ERRNO = Layouts.at(Layouts.ERROR, "os_errno");
    private static final long DETAIL = Layouts.at(Layouts.ERROR, "detail_code");
    private static final long OFFSET = Layouts.at(Layouts.ERROR, "offset");
    private static final long POSITION = Layouts.at(Layouts.ERROR, "position");
    private static final long MESSAGE = Layouts.at(Layouts.ERROR, "message");

    /** What is done in a call; the result is a status. */
    @FunctionalInterface
    interface Body {
        int run(Scratch scratch) throws Throwable;
    }

    /** A {@code silt_error_t}. */
    final MemorySegment error;
    /** Room for a number. */
    final MemorySegment first;
    /** Room for a second one. */
    final MemorySegment second;
    /** A {@code silt_append_t}. */
    final MemorySegment append;

    /** Of the garbage collector's arena: no call has to count its users. */
    Scratch() {
        MemorySegment memory = Arena.ofAuto().allocate(SCRATCH);
        error = memory.asSlice(Layouts.at(SCRATCH, "error"), Layouts.ERROR);
        error.set(JAVA_INT, 0, Math.toIntExact(error.byteSize()));
        first = memory.asSlice(Layouts.at(SCRATCH, "first"), JAVA_LONG);
        second = memory.asSlice(Layouts.at(SCRATCH, "second"), JAVA_LONG);
        append = memory.asSlice(Layouts.at(SCRATCH, "append"), Layouts.APPEND);
        append.set(JAVA_INT, 0, Math.toIntExact(append.byteSize()));
    }

    private static int slot() {
        return (int) (Thread.currentThread().threadId() & (SLOTS - 1)) * STRIDE;
    }

    static Scratch take() {
        Scratch scratch = POOL.getAndSet(slot(), null);
        return scratch == null ? new Scratch() : scratch;
    }

    void give() {
        POOL.set(slot(), this);
    }

    long firstLong() {
        return first.get(JAVA_LONG, 0);
    }

    int firstInt() {
        return first.get(JAVA_INT, 0);
    }

    /** Runs a call that throws for every status but {@code SILT_OK}. */
    static void call(Body body) {
        call(body, 0);
    }

    /** Runs a call; a status that is neither {@code SILT_OK} nor the other one is thrown. */
    static int call(Body body, int other) {
        Scratch scratch = take();
        try {
            int status = body.run(scratch);
            if (status != 0 && status != other) {
                throw scratch.exception(status);
            }
            return status;
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        } finally {
            scratch.give();
        }
    }

    /** What the library has written about a failure. */
    SiltstoneException exception(int status) {
        if (error.get(JAVA_INT, CODE) != status) {
            return new SiltstoneException(Kind.of(status), Library.statusName(status));
        }
        return new SiltstoneException(
                Kind.of(status),
                error.get(JAVA_INT, ERRNO),
                error.get(JAVA_INT, DETAIL),
                error.get(JAVA_LONG, OFFSET),
                error.get(JAVA_LONG, POSITION),
                error.asSlice(MESSAGE).getString(0));
    }
}
