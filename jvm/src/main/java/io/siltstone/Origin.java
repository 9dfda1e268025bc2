package io.siltstone;

/** Who appends. */
public enum Origin {
    /** A producer. */
    CLIENT,
    /** Markers of transactions, and Kafka's own topics. */
    COORDINATOR
}
