package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;

/**
 * Leases that were taken out of {@link Fetches}, so that their files stay open while bytes are
 * sent. They are given back together, by {@link #release()} or {@link #close()}, or when nobody can
 * reach this object any more. Any number of threads may use it.
 */
public final class Leases implements AutoCloseable {
    private final State state = new State();
    private final Cleaner.Cleanable cleanable = Handle.watch(this, state::release);

    /** No leases. */
    public Leases() {}

    /** How many there are. */
    public int count() {
        return state.count();
    }

    /** Gives all back; others may be added. */
    public void release() {
        state.release();
    }

    /** Gives all back. */
    @Override
    public void close() {
        state.close();
        cleanable.clean();
    }

    /** Takes a lease over; 0 is none. */
    void add(long lease) {
        state.add(lease);
    }

    /** What the cleaner needs. */
    private static final class State {
        private MemorySegment leases = Arena.ofAuto().allocate(JAVA_LONG, 16);
        private int count;
        private boolean isClosed;

        synchronized int count() {
            return count;
        }

        synchronized void close() {
            isClosed = true;
        }

        synchronized void add(long lease) {
            if (isClosed) {
                throw Handle.closed();
            }
            if (lease == 0) {
                return;
            }
            if (count == leases.byteSize() / Long.BYTES) {
                MemorySegment larger = Arena.ofAuto().allocate(JAVA_LONG, 2L * count);
                leases = larger.copyFrom(leases);
            }
            leases.setAtIndex(JAVA_LONG, count, lease);
            count++;
        }

        synchronized void release() {
            int released = count;
            // Whatever happens, a lease is not released twice.
            count = 0;
            Scratch.call(scratch -> (int) Native.LEASES_RELEASE.invokeExact(
                    leases, released, scratch.error));
        }
    }
}
