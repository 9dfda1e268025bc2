package io.siltstone;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.UUID;

/**
 * Calls public methods with arguments that make no sense: closed objects, closed arenas, memory of
 * other threads, any number. Prints how calls ended; that it comes to its end is the test.
 */
public final class RandomCalls {
    /** Everything that is public. */
    static final List<Class<?>> CLASSES = List.of(
            AbortedEntries.class, AbortedTxns.class, Appended.class, Appends.class,
            Batches.class, Bounds.class, BuildInfo.class, Bytes.class, DirectRead.class,
            Engine.class, EngineOptions.class, EnginePartitions.class, EngineStats.class,
            Epochs.class, FetchState.class, FetchVerdict.class, Fetches.class,
            FollowerAction.class, FollowerEvent.class, Followers.class, Index.class,
            IndexEntry.class, Isr.class, Kind.class, Leases.class, Library.class, Log.class,
            LogDirs.class, LogOptions.class, NewLog.class, Offsets.class, PartitionDirs.class,
            PartitionEvent.class, PartitionState.class, Parts.class, PlanSteps.class,
            Problems.class, Producers.class, RebuildOptions.class, Rebuilds.class,
            Rebuilt.class, RecoverOptions.class, Recoveries.class, RemoteRecord.class,
            Ring.class, Room.class, SegmentScan.class, Segments.class, TierColumns.class,
            TimeOffset.class, Upload.class, Upload.Options.class, VerifyOptions.class,
            Watermark.class, Works.class);
    private static final List<Class<?>> OWNERS =
            CLASSES.stream().filter(AutoCloseable.class::isAssignableFrom).toList();
    private static final long[] NUMBERS = {
        0, 1, 2, 7, 30, 64, 100, 1000, 4096, -1, -2, 1 << 14, Integer.MAX_VALUE,
        Integer.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 32, 0xffff_ffffL
    };
    private static final String[] TEXTS = {
        "segment.bytes", "1024", "retention.ms", "-1", "", "x\0y", "cleanup.policy", "compact",
        "orders", "compression.type", "zstd", "message.timestamp.type", "LogAppendTime", "\ud800"
    };
    private static final int OBJECTS_OF_A_CLASS = 12;
    private static final int MEMORY_MAX = 40;
    /** Which argument of these methods of {@link Index} is the size of a file. */
    private static final Map<String, Integer> SIZES = Map.of("open", 3, "resize", 1);

    private final Random random;
    private final Path home;
    private final List<Executable> calls = new ArrayList<>();
    /** What all threads have made. */
    private final Map<Class<?>, List<Object>> objects;
    private final List<MemorySegment> memory = new ArrayList<>();
    private final List<Object> rooms = new ArrayList<>();
    private final List<Arena> arenas = new ArrayList<>();
    private final Map<String, Integer> outcomes = new TreeMap<>();
    private volatile boolean isCalling;

    private RandomCalls(long seed, Path home, Map<Class<?>, List<Object>> objects) {
        random = new Random(seed);
        this.home = home;
        this.objects = objects;
        for (Class<?> type : CLASSES) {
            for (Method method : type.getMethods()) {
                // Not those of Object and Enum.
                boolean isOwn = method.getDeclaringClass().getPackage() == type.getPackage();
                if (isOwn && !method.getName().equals("main")) {
                    calls.add(method);
                }
            }
            calls.addAll(List.of(type.getConstructors()));
        }
    }

