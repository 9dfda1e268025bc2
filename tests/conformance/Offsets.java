// Asks a running broker for the offsets of every partition. One JSON object a line:
//   {"partition": "orders-0", "start": 0, "localStart": 0, "end": 42, "lastStable": 40}
// An offset that the broker does not tell is null, with the reason in "error".
//
//   java -cp "LIB/*" Offsets.java 127.0.0.1:PORT
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.*;

public class Offsets {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", arguments[0],
            "default.api.timeout.ms", "20000", "request.timeout.ms", "10000");
        try (Admin admin = Admin.create(config)) {
            Set<String> names =
                admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
            var topics = admin.describeTopics(new TreeSet<>(names)).allTopicNames().get();
            for (String name : new TreeSet<>(names)) {
                for (TopicPartitionInfo partition : topics.get(name).partitions()) {
                    print(admin, new TopicPartition(name, partition.partition()));
                }
            }
        }
        System.exit(0);
    }

    static void print(Admin admin, TopicPartition partition) throws Exception {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("partition", partition.toString());
        IsolationLevel all = IsolationLevel.READ_UNCOMMITTED;
        IsolationLevel committed = IsolationLevel.READ_COMMITTED;
        put(admin, partition, line, "start", OffsetSpec.earliest(), all);
        put(admin, partition, line, "localStart", OffsetSpec.earliestLocal(), all);
        put(admin, partition, line, "end", OffsetSpec.latest(), all);
        put(admin, partition, line, "lastStable", OffsetSpec.latest(), committed);
        System.out.println(new ObjectMapper().writeValueAsString(line));
    }

    static void put(Admin admin, TopicPartition partition, Map<String, Object> line, String name,
            OffsetSpec which, IsolationLevel isolation) throws Exception {
        try {
            var options = new ListOffsetsOptions(isolation);
            var answer = admin.listOffsets(Map.of(partition, which), options);
            line.put(name, answer.all().get(20, TimeUnit.SECONDS).get(partition).offset());
        } catch (ExecutionException error) {
            line.put(name, null);
            line.put("error", error.getCause().toString());
        }
    }
}
