package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/** How an {@link Engine} makes a log that is not there yet. */
public final class NewLog {
    private static final int NEW = 1;
    private static final int FUTURE = 2;

    private final Configs configs = new Configs();
    private int flags;
    private UUID topicId = new UUID(0, 0);
    private Path dir;
    private long nowMs;

    /** In the directory with the fewest logs, with the settings of its topic. */
    public NewLog() {}

    /** A setting of this log, above those of its topic. */
    public NewLog config(String name, String value) {
        configs.put(name, value);
        return this;
    }

    /** The replica is known to be new: it may be made while a directory is offline. */
    public NewLog isNew() {
        flags |= NEW;
        return this;
    }

    /** It grows beside the current log, in another directory. */
    public NewLog isFuture() {
        flags |= FUTURE;
        return this;
    }

    /** The topic's id. */
    public NewLog topicId(UUID id) {
        topicId = Objects.requireNonNull(id);
        return this;
    }

    /** The log directory, which is one of the engine's. */
    public NewLog dir(Path dir) {
        this.dir = Objects.requireNonNull(dir);
        return this;
    }

    /** The time. */
    public NewLog nowMs(long nowMs) {
        this.nowMs = nowMs;
        return this;
    }

    /** As the struct of the header. */
    MemorySegment write(Arena arena) {
        List<Map.Entry<String, String>> settings = configs.all();
        Path where = dir;
        MemorySegment out = arena.allocate(EngineLayouts.NEW_LOG);
        out.set(JAVA_INT, 0, Math.toIntExact(out.byteSize()));
        out.set(JAVA_INT, at("flags"), flags);
        out.set(ADDRESS, at("configs"), Configs.write(arena, settings));
        out.set(JAVA_INT, at("config_count"), settings.size());
        Memory.put(out, at("topic_id"), topicId);
        out.set(ADDRESS, at("dir"),
                where == null ? MemorySegment.NULL : Memory.path(arena, where));
        out.set(JAVA_LONG, at("now_ms"), nowMs);
        return out;
    }

    private static long at(String field) {
        return Layouts.at(EngineLayouts.NEW_LOG, field);
    }
}
