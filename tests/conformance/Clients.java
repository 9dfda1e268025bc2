// Speaks to brokers as it is told on standard input, by one JSON object a line:
//   {"do": "offsets", "topic": "orders"}
// Each is answered by a line on standard output: {"answer": ...} or {"error": "..."}. Topics have
// one partition. What an order needs is what its method asks for.
//
//   java -cp "LIB/*" Clients.java 127.0.0.1:PORT,127.0.0.1:PORT
import com.fasterxml.jackson.databind.*;
import java.io.*;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.requests.*;
import org.apache.kafka.common.serialization.*;

public class Clients {
    static final int SECONDS = 30;
    static final ObjectMapper json = new ObjectMapper();
    static final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    static String brokers;
    static Admin admin;

    public static void main(String[] arguments) throws Exception {
        brokers = arguments[0];
        admin = Admin.create(Map.of("bootstrap.servers", brokers,
            "default.api.timeout.ms", SECONDS + "000", "request.timeout.ms", "10000"));
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = orders.readLine()) != null;) {
            Map<String, Object> told;
            try {
                told = Map.of("answer", obey(json.readTree(line)));
            } catch (ExecutionException error) {
                told = Map.of("error", error.getCause().toString());
            } catch (Exception error) {
                told = Map.of("error", error.toString());
            }
            System.out.println(json.writeValueAsString(told));
        }
        Runtime.getRuntime().halt(0);
    }

    static Object obey(JsonNode order) throws Exception {
        String what = order.get("do").asText();
        return switch (what) {
            case "create" -> create(order);
            case "partition" -> partition(order);
            case "elect" -> elect(order);
            case "offsets" -> offsets(order);
            case "times" -> times(order);
            case "delete_records" -> deleteRecords(order);
            case "send" -> send(order);
            case "begin", "commit", "abort" -> transact(what, order);
            case "send_raw" -> sendRaw(order);
            case "read" -> read(order);
            default -> throw new IllegalArgumentException(what);
        };
    }

    static TopicPartition at(JsonNode order) {
        return new TopicPartition(order.get("topic").asText(), 0);
    }

    static Map<String, String> texts(JsonNode object) {
        Map<String, String> texts = new TreeMap<>();
        object.fields().forEachRemaining(it -> texts.put(it.getKey(), it.getValue().asText()));
        return texts;
    }

    static Object create(JsonNode order) throws Exception {
        List<Integer> replicas = new ArrayList<>();
        order.get("replicas").forEach(node -> replicas.add(node.asInt()));
        NewTopic topic = new NewTopic(order.get("topic").asText(), Map.of(0, replicas))
            .configs(texts(order.path("configs")));
        admin.createTopics(List.of(topic)).all().get(SECONDS, TimeUnit.SECONDS);
        return true;
    }

    /** Its leader, -1 for none, and its in-sync replicas. */
    static Object partition(JsonNode order) throws Exception {
        String topic = order.get("topic").asText();
        var told = admin.describeTopics(List.of(topic)).allTopicNames();
        var partition = told.get(SECONDS, TimeUnit.SECONDS).get(topic).partitions().get(0);
        Node leader = partition.leader();
        return Map.of("leader", leader == null ? -1 : leader.id(),
            "isr", partition.isr().stream().map(Node::id).sorted().toList());
    }

    /** The first of its replicas becomes the leader, if it is in sync. */
    static Object elect(JsonNode order) throws Exception {
        admin.electLeaders(ElectionType.PREFERRED, Set.of(at(order))).partitions()
            .get(SECONDS, TimeUnit.SECONDS);
        return true;
    }

    static Object offsets(JsonNode order) throws Exception {
        Map<String, Object> offsets = new TreeMap<>();
        IsolationLevel all = IsolationLevel.READ_UNCOMMITTED;
        offsets.put("start", offset(order, OffsetSpec.earliest(), all));
        offsets.put("local_start", offset(order, OffsetSpec.earliestLocal(), all));
        offsets.put("tiered", offset(order, OffsetSpec.latestTiered(), all));
        offsets.put("end", offset(order, OffsetSpec.latest(), all));
        offsets.put("stable", offset(order, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED));
        return offsets;
    }

    static long offset(JsonNode order, OffsetSpec which, IsolationLevel isolation)
            throws Exception {
        return find(order, which, isolation).offset();
    }

    static ListOffsetsResult.ListOffsetsResultInfo find(JsonNode order, OffsetSpec which,
            IsolationLevel isolation) throws Exception {
        var answer = admin.listOffsets(Map.of(at(order), which), new ListOffsetsOptions(isolation));
        return answer.all().get(SECONDS, TimeUnit.SECONDS).get(at(order));
    }

    /** The first record that is as late as each of the timestamps: offset and timestamp, or -1. */
    static Object times(JsonNode order) throws Exception {
        List<Object> found = new ArrayList<>();
        for (JsonNode timestamp : order.get("timestamps")) {
            var record = find(order, OffsetSpec.forTimestamp(timestamp.asLong()),
                IsolationLevel.READ_UNCOMMITTED);
            found.add(List.of(record.offset(), record.timestamp()));
        }
        return found;
    }

    static Object deleteRecords(JsonNode order) throws Exception {
        var before = RecordsToDelete.beforeOffset(order.get("before").asLong());
        admin.deleteRecords(Map.of(at(order), before)).all().get(SECONDS, TimeUnit.SECONDS);
        return true;
    }

    /** The producer of this name; one that is not there yet gets the settings of the order. */
    static KafkaProducer<byte[], byte[]> producer(JsonNode order) {
        return producers.computeIfAbsent(order.get("producer").asText(), name -> {
            // A batch goes when it is flushed.
            Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", brokers,
                "acks", "all", "enable.idempotence", "false", "linger.ms", "10000",
                "batch.size", "200000", "metadata.max.age.ms", "1000",
                "request.timeout.ms", "10000", "delivery.timeout.ms", SECONDS + "000"));
            config.putAll(texts(order.path("settings")));
            var serializer = new ByteArraySerializer();
            var producer = new KafkaProducer<>(config, serializer, serializer);
            if (config.containsKey("transactional.id")) producer.initTransactions();
            return producer;
        });
    }

    /**
     * Sends batches of records whose values begin with the text and a number, and are made up
     * behind; without a text they are null. Returns the first and the last offset.
     */
    static Object send(JsonNode order) throws Exception {
        var producer = producer(order);
        String text = order.path("text").asText(null);
        int count = order.path("count").asInt(5);
        Random random = new Random(String.valueOf(text).hashCode());
        long first = -1;
        long last = -1;
        for (int batch = 0; batch < order.path("batches").asInt(1); batch++) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                byte[] key = number % 5 == 3 ? null : ("k" + number % 7).getBytes();
                byte[] value = text == null ? null : value(random, text + "-" + number + " ");
                var record = new ProducerRecord<>(at(order).topic(), 0, key, value);
                if (number % 2 == 1) record.headers().add("n", ("" + number).getBytes());
                if (number % 4 == 1) record.headers().add("", null);
                sent.add(producer.send(record));
            }
            producer.flush();
            for (var record : sent) {
                last = record.get(SECONDS, TimeUnit.SECONDS).offset();
                first = first < 0 ? last : first;
            }
        }
        return List.of(first, last);
    }

    static byte[] value(Random random, String begin) {
        StringBuilder value = new StringBuilder(begin);
        while (value.length() < 200) value.append((char) ('a' + random.nextInt(26)));
        return value.toString().getBytes();
    }

    static Object transact(String what, JsonNode order) {
        var producer = producer(order);
        switch (what) {
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            default -> producer.abortTransaction();
        }
        return true;
    }

    /** Sends a batch that no client would send, to the broker at a port: its answer. */
    static Object sendRaw(JsonNode order) throws Exception {
        int sequence = order.get("sequence").asInt();
        SimpleRecord[] records = new SimpleRecord[order.get("count").asInt()];
        for (int number = 0; number < records.length; number++) {
            String value = order.get("text").asText() + "-" + (sequence + number);
            records[number] =
                new SimpleRecord(System.currentTimeMillis(), null, value.getBytes());
        }
        var batch = MemoryRecords.withIdempotentRecords(Compression.NONE,
            order.get("producer_id").asLong(), (short) order.get("epoch").asInt(), sequence,
            records);
        var partition = new ProduceRequestData.PartitionProduceData().setIndex(0)
            .setRecords(batch);
        var topic = new ProduceRequestData.TopicProduceData()
            .setName(order.get("topic").asText()).setPartitionData(List.of(partition));
        var topics = new ProduceRequestData.TopicProduceDataCollection(List.of(topic).iterator());
        var data = new ProduceRequestData().setAcks((short) -1).setTimeoutMs(10000)
            .setTopicData(topics);
        // The last version with names of topics and without a check of transactions.
        short version = 9;
        var response = (ProduceResponse)
            call(order.get("port").asInt(), new ProduceRequest(data, version), version);
        var told = response.data().responses().iterator().next().partitionResponses().get(0);
        return Map.of("error", Errors.forCode(told.errorCode()).name(),
            "base", told.baseOffset());
    }

    static AbstractResponse call(int port, AbstractRequest request, short version)
            throws Exception {
        RequestHeader header = new RequestHeader(request.apiKey(), version, "conformance", 1);
        ByteBuffer bytes = request.serializeWithHeader(header);
        byte[] sent = new byte[bytes.remaining()];
        bytes.get(sent);
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout(SECONDS * 1000);
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.writeInt(sent.length);
            out.write(sent);
            out.flush();
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] got = new byte[in.readInt()];
            in.readFully(got);
            return AbstractResponse.parseResponse(ByteBuffer.wrap(got), header);
        }
    }

    /** What a consumer sees up to the end: offset, timestamp, key, value, headers. */
    static Object read(JsonNode order) {
        TopicPartition partition = at(order);
        Map<String, Object> config = Map.of("bootstrap.servers", brokers,
            "isolation.level", order.get("isolation").asText(), "auto.offset.reset", "none",
            "enable.auto.commit", "false", "fetch.max.wait.ms", "200");
        List<Object> records = new ArrayList<>();
        var deserializer = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(config, deserializer, deserializer)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, order.get("from").asLong());
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            long begin = System.nanoTime();
            while (consumer.position(partition) < end) {
                if (System.nanoTime() - begin > SECONDS * 1_000_000_000L) {
                    long position = consumer.position(partition);
                    throw new IllegalStateException("came to " + position + " of " + end);
                }
                for (var record : consumer.poll(Duration.ofMillis(300))) {
                    List<Object> headers = new ArrayList<>();
                    for (Header header : record.headers()) {
                        headers.add(Arrays.asList(header.key(), text(header.value())));
                    }
                    records.add(Arrays.asList(record.offset(), record.timestamp(),
                        text(record.key()), text(record.value()), headers));
                }
            }
        }
        return records;
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes);
    }
}
