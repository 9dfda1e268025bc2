package io.siltstone;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.siltstone.Children.Ended;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LoaderTest {
    @TempDir
    Path home;

    private Ended print(String... options) throws Exception {
        return Children.run(Children.java(Library.class, List.of(options), List.of()), home);
    }

    private static String message(Path file) {
        return assertThrows(UnsatisfiedLinkError.class, () -> Loader.open(file)).getMessage();
    }

    @Test
    void theFileThatIsNamedComesFirst() throws Exception {
        Path copy = Files.copy(Library.path(), home.resolve("mine.so"));
        Ended child = print("-Dsiltstone.library.path=" + copy);
        assertEquals(0, child.code(), child.text());
        assertTrue(child.text().endsWith("from " + copy + "\n"), child.text());
        assertTrue(child.text().startsWith("siltstone " + Library.version() + " for "));
        child = print("-Dsiltstone.library.path=" + home.resolve("not-there.so"));
        assertNotEquals(0, child.code());
        assertTrue(child.text().contains("not-there.so: no such file"), child.text());
    }

    @Test
    void thenThoseOfTheLibraryPath() throws Exception {
        Path copy = Files.copy(Library.path(), home.resolve("libsiltstone.so.1"));
        Ended child = print("-Djava.library.path=/nowhere" + File.pathSeparator + home);
        assertTrue(child.text().endsWith("from " + copy + "\n"), child.text());
        // One that does not fit does not hide the one in the jar.
        Files.writeString(copy, "no library");
        child = print("-Djava.library.path=" + home, "-Dsiltstone.tmpdir=" + home.resolve("x"));
        assertEquals(0, child.code(), child.text());
        assertTrue(child.text().contains("from " + home.resolve("x/libsiltstone-")), child.text());
    }

    @Test
    void thenTheOneInTheJarIsUnpackedToACacheOfTheUser() throws Exception {
        Ended child = print("-Djava.library.path=", "-Duser.home=" + home);
        assertEquals(0, child.code(), child.text());
        assertTrue(child.text().contains("from " + home.resolve(".cache/siltstone")));
    }

    @Test
    void aUserWithoutAHomeHasOneForAsLongAsTheProcessRuns() throws Exception {
        Path temp = Files.createDirectory(home.resolve("temp"));
        Ended child =
                print("-Djava.library.path=", "-Duser.home=?", "-Djava.io.tmpdir=" + temp);
        assertEquals(0, child.code(), child.text());
        assertTrue(child.text().contains("from " + temp.resolve("siltstone-")), child.text());
        try (var files = Files.list(temp)) {
            assertEquals(0, files.count(), "nothing is left");
        }
    }

    @Test
    void whatIsUnpackedIsNamedByItsBytesAndUsedAgain() throws IOException {
        Path first = Loader.unpack(new byte[] {1, 2, 3}, home.resolve("made"));
        FileTime longAgo = FileTime.fromMillis(1000);
        Files.setLastModifiedTime(first, longAgo);
        assertEquals(first, Loader.unpack(new byte[] {1, 2, 3}, home.resolve("made")));
        assertEquals(longAgo, Files.getLastModifiedTime(first));
        assertTrue(Files.isExecutable(first));
        assertNotEquals(first, Loader.unpack(new byte[] {1, 2}, home.resolve("made")));
        // A damaged one is made anew.
        Files.write(first, new byte[] {9, 9});
        assertEquals(first, Loader.unpack(new byte[] {1, 2, 3}, home.resolve("made")));
        assertEquals(3, Files.size(first));
        try (var files = Files.list(home.resolve("made"))) {
            assertEquals(2, files.count(), "nothing else is left");
        }
    }

    @Test
    void aFolderThatCannotBeMadeIsNamed() throws IOException {
        Path file = Files.writeString(home.resolve("file"), "");
        var refused = assertThrows(UnsatisfiedLinkError.class,
                () -> Loader.unpack(new byte[1], file.resolve("below")));
        assertTrue(refused.getMessage().contains("-Dsiltstone.tmpdir"), refused.getMessage());
    }

    @Test
    void librariesThatAreOthersAreRefused() throws Exception {
        Path text = Files.writeString(home.resolve("text.so"), "no library");
        assertTrue(message(text).contains("cannot be loaded"), message(text));
        Path other = compile("other", "int other(void) { return 1; }");
        assertTrue(message(other).contains("not a library of siltstone"), message(other));
        Path later = compile("later", "unsigned silt_abi_version(void) { return 2; }");
        assertTrue(message(later).contains("version 2"), message(later));
        assertFalse(Library.path().startsWith(home), "what was refused is not told");
    }

    @Test
    void aFunctionThatTheLibraryLacksSaysSoWhenItIsCalled() throws Exception {
        Path old = compile("old", "unsigned silt_abi_version(void) { return 1; }\n"
                + "const char *silt_version(void) { return \"0.0.1\"; }\n");
        Ended child = print("-Dsiltstone.library.path=" + old);
        assertNotEquals(0, child.code());
        assertTrue(child.text().contains("the library has no silt_build_info"), child.text());
    }

    private Path compile(String name, String code) throws Exception {
        Path source = Files.writeString(home.resolve(name + ".c"), code);
        Path library = home.resolve(name + ".so");
        Ended compiler = Children.run(List.of("cc", "-shared", "-fPIC", "-o", library.toString(),
                source.toString()), home);
        assertEquals(0, compiler.code(), compiler.text());
        return library;
    }

    @Test
    void aFileSystemThatIsMountedNoexecIsNamed() throws Exception {
        Path mount = Files.createDirectory(home.resolve("noexec"));
        List<String> inside = new ArrayList<>(List.of("unshare", "--mount", "sh", "-c",
                "mount -t tmpfs -o noexec tmpfs \"$0\" && exec \"$@\"", mount.toString()));
        List<String> probe = new ArrayList<>(inside);
        probe.add("true");
        assumeTrue(Children.run(probe, home).code() == 0, "nothing may be mounted here");
        inside.addAll(Children.java(Library.class,
                List.of("-Djava.library.path=", "-Dsiltstone.tmpdir=" + mount), List.of()));
        Ended child = Children.run(inside, home);
        assertNotEquals(0, child.code());
        assertTrue(child.text().contains("mounted noexec"), child.text());
        assertTrue(child.text().contains("-Dsiltstone.tmpdir"), child.text());
    }
}
