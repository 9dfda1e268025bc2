package io.siltstone;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * All logs of a broker: opened together, and recovered where the stop was not a clean one. No
 * thread of its own stays: what has to be done now and then is handed out as work, which the host
 * runs where and when it likes:
 *
 * <pre>{@code
 * Works works = new Works(64);
 * engine.due(nowMs, works);
 * for (int at = 0; at < works.count(); at++) {
 *     engine.run(works.id(at), nowMs);
 * }
 * }</pre>
 *
 * <p>Logs that an engine gives are objects of their own, each to be closed, before or after the
 * engine. Any number of threads may use it.
 */
public final class Engine implements AutoCloseable {
    private final Handle handle;

    private Engine(long object) {
        handle = Handle.of(this, object, EngineNative.ENGINE_CLOSE);
    }

    /**
     * Takes log directories and opens all logs in them. A directory that is missing is made; one
     * whose disk fails is offline from the start, and a log that cannot be opened is left as it is:
     * see {@link #stats}.
     *
     * @throws SiltstoneException {@link Kind#CONFLICT} when another process holds a directory or
     *     they do not belong together, {@link Kind#IO} when no directory is left
     */
    public static Engine open(List<Path> dirs, EngineOptions options) {
        return open(dirs, options, null);
    }

    /**
     * The same, and tells how far it is: a log counts as one byte more than recovery reads of it.
     * When it is ended, the next start recovers.
     *
     * @param progress null for none
     */
    public static Engine open(List<Path> dirs, EngineOptions options, Progress progress) {
        long[] object = new long[1];
        List<Path> all = List.copyOf(dirs);
        ProgressCall.run(progress, function -> {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment names = Memory.paths(arena, all);
                MemorySegment struct = options.write(arena, function);
                Scratch.call(scratch -> {
                    int status = (int) EngineNative.ENGINE_OPEN.invokeExact(
                            names, all.size(), struct, scratch.first, scratch.error);
                    object[0] = scratch.firstLong();
                    return status;
                });
            }
        });
        return new Engine(object[0]);
    }

    /**
     * Ends the engine as a clean stop does: makes all logs durable, writes checkpoints and marks
     * each directory of which every log was opened and closed without an error; how many those are.
     * Then every call on the engine and its logs but closing gives {@link Kind#CLOSED}, also after
     * a failure.
     *
     * @param brokerEpoch -1 for none
     * @param threads 0 and 1 for the caller's own
     */
    public int stop(long brokerEpoch, int threads) {
        int[] clean = new int[1];
        Memory.threads(threads);
        handle.call((engine, scratch) -> {
            int status = (int) EngineNative.ENGINE_STOP.invokeExact(
                    engine, brokerEpoch, threads, scratch.first, scratch.error);
            clean[0] = scratch.firstInt();
            return status;
        });
        return clean[0];
    }

    /**
     * Gives the engine back, when the calls that run have ended. Without a stop before, the next
     * start recovers.
     */
    @Override
    public void close() {
        handle.close();
    }

    /** Whether {@link #close()} was called. */
    public boolean isClosed() {
        return handle.isClosed();
    }

    /**
     * The log of a partition.
     *
     * @throws SiltstoneException {@link Kind#NOT_FOUND} when there is none; else what keeps it from
     *     being open
     */
    public Log log(String topic, int partition) {
        return object(topic, (engine, name, scratch) -> (int) EngineNative.ENGINE_LOG.invokeExact(
                engine, name, partition, scratch.first, scratch.error));
    }

    /**
     * The log of a partition, made now if there is none.
     *
     * @throws SiltstoneException {@link Kind#CONFLICT} for another topic id,
     *     {@link Kind#INVALID_ARGUMENT} for a setting that Kafka would refuse, also by its name
     */
    public Log create(String topic, int partition, NewLog how) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment struct = how.write(arena);
            return object(topic, (engine, name, scratch) ->
                    (int) EngineNative.ENGINE_CREATE_LOG.invokeExact(
                            engine, name, partition, struct, scratch.first, scratch.error));
        }
    }

    /** Deletes a log: its directory is renamed now, and goes with the work that is due later. */
    public void delete(String topic, int partition, long nowMs) {
        named(topic, (engine, name, scratch) -> (int) EngineNative.ENGINE_DELETE_LOG.invokeExact(
                engine, name, partition, nowMs, scratch.error));
    }

    /**
     * The future log of a partition: made by {@link #create} with {@link NewLog#isFuture}, it
     * grows in another directory until it {@linkplain #replace replaces} the current one.
     *
     * @throws SiltstoneException {@link Kind#NOT_FOUND} when there is none
     */
    public Log futureLog(String topic, int partition) {
        return object(topic, (engine, name, scratch) ->
                (int) EngineNative.ENGINE_FUTURE_LOG.invokeExact(
                        engine, name, partition, scratch.first, scratch.error));
    }

    /**
     * Moves the future log of a partition into the place of the current one, whose directory goes
     * as that of a {@linkplain #delete deleted} one does.
     *
     * @throws SiltstoneException {@link Kind#NOT_FOUND} where one of them is missing
     */
    public void replace(String topic, int partition, long nowMs) {
        named(topic, (engine, name, scratch) -> (int) EngineNative.ENGINE_REPLACE_LOG.invokeExact(
                engine, name, partition, nowMs, scratch.error));
    }

    /** Gives up a move: deletes the future log. */
    public void deleteFuture(String topic, int partition, long nowMs) {
        named(topic, (engine, name, scratch) ->
                (int) EngineNative.ENGINE_DELETE_FUTURE.invokeExact(
                        engine, name, partition, nowMs, scratch.error));
    }

    /**
     * Moves a log aside that is not assigned to this broker any more: its directory is renamed, and
     * stays.
     */
    public void markStray(String topic, int partition, long nowMs) {
        named(topic, (engine, name, scratch) -> (int) EngineNative.ENGINE_MARK_STRAY.invokeExact(
                engine, name, partition, nowMs, scratch.error));
    }

    /**
     * Takes a log directory offline whose disk fails: its logs are closed without a write, and are
     * an error from now on.
     *
     * @throws SiltstoneException {@link Kind#NOT_FOUND} when no directory of that path is online
     */
    public void takeOffline(Path dir) {
        named(dir.toString(), (engine, name, scratch) ->
                (int) EngineNative.ENGINE_TAKE_OFFLINE.invokeExact(engine, name, scratch.error));
    }

    /**
     * Gives the logs of a topic other settings, above those of the engine: they are in the place of
     * all that the topic was given before, by the options or by this.
     *
     * @throws SiltstoneException {@link Kind#INVALID_ARGUMENT}, and nothing is changed, for a
     *     setting that Kafka would refuse; the message has its name
     */
    public void setConfig(String topic, Map<String, String> configs) {
        List<Map.Entry<String, String>> settings = List.copyOf(configs.entrySet());
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment array = Configs.write(arena, settings);
            named(topic, (engine, name, scratch) ->
                    (int) EngineNative.ENGINE_SET_CONFIG.invokeExact(
                            engine, name, array, settings.size(), scratch.error));
        }
    }

    /** Fills in the partitions whose logs are open; how many there are. */
    public long partitions(EnginePartitions out) {
        return handle.fill(out, (engine, scratch) ->
                (int) EngineNative.ENGINE_PARTITIONS.invokeExact(
                        engine, out.memory(), out.capacity(), scratch.first, scratch.error));
    }

    /**
     * Hands out work that is due, as much as fits; how much that was. What does not fit is due the
     * next time. It is not handed out again before it was run or dropped.
     */
    public int due(long nowMs, Works out) {
        handle.fill(out, (engine, scratch) -> (int) EngineNative.ENGINE_DUE.invokeExact(
                engine, nowMs, out.memory(), out.capacity(), scratch.first, scratch.error));
        return out.count();
    }

    /**
     * Does a piece of work on this thread; many threads may each do one. What fails is due again a
     * little later.
     *
     * @throws SiltstoneException {@link Kind#NOT_FOUND} for an id that was not handed out, or was
     *     run already
     */
    public void run(long work, long nowMs) {
        handle.call((engine, scratch) -> (int) EngineNative.ENGINE_RUN.invokeExact(
                engine, work, nowMs, scratch.error));
    }

    /** Gives a piece of work back: it is due again at once. */
    public void drop(long work) {
        handle.call((engine, scratch) -> (int) EngineNative.ENGINE_DROP_WORK.invokeExact(
                engine, work, scratch.error));
    }

    /** Writes all checkpoints now, durably. */
    public void checkpoint() {
        handle.call((engine, scratch) -> (int) EngineNative.ENGINE_CHECKPOINT.invokeExact(
                engine, scratch.error));
    }

    /** Counts. It looks at every segment, so it is for now and then. */
    public void stats(EngineStats out) {
        MemorySegment result = out.memory();
        handle.call((engine, scratch) -> (int) EngineNative.ENGINE_STATS.invokeExact(
                engine, result, scratch.error));
    }

    /** What is done with a topic. */
    @FunctionalInterface
    private interface Named {
        int run(long engine, MemorySegment topic, Scratch scratch) throws Throwable;
    }

    private void named(String topic, Named body) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = Memory.text(arena, topic);
            handle.call((engine, scratch) -> body.run(engine, name, scratch));
        }
    }

    private Log object(String topic, Named body) {
        long[] object = new long[1];
        named(topic, (engine, name, scratch) -> {
            int status = body.run(engine, name, scratch);
            object[0] = scratch.firstLong();
            return status;
        });
        return new Log(object[0]);
    }
}
