package io.siltstone;

import java.lang.foreign.Arena;

/** What becomes of the high watermark. */
public final class Watermark extends Struct {
    private static final long KIND = Layouts.at(ReplicaLayouts.WATERMARK, "kind");
    private static final long HIGH_WATERMARK =
            Layouts.at(ReplicaLayouts.WATERMARK, "high_watermark");
    private static final long HELD_BY = Layouts.at(ReplicaLayouts.WATERMARK, "held_by");

    /** Nothing yet, in memory that the garbage collector frees. */
    public Watermark() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public Watermark(Arena arena) {
        super(ReplicaLayouts.WATERMARK, arena);
    }

    /** What: {@code WATERMARK_} of {@link Codes}. */
    public int kind() {
        return intAt(KIND);
    }

    /** What it is then. */
    public long highWatermark() {
        return longAt(HIGH_WATERMARK);
    }

    /** The replica that it goes by; -1 for none. */
    public int heldBy() {
        return intAt(HELD_BY);
    }
}
