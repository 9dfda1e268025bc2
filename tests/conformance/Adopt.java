// Writes KRaft metadata for the partition directories of a log directory, so that a single node
// takes them for its own; without it a broker calls them stray. Missing meta.properties and
// partition.metadata files are written, too; nothing else in DATA is touched.
//
//   java -cp "LIB/*" Adopt.java DATA METADATA TOPICS.json
//     TOPICS.json  {"topic": {"config": "value"}}
import com.fasterxml.jackson.databind.*;
import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metadata.*;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.metadata.bootstrap.*;
import org.apache.kafka.server.common.*;

public class Adopt {
    static final MetadataVersion VERSION = MetadataVersion.latestProduction();
    static final List<ApiMessageAndVersion> records = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Path data = Path.of(arguments[0]);
        Path metadata = Files.createDirectories(Path.of(arguments[1]));
        JsonNode configs = new ObjectMapper().readTree(new File(arguments[2]));
        Properties properties = metaProperties(data, metadata);
        int node = Integer.parseInt(properties.getProperty("node.id"));
        Uuid directory = Uuid.fromString(properties.getProperty("directory.id"));
        features();
        for (var topic : partitions(data).entrySet()) {
            Uuid id = topicId(topic.getValue().values());
            add(new TopicRecord().setName(topic.getKey()).setTopicId(id), 0);
            for (var partition : topic.getValue().entrySet()) {
                partition(partition.getKey(), partition.getValue(), id, node, directory);
            }
            configs.path(topic.getKey()).fields().forEachRemaining(config ->
                add(new ConfigRecord().setResourceType(ConfigResource.Type.TOPIC.id())
                    .setResourceName(topic.getKey()).setName(config.getKey())
                    .setValue(config.getValue().asText()), 0));
        }
        var bootstrap = BootstrapMetadata.fromRecords(records, "adopt");
        new BootstrapDirectory(metadata.toString()).writeBinaryFile(bootstrap);
    }

    static void add(ApiMessage message, int version) {
        records.add(new ApiMessageAndVersion(message, (short) version));
    }

    /** Those of DATA, completed; the metadata directory gets the same with an id of its own. */
    static Properties metaProperties(Path data, Path metadata) throws IOException {
        Properties properties = new Properties();
        Path file = data.resolve("meta.properties");
        if (Files.exists(file)) {
            try (InputStream in = Files.newInputStream(file)) { properties.load(in); }
        }
        properties.putIfAbsent("version", "1");
        properties.putIfAbsent("cluster.id", "MkU3OEVBNTcwNTJENDM2Qg");
        properties.putIfAbsent("node.id", "1");
        properties.putIfAbsent("directory.id", Uuid.randomUuid().toString());
        if (!Files.exists(file)) {
            try (OutputStream out = Files.newOutputStream(file)) { properties.store(out, null); }
        }
        Properties own = new Properties();
        own.putAll(properties);
        own.setProperty("directory.id", Uuid.randomUuid().toString());
        try (OutputStream out = Files.newOutputStream(metadata.resolve("meta.properties"))) {
            own.store(out, null);
        }
        return properties;
    }

    static void features() {
        add(new FeatureLevelRecord().setName(MetadataVersion.FEATURE_NAME)
            .setFeatureLevel(VERSION.featureLevel()), 0);
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            short level = feature.defaultLevel(VERSION);
            if (level > 0) {
                add(new FeatureLevelRecord().setName(feature.featureName())
                    .setFeatureLevel(level), 0);
            }
        }
    }

    /** Partition directories by topic and number. */
    static TreeMap<String, TreeMap<Integer, Path>> partitions(Path data) throws IOException {
        TreeMap<String, TreeMap<Integer, Path>> topics = new TreeMap<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(data)) {
            for (Path path : entries) {
                String name = path.getFileName().toString();
                int dash = name.lastIndexOf('-');
                boolean isNamed = dash > 0 && name.substring(dash + 1).matches("\\d+");
                if (isNamed && Files.isDirectory(path)) {
                    topics.computeIfAbsent(name.substring(0, dash), topic -> new TreeMap<>())
                        .put(Integer.parseInt(name.substring(dash + 1)), path);
                }
            }
        }
        return topics;
    }

    static Uuid topicId(Collection<Path> partitions) throws IOException {
        for (Path partition : partitions) {
            Path file = partition.resolve("partition.metadata");
            if (!Files.exists(file)) continue;
            for (String line : Files.readAllLines(file)) {
                if (line.startsWith("topic_id: ")) {
                    return Uuid.fromString(line.substring(10).trim());
                }
            }
        }
        return Uuid.randomUuid();
    }

    static void partition(int number, Path path, Uuid topic, int node, Uuid directory)
            throws IOException {
        Path file = path.resolve("partition.metadata");
        if (!Files.exists(file)) Files.writeString(file, "version: 0\ntopic_id: " + topic);
        int epoch = 0;
        Path epochs = path.resolve("leader-epoch-checkpoint");
        if (Files.exists(epochs)) {
            for (String line : Files.readAllLines(epochs).stream().skip(2).toList()) {
                if (!line.isBlank()) epoch = Math.max(epoch, Integer.parseInt(line.split(" ")[0]));
            }
        }
        add(new PartitionRecord().setPartitionId(number).setTopicId(topic)
            .setReplicas(List.of(node)).setIsr(List.of(node))
            .setRemovingReplicas(List.of()).setAddingReplicas(List.of())
            .setLeader(node).setLeaderEpoch(epoch).setPartitionEpoch(epoch)
            .setDirectories(List.of(directory)), VERSION.partitionRecordVersion());
    }
}
