package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RandomCallsTest {
    @TempDir
    Path home;

    @Test
    void aVirtualMachineLivesThroughTenThousandCallsThatMakeNoSense() throws Exception {
        long seed = Long.getLong("siltstone.seed", System.nanoTime());
        List<String> options = List.of("-Xmx256m", "-XX:MaxDirectMemorySize=1g",
                "-Dsiltstone.library.path=" + Library.path().toAbsolutePath());
        List<String> arguments = List.of(Long.toString(seed), "10000", home.toString());
        var child = Children.run(Children.java(RandomCalls.class, options, arguments), home);
        String label = "-Dsiltstone.seed=" + seed + "\n" + child.text();
        assertEquals(0, child.code(), label);
        assertTrue(child.text().endsWith("lived through 10000\n"), label);
        assertTrue(child.text().contains("good="), label);
        assertFalse(child.text().contains("BUG="), label);
    }
}
