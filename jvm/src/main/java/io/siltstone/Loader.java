package io.siltstone;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

/**
 * Finds the library: the file that {@code siltstone.library.path} names; else in
 * {@code java.library.path}; else in the jar of this platform, from which it is unpacked.
 */
final class Loader {
    static final String FILE_PROPERTY = "siltstone.library.path";
    static final String FOLDER_PROPERTY = "siltstone.tmpdir";
    /** {@code SILT_ABI_VERSION} of the header that these classes are written for. */
    static final int ABI_VERSION = 1;

    private static final List<String> NAMES = List.of("libsiltstone.so", "libsiltstone.so.1");

    /** Where the library was found. */
    private static volatile Path path;

    private Loader() {}

    static Path path() {
        return path;
    }

    static SymbolLookup load() {
        String file = System.getProperty(FILE_PROPERTY);
        if (file != null) {
            return open(Path.of(file));
        }
        // What does not fit in a folder of the system must not hide what is in the jar.
        List<String> reasons = new ArrayList<>();
        for (Path found : installed(System.getProperty("java.library.path", ""))) {
            try {
                return open(found);
            } catch (UnsatisfiedLinkError reason) {
                reasons.add(reason.getMessage());
            }
        }
        try {
            return open(unpacked(packaged(resource())));
        } catch (UnsatisfiedLinkError reason) {
            reasons.add(reason.getMessage());
            throw new UnsatisfiedLinkError(String.join("; ", reasons));
        }
    }

    /** The libraries in a list of folders. */
    static List<Path> installed(String folders) {
        return Arrays.stream(folders.split(File.pathSeparator))
                .filter(folder -> !folder.isEmpty())
                .flatMap(folder -> NAMES.stream().map(name -> Path.of(folder, name)))
                .filter(Files::isRegularFile)
                .toList();
    }

    /** Opens a library of this interface. */
    @SuppressWarnings("restricted")
    static SymbolLookup open(Path file) {
        if (!Files.isRegularFile(file)) {
            throw new UnsatisfiedLinkError(file + ": no such file");
        }
        SymbolLookup symbols;
        try {
            // Not System.load, which lends a file to one class loader alone.
            symbols = SymbolLookup.libraryLookup(file.toAbsolutePath(), Arena.global());
        } catch (IllegalArgumentException refused) {
            throw new UnsatisfiedLinkError(whyRefused(file));
        }
        MemorySegment symbol = symbols.find("silt_abi_version").orElseThrow(
                () -> new UnsatisfiedLinkError(file + ": not a library of siltstone"));
        int version = abiVersion(symbol);
        if (version != ABI_VERSION) {
            throw new UnsatisfiedLinkError(file + ": has version " + version
                    + " of the interface, and these classes need " + ABI_VERSION);
        }
        path = file;
        return symbols;
    }

    @SuppressWarnings("restricted")
    private static int abiVersion(MemorySegment symbol) {
        FunctionDescriptor descriptor = FunctionDescriptor.of(JAVA_INT);
        try {
            return (int) Linker.nativeLinker().downcallHandle(symbol, descriptor).invokeExact();
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        }
    }

    /** A file that may be executed by its mode but not where it lies is on a noexec mount. */
    private static String whyRefused(Path file) {
        if (!Files.isReadable(file)) {
            return file + ": may not be read";
        }
        boolean isAllowed = false;
        try {
            isAllowed = Files.getPosixFilePermissions(file).stream()
                    .anyMatch(permission -> permission.name().endsWith("_EXECUTE"));
        } catch (IOException | UnsupportedOperationException unknown) {
            // Then nothing can be said but that it did not work.
        }
        if (isAllowed && !Files.isExecutable(file)) {
            return file + ": its file system is mounted noexec. Name another folder by -D"
                    + FOLDER_PROPERTY + ", or the library itself by -D" + FILE_PROPERTY;
        }
        return file + ": cannot be loaded; is it built for " + platform() + "?";
    }

    /** Such as {@code linux-x86_64}, and {@code linux-musl-x86_64} where the C library is musl. */
    static String platform() {
        String arch = switch (System.getProperty("os.arch")) {
            case "amd64", "x86_64" -> "x86_64";
            case "aarch64" -> "aarch_64";
            case String other -> other;
        };
        String system = System.getProperty("os.name").toLowerCase(java.util.Locale.ROOT);
        return system + (isMusl() ? "-musl-" : "-") + arch;
    }

    /** The one way to know it without running anything: what is mapped here. */
    private static boolean isMusl() {
        // The names of files may have any bytes, each of which is a character of this charset.
        try (var lines = Files.lines(Path.of("/proc/self/maps"), ISO_8859_1)) {
            return lines.anyMatch(line -> line.contains("/ld-musl-"));
        } catch (IOException unknown) {
            return false;
        }
    }

    private static String resource() {
        return "/io/siltstone/native/" + platform() + "/libsiltstone.so";
    }

    private static byte[] packaged(String resource) {
        try (InputStream bytes = Loader.class.getResourceAsStream(resource)) {
            if (bytes == null) {
                throw new UnsatisfiedLinkError("no jar on the class path has " + resource
                        + ": add the one of this platform, or name the library by -D"
                        + FILE_PROPERTY);
            }
            return bytes.readAllBytes();
        } catch (IOException failed) {
            throw new UnsatisfiedLinkError(resource + ": " + failed);
        }
    }

    /**
     * Writes a library to the folder that is named, or to the cache of the user. One without a
     * home, which is "?" then, has a folder for as long as this process runs.
     */
    private static Path unpacked(byte[] library) {
        String named = System.getProperty(FOLDER_PROPERTY);
        if (named != null) {
            return unpack(library, Path.of(named));
        }
        String home = System.getProperty("user.home", "?");
        if (!home.isEmpty() && !home.equals("?")) {
            return unpack(library, Path.of(home, ".cache", "siltstone"));
        }
        try {
            // Not one of a known name, where others could put a library of theirs.
            Path folder = Files.createTempDirectory("siltstone-");
            Path file = unpack(library, folder);
            // What is told last goes first.
            folder.toFile().deleteOnExit();
            file.toFile().deleteOnExit();
            return file;
        } catch (IOException failed) {
            throw new UnsatisfiedLinkError("no folder can be made for the library (" + failed
                    + "). Name one by -D" + FOLDER_PROPERTY);
        }
    }

    /** Writes a library to a file that is named by its bytes, unless it is there. */
    static Path unpack(byte[] library, Path folder) {
        Path file = folder.resolve("libsiltstone-" + hash(library) + ".so");
        try {
            if (Files.isRegularFile(file) && Arrays.equals(Files.readAllBytes(file), library)) {
                return file;
            }
            Files.createDirectories(folder);
            Path fresh = Files.createTempFile(folder, "libsiltstone-", ".new");
            try {
                Files.write(fresh, library);
                var mode = PosixFilePermissions.fromString("rwxr-xr-x");
                Files.setPosixFilePermissions(fresh, mode);
                // Another process that does the same moves the same bytes here.
                Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE);
            } finally {
                Files.deleteIfExists(fresh);
            }
            return file;
        } catch (IOException failed) {
            throw new UnsatisfiedLinkError("the library cannot be unpacked to " + folder + " ("
                    + failed + "). Name another folder by -D" + FOLDER_PROPERTY);
        }
    }

    private static String hash(byte[] bytes) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes);
            return HexFormat.of().formatHex(digest, 0, 16);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException("every JDK has SHA-256", impossible);
        }
    }
}
