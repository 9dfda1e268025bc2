package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Settings by Kafka's names, in their text form, as they are gathered by many threads. */
final class Configs {
    private final Map<String, String> settings = new LinkedHashMap<>();

    synchronized void put(String name, String value) {
        settings.put(Objects.requireNonNull(name), Objects.requireNonNull(value));
    }

    /** What there is now: its count is that of the array, whatever is added meanwhile. */
    synchronized List<Map.Entry<String, String>> all() {
        return List.copyOf(settings.entrySet());
    }

    /** As an array of the header. */
    static MemorySegment write(Arena arena, List<Map.Entry<String, String>> settings) {
        MemorySegment out = arena.allocate(Layouts.CONFIG, settings.size());
        long position = 0;
        for (Map.Entry<String, String> setting : settings) {
            MemorySegment one = out.asSlice(position, Layouts.CONFIG);
            one.set(ADDRESS, at("name"), Memory.text(arena, setting.getKey()));
            one.set(ADDRESS, at("value"), Memory.text(arena, setting.getValue()));
            position += Layouts.CONFIG.byteSize();
        }
        return out;
    }

    private static long at(String field) {
        return Layouts.at(Layouts.CONFIG, field);
    }
}
