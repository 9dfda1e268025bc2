package io.siltstone;

import java.lang.foreign.Arena;

/** What a walk over the bytes of a segment has found. */
public final class Rebuilt extends Walked {
    /** Nothing yet, in memory that the garbage collector frees. */
    public Rebuilt() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public Rebuilt(Arena arena) {
        super(Layouts.REBUILT, arena);
    }
}
