// Owns: writing given records with the Java producer, so that what it puts on the wire can be read by kconsumer.
// Threads: its own process. Never: invents a record; what stdin says is written, in that order.
//
// Arguments: bootstrap servers, topic, codec, then any number of producer properties as name=value.
// Standard input, one JSON object a line:
//   {"key": base64|null, "value": base64|null, "headers": [[name, base64|null], ...], "timestamp": ms|null,
//    "partition": number|null}     a record; absent fields are null, absent headers none
//   {"flush": true}                ends the batches under way, so that the next record begins new ones
//   {"transaction": "begin" | "commit" | "abort"}     with transactional.id among the properties
// Standard output, one JSON object a record, in the order given: {"partition": n, "offset": n, "timestamp": ms};
// a record whose transaction was aborted before it was sent has offset -1.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class ProduceMatrix {
    private final KafkaProducer<byte[], byte[]> producer;
    private final String topic;
    private final List<Future<RecordMetadata>> sent = new ArrayList<>();
    private final List<Integer> aborted = new ArrayList<>();
    private int transactionStart = 0;

    private ProduceMatrix(Properties properties, String topic) {
        this.producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        this.topic = topic;
        if (properties.containsKey("transactional.id")) {
            producer.initTransactions();
        }
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("compression.type", args[2]);
        properties.put("acks", "all");
        properties.put("linger.ms", "100");
        properties.put("batch.size", "262144");
        properties.put("max.request.size", "33554432");
        properties.put("buffer.memory", "134217728");
        for (int i = 3; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        ProduceMatrix matrix = new ProduceMatrix(properties, args[1]);
        ObjectMapper mapper = new ObjectMapper();
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                matrix.act(mapper.readTree(line));
            }
        }
        matrix.finish();
    }

    private void act(JsonNode node) {
        if (node.has("flush")) {
            producer.flush();
        } else if (node.has("transaction")) {
            transaction(node.get("transaction").asText());
        } else {
            send(node);
        }
    }

    private void transaction(String what) {
        switch (what) {
            case "begin":
                producer.beginTransaction();
                transactionStart = sent.size();
                break;
            case "commit":
                producer.commitTransaction();
                break;
            case "abort":
                producer.flush();  // otherwise what has not been sent yet never reaches the log
                producer.abortTransaction();
                for (int i = transactionStart; i < sent.size(); i++) {
                    aborted.add(i);
                }
                break;
            default:
                throw new IllegalArgumentException("transaction: " + what);
        }
    }

    private void send(JsonNode node) {
        RecordHeaders headers = new RecordHeaders();
        for (JsonNode pair : node.path("headers")) {
            headers.add(pair.get(0).asText(), bytes(pair.get(1)));
        }
        Integer partition = node.hasNonNull("partition") ? node.get("partition").asInt() : null;
        Long timestamp = node.hasNonNull("timestamp") ? node.get("timestamp").asLong() : null;
        sent.add(producer.send(new ProducerRecord<>(
            topic, partition, timestamp, bytes(node.get("key")), bytes(node.get("value")), headers)));
    }

    private static byte[] bytes(JsonNode node) {
        return node == null || node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private void finish() throws InterruptedException, ExecutionException {
        producer.flush();
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < sent.size(); i++) {
            RecordMetadata place;
            try {
                place = sent.get(i).get();
            } catch (ExecutionException failure) {
                if (!aborted.contains(i)) {
                    throw failure;
                }
                out.append("{\"partition\": -1, \"offset\": -1, \"timestamp\": -1}\n");
                continue;
            }
            out.append("{\"partition\": ").append(place.partition()).append(", \"offset\": ").append(place.offset())
                .append(", \"timestamp\": ").append(place.timestamp()).append("}\n");
        }
        System.out.print(out);
        producer.close();
    }
}
