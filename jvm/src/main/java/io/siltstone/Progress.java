package io.siltstone;

/**
 * Hears how far a long call is: about fifty times a second, on the thread that called, while others
 * do the work. What it throws ends the call and comes out of it.
 */
@FunctionalInterface
public interface Progress {
    /** So many bytes of so many are done; false ends the call with {@link Kind#CANCELLED}. */
    boolean goesOn(long doneBytes, long totalBytes);
}
