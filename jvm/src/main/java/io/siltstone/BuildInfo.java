package io.siltstone;

import java.lang.foreign.Arena;

/** What the library was built for and found on this machine. */
public final class BuildInfo extends Struct {
    private static final long ABI_VERSION = Layouts.at(Layouts.BUILD_INFO, "abi_version");
    private static final long FLAGS = Layouts.at(Layouts.BUILD_INFO, "flags");
    private static final long TARGET = Layouts.at(Layouts.BUILD_INFO, "target");

    /** Nothing yet, in memory that the garbage collector frees. */
    public BuildInfo() {
        this(Arena.ofAuto());
    }

    /** Nothing yet, in memory of an arena. */
    public BuildInfo(Arena arena) {
        super(Layouts.BUILD_INFO, arena);
    }

    /** The version of the interface. */
    public int abiVersion() {
        return intAt(ABI_VERSION);
    }

    /** Whether the kernel and its sandbox allow io_uring here and now. */
    public boolean hasIoUring() {
        return (intAt(FLAGS) & 1) != 0;
    }

    /** Such as {@code x86_64-linux}. */
    public String target() {
        return memory().asSlice(TARGET).getString(0);
    }
}
