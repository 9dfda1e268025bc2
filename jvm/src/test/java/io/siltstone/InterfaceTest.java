package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Is what these classes think of the library what its header says? */
class InterfaceTest {
    private static final Path ROOT = Path.of(System.getProperty("siltstone.root"));
    private static final Pattern DECLARATION =
            Pattern.compile("SILT_API ([^(]*?)(silt_\\w+)\\(([^)]*)\\);", Pattern.DOTALL);
    private static final Pattern FUNCTION = Pattern.compile("^[^#]*\\b(silt_\\w+)\\(");
    private static final Pattern CONSTANT =
            Pattern.compile("\\bSILT_([A-Z0-9_]+) = (-?[0-9]+)\\b");
    private static final Set<String> OBJECTS = Set.of("silt_log_t", "silt_index_t",
            "silt_engine_t", "silt_ring_t", "silt_upload_t", "silt_dir_t");
    private static final List<Class<?>> LAYOUTS = 
            List.of(Layouts.class, EngineLayouts.class, TierLayouts.class,
                    ReplicaLayouts.class, DirLayouts.class);
    private static final List<Class<?>> FUNCTIONS =
            List.of(Native.class, EngineNative.class, StateNative.class, TierNative.class,
                    ReplicaNative.class, DirNative.class);

    private static String header() throws IOException {
        String text = Files.readString(ROOT.resolve("include/siltstone.h"));
        return Pattern.compile("/\\*.*?\\*/", Pattern.DOTALL).matcher(text).replaceAll("");
    }

    /** Functions with an empty text; structs and fields with their sizes and positions. */
    private static Map<String, String> released() throws IOException {
        Map<String, String> released = new TreeMap<>();
        for (String line : Files.readAllLines(ROOT.resolve("ffi/siltstone.abi"))) {
            Matcher function = FUNCTION.matcher(line);
            if (function.find()) {
                released.put(function.group(1), "");
            } else if (!line.startsWith("#") && !line.contains("=")) {
                String[] words = line.split(" ");
                released.put(words[0], words[1]);
            }
        }
        return released;
    }

    private static List<StructLayout> layouts() throws IllegalAccessException {
        List<StructLayout> layouts = new ArrayList<>();
        for (Class<?> holder : LAYOUTS) {
            for (Field field : holder.getDeclaredFields()) {
                if (field.getType() == StructLayout.class) {
                    layouts.add((StructLayout) field.get(null));
                }
            }
        }
        return layouts;
    }

    /** What was linked, when all of it was. */
    private static Map<String, FunctionDescriptor> linked() throws ReflectiveOperationException {
        for (Class<?> holder : FUNCTIONS) {
            Class.forName(holder.getName(), true, holder.getClassLoader());
        }
        return Native.LINKED;
    }

    /** A struct that begins with its size may have grown since. */
    @Test
    void structsLieAsTheLibraryHasThem() throws Exception {
        Map<String, String> released = released();
        int fields = 0;
        for (StructLayout layout : layouts()) {
            String struct = layout.name().orElseThrow();
            long size = Long.parseLong(released.get(struct));
            boolean mayGrow = released.containsKey(struct + ".struct_size");
            assertTrue(mayGrow ? layout.byteSize() <= size : layout.byteSize() == size, struct);
            for (MemoryLayout field : layout.memberLayouts()) {
                String name = field.name().orElseThrow();
                String position = Long.toString(Layouts.at(layout, name));
                assertEquals(position, released.get(struct + "." + name), struct + "." + name);
                fields++;
            }
        }
        assertTrue(fields > 100);
        Set<String> structs = new TreeSet<>();
        released.forEach((name, size) -> {
            if (!size.isEmpty() && !name.contains(".")) {
                structs.add(name);
            }
        });
        for (StructLayout layout : layouts()) {
            structs.remove(layout.name().orElseThrow());
        }
        assertEquals(Set.of(), structs, "structs without a layout");
    }

    @Test
    void everyFunctionIsLinked() throws Exception {
        Set<String> functions = new TreeSet<>();
        released().forEach((name, number) -> {
            if (number.isEmpty()) {
                functions.add(name);
            }
        });
        assertEquals(functions, new TreeSet<>(linked().keySet()));
    }

