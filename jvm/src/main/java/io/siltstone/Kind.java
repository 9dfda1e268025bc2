package io.siltstone;

/** What kind of thing went wrong: the codes of the header. */
public enum Kind {
    /** The system refused: see {@link SiltstoneException#errno()}. */
    IO(-1),
    /** Bytes are not what their format says. */
    CORRUPT(-2),
    /** A file, segment or offset that is not there. */
    NOT_FOUND(-3),
    /** An offset, position or slot outside of what there is. */
    OUT_OF_RANGE(-4),
    /** A call that makes no sense. */
    INVALID_ARGUMENT(-5),
    /** Somebody else holds it, or the state does not allow it now. */
    CONFLICT(-6),
    /** A version, magic, codec, struct or function that the library lacks. */
    UNSUPPORTED(-7),
    /** A limit of size, memory or count was reached. */
    LIMIT(-8),
    /** The object is closed. */
    CLOSED(-9),
    /** The caller cancelled. */
    CANCELLED(-10),
    /** The memory that was given is too small. */
    SHORT_BUFFER(-11),
    /** A fault of the library; the object cannot be used any more. */
    BUG(-12),
    /** The object belongs to the parent process. */
    FORKED(-13),
    /** A code that came later than this class. */
    OTHER(Integer.MIN_VALUE);

    private static final Kind[] KINDS = values();

    private final int code;

    Kind(int code) {
        this.code = code;
    }

    /** The number in the header; {@link Integer#MIN_VALUE} for {@link #OTHER}. */
    public int code() {
        return code;
    }

    /**
     * The kind of a code.
     *
     * @throws IllegalArgumentException for 0 and more, which are no failures
     */
    public static Kind of(int code) {
        if (code >= 0) {
            throw new IllegalArgumentException("no failure: " + code);
        }
        // Compared with the length first: there is no -Integer.MIN_VALUE.
        return code <= -KINDS.length ? OTHER : KINDS[-code - 1];
    }
}
