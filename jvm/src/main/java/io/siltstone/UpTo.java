package io.siltstone;

/** Up to where a reader may see. */
public enum UpTo {
    /** Followers. */
    LOG_END,
    /** Readers of uncommitted data. */
    HIGH_WATERMARK,
    /** Readers of committed data. */
    LAST_STABLE
}
