package io.siltstone;

import java.lang.foreign.Arena;

/** Counts of an engine. */
public final class EngineStats extends Struct {
    private static final long LOGS = Layouts.at(EngineLayouts.ENGINE_STATS, "logs");
    private static final long FUTURE_LOGS = Layouts.at(EngineLayouts.ENGINE_STATS, "future_logs");
    private static final long SHUT_LOGS = Layouts.at(EngineLayouts.ENGINE_STATS, "shut_logs");
    private static final long FAILED_LOGS = Layouts.at(EngineLayouts.ENGINE_STATS, "failed_logs");
    private static final long UNCLEANABLE_LOGS =
            Layouts.at(EngineLayouts.ENGINE_STATS, "uncleanable_logs");
    private static final long OFFLINE_DIRS = Layouts.at(EngineLayouts.ENGINE_STATS, "offline_dirs");
    private static final long SEGMENTS = Layouts.at(EngineLayouts.ENGINE_STATS, "segments");
    private static final long SIZE_BYTES = Layouts.at(EngineLayouts.ENGINE_STATS, "size_bytes");
    private static final long DIRTY_BYTES = Layouts.at(EngineLayouts.ENGINE_STATS, "dirty_bytes");
    private static final long OPEN_SEGMENTS =
            Layouts.at(EngineLayouts.ENGINE_STATS, "open_segments");
    private static final long OPEN_FILES = Layouts.at(EngineLayouts.ENGINE_STATS, "open_files");
    private static final long WAITING_FOLDERS =
            Layouts.at(EngineLayouts.ENGINE_STATS, "waiting_folders");
    private static final long PREVIOUS_BROKER_EPOCH =
            Layouts.at(EngineLayouts.ENGINE_STATS, "previous_broker_epoch");

    /** Nothing yet, in memory that the garbage collector frees. */
    public EngineStats() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public EngineStats(Arena arena) {
        super(EngineLayouts.ENGINE_STATS, arena);
    }

    /** How many logs are open, with the future ones. */
    public long logs() {
        return longAt(LOGS);
    }

    /** How many future logs. */
    public long futureLogs() {
        return longAt(FUTURE_LOGS);
    }

    /** How many logs are there but not open: refused, or in a directory that is offline. */
    public long shutLogs() {
        return longAt(SHUT_LOGS);
    }

    /** How many take no writes, since a sync failed. */
    public long failedLogs() {
        return longAt(FAILED_LOGS);
    }

    /** How many have what compaction cannot read. */
    public long uncleanableLogs() {
        return longAt(UNCLEANABLE_LOGS);
    }

    /** How many directories are offline. */
    public long offlineDirs() {
        return longAt(OFFLINE_DIRS);
    }

    /** How many segments. */
    public long segments() {
        return longAt(SEGMENTS);
    }

    /** Their size. */
    public long sizeBytes() {
        return longAt(SIZE_BYTES);
    }

    /** The size of those that are not known to be durable. */
    public long dirtyBytes() {
        return longAt(DIRTY_BYTES);
    }

    /** How many segments have open files. */
    public long openSegments() {
        return longAt(OPEN_SEGMENTS);
    }

    /** How many files are open. */
    public long openFiles() {
        return longAt(OPEN_FILES);
    }

    /** How many folders of deleted logs are still there. */
    public long waitingFolders() {
        return longAt(WAITING_FOLDERS);
    }

    /** The broker epoch of a clean stop of all directories before, else -1. */
    public long previousBrokerEpoch() {
        return longAt(PREVIOUS_BROKER_EPOCH);
    }
}
