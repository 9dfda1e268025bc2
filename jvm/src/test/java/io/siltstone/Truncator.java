package io.siltstone;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Random;

/**
 * Cuts files of a folder at random places, or makes holes in them, and mends them again, in a
 * process of its own.
 */
public final class Truncator {
    /** How often tests look at what is cut: {@code -Dsiltstone.tries=10000} for long rounds. */
    static final int TRIES = Integer.getInteger("siltstone.tries", 500);

    private Truncator() {}

    /** Starts one on a folder. It ends after some time that goes by the tries. */
    static Process start(Path folder) throws IOException {
        List<String> arguments = List.of(folder.toString(), Integer.toString(TRIES / 4));
        return new ProcessBuilder(Children.java(Truncator.class, List.of(), arguments))
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
    }

    /** Arguments: a folder, and how many times. */
    public static void main(String[] arguments) throws Exception {
        List<Path> files;
        try (var all = Files.list(Path.of(arguments[0]))) {
            files = all.filter(file -> file.toString().matches(".*\\.(log|\\w*index)")).toList();
        }
        Random random = new Random(1);
        for (int at = 0; at < Integer.parseInt(arguments[1]); at++) {
            cut(files.get(random.nextInt(files.size())), random);
        }
        System.out.println("cut");
    }

    private static void cut(Path file, Random random) throws IOException, InterruptedException {
        byte[] bytes = Files.readAllBytes(file);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            int at = bytes.length == 0 ? 0 : random.nextInt(bytes.length);
            if (random.nextInt(3) == 0) {
                // What a hole reads as.
                channel.write(ByteBuffer.allocate(Math.min(bytes.length - at, 4096)), at);
            } else {
                channel.truncate(at);
            }
            if (random.nextInt(4) == 0) {
                Thread.sleep(1);
            }
            channel.write(ByteBuffer.wrap(bytes), 0);
        }
    }
}
