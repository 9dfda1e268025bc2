package io.siltstone;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * A {@link Progress} as the library calls it. An exception that left it would end the virtual
 * machine: it is kept, cancels the call, and is thrown when the call is over.
 */
final class ProgressCall {
    private static final FunctionDescriptor DESCRIPTOR =
            FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle TELL;

    static {
        try {
            TELL = MethodHandles.lookup().findVirtual(ProgressCall.class, "tell",
                    MethodType.methodType(
                            int.class, MemorySegment.class, long.class, long.class));
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    /** What is done with the function; the result is a status. */
    @FunctionalInterface
    interface Body {
        int run(long object, MemorySegment function, Scratch scratch) throws Throwable;
    }

    /** A call that is given the function, and throws what fails. */
    @FunctionalInterface
    interface Use {
        void with(MemorySegment function);
    }

    private final Progress progress;
    private Throwable thrown;

    private ProgressCall(Progress progress) {
        this.progress = progress;
    }

    /** Runs a call that tells its progress; none when that is null. */
    static void run(Handle handle, Progress progress, Body body) {
        run(progress, function ->
                handle.call((object, scratch) -> body.run(object, function, scratch)));
    }

    /** The same without an object. */
    static void run(Progress progress, Use use) {
        if (progress == null) {
            use.with(MemorySegment.NULL);
            return;
        }
        ProgressCall call = new ProgressCall(progress);
        try (Arena arena = Arena.ofConfined()) {
            use.with(call.function(arena));
        } catch (SiltstoneException failure) {
            call.rethrow();
            throw failure;
        }
        // Also when the work was over before it could be cancelled.
        call.rethrow();
    }

    @SuppressWarnings("restricted")
    private MemorySegment function(Arena arena) {
        return Linker.nativeLinker().upcallStub(TELL.bindTo(this), DESCRIPTOR, arena);
    }

    private int tell(MemorySegment context, long doneBytes, long totalBytes) {
        try {
            return progress.goesOn(doneBytes, totalBytes) ? 0 : 1;
        } catch (Throwable what) {
            thrown = what;
            return 1;
        }
    }

    private void rethrow() {
        if (thrown != null) {
            throw Native.unchecked(thrown);
        }
    }
}
