package io.siltstone;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Virtual machines that a test starts. */
final class Children {
    private static final long TIME_LIMIT_S = 300;

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

    /** Runs a command to its end. */
    static Ended run(List<String> command, Path folder) throws IOException, InterruptedException {
        Process child = new ProcessBuilder(command).directory(folder.toFile())
                .redirectErrorStream(true).start();
        byte[] text = child.getInputStream().readAllBytes();
        if (!child.waitFor(TIME_LIMIT_S, TimeUnit.SECONDS)) {
            child.destroyForcibly();
            throw new IllegalStateException("it does not end: " + command);
        }
        return new Ended(child.exitValue(), new String(text, StandardCharsets.UTF_8));
    }
}
