package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.Objects;

/**
 * The logs that an array of structs names by their field {@code log}: each stays until its slot
 * lets go of it. It is kept with its Java object, which nobody else may reach: a cleaner would
 * close the log of one that is gone. What a cleaner ends; whoever changes the structs holds its
 * lock.
 */
final class LogSlots {
    private static final int CLOSED = Kind.CLOSED.code();

    private final Log[] logs;
    private final MemorySegment structs;
    private final long stride;
    private final long field;
    private volatile boolean isEnded;

    LogSlots(int capacity, MemorySegment structs, StructLayout layout) {
        this.logs = new Log[capacity];
        this.structs = structs;
        this.stride = layout.byteSize();
        this.field = Layouts.at(layout, "log");
    }

    int capacity() {
        return logs.length;
    }

    /** Has a slot name a log; the slot. */
    synchronized int hold(int slot, Log log) {
        checkOpen();
        Objects.checkIndex(slot, logs.length);
        Handle handle = log.handle();
        if (logs[slot] != log) {
            long object = handle.enter();
            drop(slot);
            logs[slot] = log;
            structs.set(JAVA_LONG, slot * stride + field, object);
        }
        return slot;
    }

    /** Lets go of a slot's log, if it names one. */
    synchronized void drop(int slot) {
        Log log = logs[Objects.checkIndex(slot, logs.length)];
        if (log != null) {
            logs[slot] = null;
            structs.set(JAVA_LONG, slot * stride + field, 0);
            log.handle().leave();
        }
    }

    /** Whether a slot names no log, or did name one that was closed. */
    synchronized boolean isGone(int slot) {
        return isGoneHere(slot);
    }

    /** The same of whoever holds the lock. */
    private boolean isGoneHere(int slot) {
        Log log = logs[slot];
        if (log != null && log.isClosed()) {
            drop(slot);
            return true;
        }
        return log == null;
    }

    /** Lets go of closed logs of the first slots; whether any of these names none. */
    synchronized boolean forgetClosed(int count) {
        checkOpen();
        Objects.checkFromToIndex(0, count, logs.length);
        boolean isAnyGone = false;
        for (int slot = 0; slot < count; slot++) {
            isAnyGone |= isGoneHere(slot);
        }
        return isAnyGone;
    }

    /** Tells which of the first slots name no log. */
    synchronized void tellGone(int count, MemorySegment statuses) {
        for (int slot = 0; slot < count; slot++) {
            if (logs[slot] == null) {
                statuses.setAtIndex(JAVA_INT, slot, CLOSED);
            }
        }
    }

    void checkOpen() {
        if (isEnded) {
            throw Handle.closed();
        }
    }

    /** Lets go of all; nothing can be named any more. */
    synchronized void end() {
        isEnded = true;
        for (int slot = 0; slot < logs.length; slot++) {
            drop(slot);
        }
    }
}
