package io.siltstone;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;

/** The library itself: which one was loaded, and what it finds on this machine. */
public final class Library {
    private Library() {}

    /** The file that was loaded. */
    public static Path path() {
        abiVersion();
        return Loader.path();
    }

    /** The version of the interface. Nothing is as cheap to call. */
    public static int abiVersion() {
        try {
            return (int) Native.ABI_VERSION.invokeExact();
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        }
    }

    /** The version of the library, such as {@code 0.1.0}. */
    public static String version() {
        try {
            return Native.text((MemorySegment) Native.VERSION.invokeExact());
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        }
    }

    /** The name of a code in the header; {@code SILT_E_?} for a number that is none. */
    public static String statusName(int status) {
        try {
            return Native.text((MemorySegment) Native.STATUS_NAME.invokeExact(status));
        } catch (Throwable thrown) {
            throw Native.unchecked(thrown);
        }
    }

    /** Asks the library what it was built for and found here. */
    public static void buildInfo(BuildInfo out) {
        MemorySegment memory = out.memory();
        Scratch.call(scratch -> (int) Native.BUILD_INFO.invokeExact(memory, scratch.error));
    }

    /** Prints which library a class path gives. */
    public static void main(String[] arguments) {
        BuildInfo info = new BuildInfo();
        buildInfo(info);
        System.out.println("siltstone " + version() + " for " + info.target() + ", interface "
                + abiVersion() + ", io_uring " + (info.hasIoUring() ? "allowed" : "not allowed")
                + ", from " + path());
    }
}
