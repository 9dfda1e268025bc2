package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/** Makes holes in files, which no class of Java does. */
final class Holes {
    private static final int O_RDWR = 2;
    /** FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE. */
    private static final int PUNCH = 1 | 2;
    private static final MethodHandle OPEN =
            function("open", Linker.Option.firstVariadicArg(2), ADDRESS, JAVA_INT);
    private static final MethodHandle FALLOCATE =
            function("fallocate", null, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CLOSE = function("close", null, JAVA_INT);

    private Holes() {}

    @SuppressWarnings("restricted")
    private static MethodHandle function(
            String name, Linker.Option option, MemoryLayout... parameters) {
        Linker linker = Linker.nativeLinker();
        Linker.Option[] options = option == null ? new Linker.Option[0]
                : new Linker.Option[] {option};
        return linker.downcallHandle(linker.defaultLookup().find(name).orElseThrow(),
                FunctionDescriptor.of(JAVA_INT, parameters), options);
    }

    /** Zeros in the place of some bytes; false where the file system has no holes. */
    static boolean punch(Path file, long position, long sizeBytes) throws Throwable {
        try (Arena arena = Arena.ofConfined()) {
            int fd = (int) OPEN.invokeExact(arena.allocateFrom(file.toString()), O_RDWR);
            if (fd < 0) {
                throw new IllegalStateException("cannot open " + file);
            }
            int result = (int) FALLOCATE.invokeExact(fd, PUNCH, position, sizeBytes);
            int unused = (int) CLOSE.invokeExact(fd);
            return result == 0;
        }
    }
}
