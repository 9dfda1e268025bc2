package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RandomCallsTest {
    @TempDir
    Path home;

    @Test
    void everyPublicClassIsAmongThem() throws Exception {
        Path classes = Path.of(
                Library.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        List<String> missing;
        try (var files = Files.list(classes.resolve("io/siltstone"))) {
            missing = files.map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(".class") && !name.startsWith("package-info"))
                    .map(name -> "io.siltstone." + name.replace(".class", ""))
                    .filter(RandomCallsTest::isToBeCalled).toList();
        }
        assertEquals(List.of(), missing);
    }

    /** Whether it is a public class with something to call, and is not called. */
    private static boolean isToBeCalled(String name) {
        try {
            Class<?> type = Class.forName(name);
            boolean isOther = type.isEnum() || type.isInterface()
                    || Modifier.isAbstract(type.getModifiers())
                    || Throwable.class.isAssignableFrom(type) || type == Codes.class;
            return Modifier.isPublic(type.getModifiers()) && !isOther
                    && !RandomCalls.CLASSES.contains(type);
        } catch (ClassNotFoundException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    // -Dsiltstone.seed=N makes other calls, -Dsiltstone.rounds=N more of them.
    @Test
    void aVirtualMachineLivesThroughTenThousandCallsThatMakeNoSense() throws Exception {
        long first = Long.getLong("siltstone.seed", 1);
        for (long at = 0; at < Long.getLong("siltstone.rounds", 1); at++) {
            livesThrough(first + at, Files.createDirectory(home.resolve("round-" + at)));
        }
    }

    private static void livesThrough(long seed, Path folder) throws Exception {
        List<String> options = List.of("-Xmx256m", "-XX:MaxDirectMemorySize=4g",
                "-Dsiltstone.library.path=" + Library.path().toAbsolutePath());
        List<String> arguments = List.of(Long.toString(seed), "10000", folder.toString());
        var child = Children.run(Children.java(RandomCalls.class, options, arguments), folder);
        String label = "-Dsiltstone.seed=" + seed + "\n" + child.text();
        assertEquals(0, child.code(), label);
        assertTrue(child.text().endsWith("lived through 10000\n"), label);
        assertTrue(child.text().contains("good="), label);
        assertFalse(child.text().contains("BUG="), label);
    }
}