    @Test
    void codesAreThoseOfTheHeader() throws Exception {
        Map<String, Integer> declared = new TreeMap<>();
        Matcher matcher = CONSTANT.matcher(header());
        while (matcher.find()) {
            declared.put(matcher.group(1), Integer.parseInt(matcher.group(2)));
        }
        Set<String> groups = new TreeSet<>();
        Set<String> here = new TreeSet<>();
        for (Field field : Codes.class.getFields()) {
            assertEquals(declared.get(field.getName()), field.get(null), field.getName());
            here.add(field.getName());
            groups.add(field.getName().split("_")[0]);
        }
        // Of a group that is here, nothing is missing but bits, which have methods.
        declared.keySet().removeIf(name -> !groups.contains(name.split("_")[0])
                || name.matches("(PARTITION_(DIR|EVENT)|FOLLOWER_STATE)_\\w+")
                || name.equals("PARTITION_RECOVERING") || name.equals("REMOTE_TXN_INDEX_EMPTY"));
        assertEquals(declared.keySet(), here);
    }

    @Test
    void parametersAreThoseOfTheHeader() throws Exception {
        Map<String, FunctionDescriptor> functions = linked();
        Map<String, String> declared = new TreeMap<>();
        Matcher matcher = DECLARATION.matcher(header());
        while (matcher.find()) {
            if (!functions.containsKey(matcher.group(2))) {
                continue;
            }
            List<String> types = new ArrayList<>();
            types.add(kind(matcher.group(1) + "result"));
            for (String parameter : matcher.group(3).split(",")) {
                if (!parameter.isBlank() && !parameter.equals("void")) {
                    types.add(kind(parameter));
                }
            }
            declared.put(matcher.group(2), types.toString());
        }
        Map<String, String> linked = new TreeMap<>();
        functions.forEach((name, descriptor) -> linked.put(name, kinds(descriptor)));
        assertTrue(declared.size() > 30);
        assertEquals(declared.toString(), linked.toString());
    }

    private static String kinds(FunctionDescriptor descriptor) {
        List<String> types = new ArrayList<>();
        types.add(descriptor.returnLayout().map(InterfaceTest::kind).orElse("void"));
        descriptor.argumentLayouts().forEach(layout -> types.add(kind(layout)));
        return types.toString();
    }

    /** What a register holds; an opaque object is a number to Java. */
    private static String kind(MemoryLayout layout) {
        if (layout instanceof ValueLayout.OfInt) {
            return "i32";
        }
        if (layout instanceof ValueLayout.OfShort) {
            return "i16";
        } else if (layout instanceof ValueLayout.OfByte) {
            return "i8";
        }
        return layout instanceof ValueLayout.OfLong ? "i64" : "pointer";
    }

    private static String kind(String parameter) {
        String type = parameter.replace("const ", " ").strip();
        long stars = type.chars().filter(letter -> letter == '*').count();
        String base = type.split("[ *]")[0];
        boolean isObject = stars == 1 && OBJECTS.contains(base);
        if (stars > 0 && !isObject) {
            return "pointer";
        }
        return switch (base) {
            case "void" -> "void";
            case "int32_t", "uint32_t", "silt_status_t" -> "i32";
            case "int64_t", "uint64_t" -> "i64";
            case "int16_t" -> "i16";
            case "uint8_t" -> "i8";
            case "silt_progress_fn" -> "pointer";
            default -> {
                assertTrue(isObject, "a type that is not known: " + parameter);
                yield "i64";
            }
        };
    }

    @Test
    void theVersionIsThatOfTheHeader() throws Exception {
        assertTrue(header().contains("#define SILT_ABI_VERSION " + Library.abiVersion() + "\n"));
        assertEquals(Loader.ABI_VERSION, Library.abiVersion());
    }

    @Test
    void kindsHaveTheCodesOfTheHeader() {
        for (Kind kind : Kind.values()) {
            String name = kind == Kind.OTHER ? "SILT_E_?" : "SILT_E_" + kind;
            assertEquals(name, Library.statusName(kind.code()));
            assertEquals(kind, Kind.of(kind.code()));
        }
        assertEquals(Kind.OTHER, Kind.of(-14));
        assertEquals("SILT_E_?", Library.statusName(-14), "a code that Kind does not have");
    }
}
