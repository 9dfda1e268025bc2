package io.siltstone;

import java.lang.invoke.MethodHandle;
import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * An object of the library, with the count of those that use it: its owner, the calls that run and
 * the fetches that name it. It is given back when the owner has closed it, or cannot be reached any
 * more, and the last of the others has ended.
 */
final class Handle {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final int SHORT_BUFFER = Kind.SHORT_BUFFER.code();

    /** What is done with the object; the result is a status. */
    @FunctionalInterface
    interface Body {
        int run(long object, Scratch scratch) throws Throwable;
    }

    private final long object;
    private final MethodHandle free;
    private final AtomicInteger users = new AtomicInteger(1);
    private final AtomicBoolean isClosed = new AtomicBoolean();
    private Cleaner.Cleanable cleanable;

    private Handle(long object, MethodHandle free) {
        this.object = object;
        this.free = free;
    }

    /** What {@code owner} owns from now on. */
    static Handle of(Object owner, long object, MethodHandle free) {
        Handle handle = new Handle(object, free);
        handle.cleanable = CLEANER.register(owner, handle::end);
        return handle;
    }

    /** Has {@code end} run when nobody can reach the owner, or by the result. */
    static Cleaner.Cleanable watch(Object owner, Runnable end) {
        return CLEANER.register(owner, end);
    }

    boolean isClosed() {
        return isClosed.get();
    }

    static SiltstoneException closed() {
        return new SiltstoneException(Kind.CLOSED, "the object is closed");
    }

    /** Counts a user in, and tells what the object is to the library. */
    long enter() {
        int count = users.get();
        while (count != 0 && !isClosed.get()) {
            if (users.compareAndSet(count, count + 1)) {
                return object;
            }
            count = users.get();
        }
        throw closed();
    }

    /** Counts a user out. */
    void leave() {
        if (users.decrementAndGet() == 0) {
            try {
                free.invoke(object);
            } catch (Throwable thrown) {
                throw Native.unchecked(thrown);
            }
        }
    }

    /** Runs a call that throws for every status but {@code SILT_OK}. */
    void call(Body body) {
        call(body, 0);
    }

    /** Runs a call; a status that is neither {@code SILT_OK} nor the other one is thrown. */
    int call(Body body, int other) {
        long entered = enter();
        try {
            return Scratch.call(scratch -> body.run(entered, scratch), other);
        } finally {
            leave();
        }
    }

    /** Runs a call that fills rows and tells their number first; how many there are. */
    long fill(Rows out, Body body) {
        long[] total = new long[1];
        out.filled(0);
        call((entered, scratch) -> {
            int status = body.run(entered, scratch);
            total[0] = Integer.toUnsignedLong(scratch.firstInt());
            return status;
        }, SHORT_BUFFER);
        return out.filled(total[0]);
    }

    void close() {
        cleanable.clean();
    }

    private void end() {
        if (isClosed.compareAndSet(false, true)) {
            leave();
        }
    }
}
