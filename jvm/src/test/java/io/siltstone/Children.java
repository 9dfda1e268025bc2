package io.siltstone;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Virtual machines that a test starts. */
final class Children {
    private static final long TIME_LIMIT_S = 300;
    private static final long DUMP_LIMIT_S = 5;

    /** How one ended: its exit code and all that it printed. */
    record Ended(int code, String text) {}

    private Children() {}

    /** A command that runs a class of these tests. */
    static List<String> java(Class<?> main, List<String> options, List<String> arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("--enable-native-access=ALL-UNNAMED");
        command.add("-XX:-CreateCoredumpOnCrash");
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(arguments);
        return command;
    }

    /**
     * Runs a command to its end. One that does not come to it says what its threads are doing, and
     * is killed.
     */
    static Ended run(List<String> command, Path folder) throws IOException, InterruptedException {
        Path text = Files.createTempFile("child", ".out");
        try {
            Process child = new ProcessBuilder(command).directory(folder.toFile())
                    .redirectErrorStream(true).redirectOutput(text.toFile()).start();
            if (!child.waitFor(TIME_LIMIT_S, TimeUnit.SECONDS)) {
                // The virtual machine prints the stacks of its threads.
                new ProcessBuilder("kill", "-QUIT", Long.toString(child.pid())).start().waitFor();
                child.waitFor(DUMP_LIMIT_S, TimeUnit.SECONDS);
                child.destroyForcibly().waitFor();
                throw new IllegalStateException(
                        "it does not end: " + command + "\n" + Files.readString(text));
            }
            return new Ended(child.exitValue(), Files.readString(text));
        } finally {
            Files.delete(text);
        }
    }
}
