package io.siltstone;

/** What went wrong in a call. Numbers that are not known are -1. */
public final class SiltstoneException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final Kind kind;
    private final int errno;
    private final int detail;
    private final long offset;
    private final long position;

    SiltstoneException(
            Kind kind, int errno, int detail, long offset, long position, String message) {
        super(message);
        this.kind = kind;
        this.errno = errno;
        this.detail = detail;
        this.offset = offset;
        this.position = position;
    }

    SiltstoneException(Kind kind, String message) {
        this(kind, 0, 0, -1, -1, message);
    }

    /** What kind of thing. */
    public Kind kind() {
        return kind;
    }

    /** The number of the system's error; 0 when no system call failed. */
    public int errno() {
        return errno;
    }

    /** Why an append was refused: {@code SILT_DETAIL_} of the header, 0 for nothing more to say. */
    public int detail() {
        return detail;
    }

    /** The offset in the log. */
    public long offset() {
        return offset;
    }

    /** The byte of the file, or of the memory that was given. */
    public long position() {
        return position;
    }
}
