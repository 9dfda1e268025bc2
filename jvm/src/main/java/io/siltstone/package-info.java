/**
 * The storage engine for Kafka-format logs. A typed wrapper of {@code siltstone.h}, which is the
 * manual of what each function does; here stands what is different in Java.
 *
 * <p><b>Memory.</b> Bytes are native {@link java.lang.foreign.MemorySegment}s: an array on the heap
 * is refused, since it would have to be copied. Results go to objects that are made once and used
 * again: {@link io.siltstone.Struct}s, and {@link io.siltstone.Rows}, whose items are read by their
 * position. What a mapped file does under a segment, such as a fault when the file shrinks, is the
 * caller's business.
 *
 * <p><b>Errors.</b> A call that fails throws a {@link io.siltstone.SiltstoneException}. Results
 * that do not fit are no failure: the rows say how many there are.
 *
 * <p><b>Ends.</b> Objects are closed by {@code close()}; one that is forgotten is closed when the
 * garbage collector finds that nobody can reach it. A call on a closed object throws, and one that
 * runs while another thread closes the object comes to its end first.
 */
package io.siltstone;