    /** Arguments: a seed, how many calls, and a folder. */
    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[1]);
        Map<Class<?>, List<Object>> objects = new HashMap<>();
        for (Class<?> type : CLASSES) {
            objects.put(type, Collections.synchronizedList(new ArrayList<>()));
        }
        List<Thread> threads = new ArrayList<>();
        List<RandomCalls> all = new ArrayList<>();
        for (int at = 0; at < 2; at++) {
            long seed = Long.parseLong(arguments[0]) + at;
            RandomCalls each = new RandomCalls(seed, Path.of(arguments[2]), objects);
            all.add(each);
            threads.add(Thread.ofPlatform().start(() -> each.run(count / 2)));
        }
        Thread waker = Thread.ofPlatform().daemon().start(() -> wake(all, threads));
        for (Thread thread : threads) {
            thread.join();
        }
        waker.interrupt();
        all.forEach(each -> System.out.println(each.outcomes));
        // A thread that fails has made fewer.
        int made = all.stream().flatMap(each -> each.outcomes.values().stream())
                .mapToInt(Integer::intValue).sum();
        System.out.println("lived through " + made);
    }

    /** Ends calls that would wait for ever. */
    private static void wake(List<RandomCalls> all, List<Thread> threads) {
        try {
            while (true) {
                Thread.sleep(20);
                for (int at = 0; at < all.size(); at++) {
                    if (all.get(at).isCalling) {
                        threads.get(at).interrupt();
                    }
                }
            }
        } catch (InterruptedException over) {
            Thread.currentThread().interrupt();
        }
    }

    private void run(int count) {
        makeMemory();
        isCalling = true;
        for (int at = 0; at < count; at++) {
            // Half of them go to what owns something.
            Executable call = calls.get(random.nextInt(calls.size()));
            while (at % 2 == 0 && !OWNERS.contains(call.getDeclaringClass())) {
                call = calls.get(random.nextInt(calls.size()));
            }
            String outcome = call(call);
            Thread.interrupted();
            outcomes.merge(outcome, 1, Integer::sum);
        }
    }

    private void makeMemory() {
        memory.add(null);
        memory.add(MemorySegment.NULL);
        memory.add(MemorySegment.ofArray(new byte[200]));
        memory.add(MemorySegment.ofAddress(12345));
        memory.add(Arena.global().allocate(100).asReadOnly());
        memory.add(Arena.global().allocate(5000).asSlice(3, 4001));
        memory.add(Samples.batch(0, 1000, -1, 0));
        memory.add(Samples.batch(0, 2000, 7, 0));
        memory.add(Samples.batch(3, 2000, 7, 1).asReadOnly());
        for (int producer = -1; producer < 4; producer++) {
            Room room = new Room(Samples.SIZE);
            room.memory().copyFrom(Samples.batch(0, 1000, producer, 0));
            rooms.add(room);
        }
        Arena confined = Arena.ofConfined();
        memory.add(confined.allocate(64));
        confined.close();
        Arena shared = Arena.ofShared();
        memory.add(shared.allocate(64));
        arenas.addAll(List.of(Arena.ofAuto(), Arena.global(), confined, shared,
                Arena.ofConfined()));
        Thread other = Thread.ofPlatform().start(() -> {
            Arena elsewhere = Arena.ofConfined();
            memory.add(elsewhere.allocate(64));
            arenas.add(elsewhere);
        });
        try {
            other.join();
        } catch (InterruptedException impossible) {
            throw new IllegalStateException(impossible);
        }
        if (random.nextBoolean()) {
            shared.close();
        }
    }

    private String call(Executable call) {
        Object[] arguments = new Object[call.getParameterCount()];
        for (int at = 0; at < arguments.length; at++) {
            arguments[at] = argument(call.getParameterTypes()[at]);
        }
        Integer size = call.getDeclaringClass() == Index.class ? SIZES.get(call.getName()) : null;
        if (size != null) {
            // A file of two gigabytes would do nothing but take its time.
            arguments[size] = (int) arguments[size] & 0x8000_ffff;
        }
        if (call instanceof Constructor<?> && random.nextInt(50) != 0) {
            // Room that is not there is waited for, half a second each time.
            Arrays.setAll(arguments, at -> bounded(arguments[at]));
        }
        try {
            Object result;
            if (call instanceof Constructor<?> constructor) {
                result = constructor.newInstance(arguments);
            } else {
                boolean isStatic = Modifier.isStatic(call.getModifiers());
                Object receiver = isStatic ? null : object(receiverType(call));
                if (receiver == null && !isStatic) {
                    return "no object";
                }
                result = ((Method) call).invoke(receiver, arguments);
            }
            keep(result);
            return "good";
        } catch (InvocationTargetException thrown) {
            Throwable cause = thrown.getCause();
            return cause instanceof SiltstoneException failure
                    ? failure.kind().toString() : cause.getClass().getSimpleName();
        } catch (IllegalArgumentException | IllegalAccessException | InstantiationException
                | NullPointerException notCalled) {
            return "not called: " + notCalled;
        }
    }

    /** A count or a size that memory has room for, or one below zero. */
    private static Object bounded(Object argument) {
        return switch (argument) {
            case Integer number -> number & 0x8000_3fff;
            case Long number -> number & 0x8000_0000_0000_3fffL;
            case null, default -> argument;
        };
    }

    /** A method of {@link Rows} or {@link Struct} is called on one of the classes below them. */
    private Class<?> receiverType(Executable call) {
        Class<?> type = call.getDeclaringClass();
        if (objects.containsKey(type)) {
            return type;
        }
        List<Class<?>> below = CLASSES.stream().filter(type::isAssignableFrom).toList();
        return below.get(random.nextInt(below.size()));
    }

    private void keep(Object result) {
        if (result instanceof MemorySegment segment && memory.size() < MEMORY_MAX) {
            memory.add(segment);
        }
        Class<?> type = result == null ? null : result.getClass();
        List<Object> same = type == Room.class ? rooms : objects.get(type);
        if (same == null || same.contains(result)) {
            return;
        }
        if (same.size() < OBJECTS_OF_A_CLASS) {
            same.add(result);
        } else {
            same.set(random.nextInt(OBJECTS_OF_A_CLASS), result);
        }
    }

    private Object object(Class<?> type) {
        // Bytes that the library works on are one thread's, as its rules say.
        List<Object> same = type == Room.class ? rooms : objects.get(type);
        return same.isEmpty() ? null : same.get(random.nextInt(same.size()));
    }

    private long number() {
        return switch (random.nextInt(8)) {
            case 0 -> random.nextLong();
            case 1, 2 -> NUMBERS[random.nextInt(NUMBERS.length)];
            default -> random.nextInt(40);
        };
    }

    private Progress progress() {
        return switch (random.nextInt(4)) {
            case 0 -> (done, total) -> false;
            case 1 -> (done, total) -> {
                throw new IllegalStateException("from a progress function");
            };
            case 2 -> (done, total) -> {
                call(calls.get(random.nextInt(calls.size())));
                return true;
            };
            default -> (done, total) -> true;
        };
    }

    private Object argument(Class<?> type) {
        if (type == int.class) {
            return (int) number();
        } else if (type == long.class) {
            return number();
        } else if (type == short.class) {
            return (short) number();
        } else if (type == boolean.class) {
            return random.nextBoolean();
        } else if (random.nextInt(30) == 0) {
            return null;
        } else if (type == MemorySegment.class) {
            return memory.get(random.nextInt(memory.size()));
        } else if (type == Arena.class) {
            return arenas.get(random.nextInt(arenas.size()));
        } else if (type == Path.class) {
            String[] names = {
                "orders-0", "orders-1", "orders-2", "nothing", "no/where-0", "", "a.index",
                "b.timeindex", "c.txnindex"
            };
            return home.resolve(names[random.nextInt(names.length)]);
        } else if (type == String.class) {
            return TEXTS[random.nextInt(TEXTS.length)];
        } else if (type == List.class) {
            return Arrays.asList(home.resolve("dir-" + random.nextInt(2)), argument(Path.class));
        } else if (type == Map.class) {
            Map<Object, Object> map = new HashMap<>();
            map.put(argument(String.class), argument(String.class));
            return map;
        } else if (type == Progress.class) {
            return progress();
        } else if (type == int[].class) {
            return random.ints(random.nextInt(6), 0, 5).toArray();
        } else if (type == byte[].class) {
            return new byte[random.nextInt(40)];
        } else if (type == UUID.class) {
            return new UUID(0, random.nextInt(2));
        } else if (type == long[].class) {
            return new long[random.nextInt(4)];
        } else if (type.isEnum()) {
            return type.getEnumConstants()[random.nextInt(type.getEnumConstants().length)];
        }
        List<Object> same = objects.get(type);
        if (same == null) {
            throw new IllegalStateException("nothing to give for " + type);
        }
        return object(type);
    }
}
