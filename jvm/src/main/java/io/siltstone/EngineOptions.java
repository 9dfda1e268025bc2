package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** How the log directories of a broker are opened. */
public final class EngineOptions {
    private static final int KEEP_LOST = 2;
    private static final int MAP_SEALED = 4;

    /** A setting of one topic. */
    private record TopicConfig(String topic, String name, String value) {
        private TopicConfig {
            Objects.requireNonNull(topic);
            Objects.requireNonNull(name);
            Objects.requireNonNull(value);
        }
    }

    private final Configs configs = new Configs();
    private final List<TopicConfig> topicConfigs = new ArrayList<>();
    private int flags;
    private String clusterId;
    private int nodeId;
    private int threads;
    private long nowMs;
    private LogOptions.Io io = LogOptions.Io.DEFAULT;
    private int openFilesMax;

    /** The defaults. */
    public EngineOptions() {}

    /** A setting as in server.properties, such as {@code log.segment.bytes}. */
    public EngineOptions config(String name, String value) {
        configs.put(name, value);
        return this;
    }

    /**
     * A setting of one topic, above those of the engine, such as {@code segment.bytes}. A name that
     * no setting of a topic has is passed over.
     */
    public EngineOptions topicConfig(String topic, String name, String value) {
        synchronized (topicConfigs) {
            topicConfigs.add(new TopicConfig(topic, name, value));
        }
        return this;
    }

    /** Keep what recovery cuts off beside, in {@code .log.lost} files. */
    public EngineOptions keepLost() {
        flags |= KEEP_LOST;
        return this;
    }

    /** Look-ups in sealed segments go through maps: see {@link LogOptions#mapSealed}. */
    public EngineOptions mapSealed() {
        flags |= MAP_SEALED;
        return this;
    }

    /** Whose the directories must be; without it that is not looked at. */
    public EngineOptions owner(String clusterId, int nodeId) {
        this.clusterId = Objects.requireNonNull(clusterId);
        this.nodeId = nodeId;
        return this;
    }

    /** How many threads load logs; 0 and 1 for the caller's own. */
    public EngineOptions threads(int count) {
        threads = Memory.threads(count);
        return this;
    }

    /** The time. */
    public EngineOptions nowMs(long nowMs) {
        this.nowMs = nowMs;
        return this;
    }

    /** How the disk is spoken to. */
    public EngineOptions io(LogOptions.Io io) {
        this.io = Objects.requireNonNull(io);
        return this;
    }

    /** How many files may be open at a time; 0 for the default of 10,000. */
    public EngineOptions openFilesMax(int count) {
        openFilesMax = count;
        return this;
    }

    /** As the struct of the header. */
    MemorySegment write(Arena arena, MemorySegment progress) {
        List<Map.Entry<String, String>> settings = configs.all();
        List<TopicConfig> topics;
        synchronized (topicConfigs) {
            topics = List.copyOf(topicConfigs);
        }
        MemorySegment out = arena.allocate(EngineLayouts.ENGINE_OPTIONS);
        out.set(JAVA_INT, 0, Math.toIntExact(out.byteSize()));
        out.set(JAVA_INT, at("flags"), flags);
        out.set(ADDRESS, at("configs"), Configs.write(arena, settings));
        out.set(ADDRESS, at("topic_configs"), write(arena, topics));
        out.set(JAVA_INT, at("config_count"), settings.size());
        out.set(JAVA_INT, at("topic_config_count"), topics.size());
        out.set(ADDRESS, at("cluster_id"), Memory.textOrNull(arena, clusterId));
        out.set(JAVA_INT, at("node_id"), nodeId);
        out.set(JAVA_INT, at("threads"), threads);
        out.set(JAVA_LONG, at("now_ms"), nowMs);
        out.set(JAVA_INT, at("io"), io.ordinal());
        out.set(JAVA_INT, at("open_files_max"), openFilesMax);
        out.set(ADDRESS, at("progress"), progress);
        return out;
    }

    private static MemorySegment write(Arena arena, List<TopicConfig> topics) {
        MemorySegment all = arena.allocate(EngineLayouts.TOPIC_CONFIG, topics.size());
        long position = 0;
        for (TopicConfig config : topics) {
            MemorySegment one = all.asSlice(position, EngineLayouts.TOPIC_CONFIG);
            text(one, "topic", Memory.text(arena, config.topic()));
            text(one, "name", Memory.text(arena, config.name()));
            text(one, "value", Memory.text(arena, config.value()));
            position += EngineLayouts.TOPIC_CONFIG.byteSize();
        }
        return all;
    }

    private static void text(MemorySegment config, String field, MemorySegment text) {
        config.set(ADDRESS, Layouts.at(EngineLayouts.TOPIC_CONFIG, field), text);
    }

    private static long at(String field) {
        return Layouts.at(EngineLayouts.ENGINE_OPTIONS, field);
    }
}
