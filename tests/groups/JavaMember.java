import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * The Java client as a group member, with the options, commands and trace of member.py.
 *
 * <p>The poll thread consumes and runs the listener; another reads stdin. System.nanoTime is the monotonic clock that
 * the other members' traces show.
 */
public final class JavaMember implements ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final JsonNode options;
    private final FileOutputStream trace;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final boolean commits;
    private final ConcurrentLinkedQueue<JsonNode> commands = new ConcurrentLinkedQueue<>();
    private final Map<TopicPartition, Long> done = new HashMap<>();
    private final Map<TopicPartition, Long> asked = new HashMap<>();
    private final Map<String, Double> slow = new HashMap<>();
    private double nextCommit;
    private boolean holding;
    private boolean running = true;

    private JavaMember(JsonNode options) throws Exception {
        this.options = options;
        trace = new FileOutputStream(options.get("trace").asText(), true);
        Properties properties = new Properties();
        options.get("config").fields().forEachRemaining(e -> properties.put(e.getKey(), e.getValue().asText()));
        commits = options.get("commit").asText().equals("after");
        properties.put("enable.auto.commit", options.get("commit").asText().equals("auto") ? "true" : "false");
        consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    public static void main(String[] arguments) throws Exception {
        new JavaMember(JSON.readTree(arguments[0])).run();
    }

    private static double now() {
        return System.nanoTime() / 1e9;
    }

    private static List<String> names(Collection<TopicPartition> partitions) {
        List<String> names = new ArrayList<>();
        partitions.forEach(p -> names.add(p.topic() + "/" + p.partition()));
        return names;
    }

    private synchronized void write(String event, Object... more) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("t", now());
        line.put("e", event);
        for (int i = 0; i < more.length; i += 2) {
            line.put((String) more[i], more[i + 1]);
        }
        try {
            trace.write((JSON.writeValueAsString(line) + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        write("assigned", "p", names(partitions), "id", consumer.groupMetadata().memberId());
        drop(partitions);
        delay("assign");
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        write("revoking", "p", names(partitions));
        delay("revoke");
        commitNow("revoke", partitions);
        drop(partitions);
        write("revoked", "p", names(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        write("lost", "p", names(partitions));
        delay("lost");
        drop(partitions);
    }

    private void drop(Collection<TopicPartition> partitions) {
        partitions.forEach(p -> {
            done.remove(p);
            asked.remove(p);
        });
    }

    private void delay(String callback) {
        Double seconds = slow.remove(callback);
        if (seconds != null) {
            sleep(seconds);
        }
    }

    private static void sleep(double seconds) {
        try {
            Thread.sleep((long) (seconds * 1000));
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private Map<TopicPartition, OffsetAndMetadata> offsets(Collection<TopicPartition> partitions, boolean changedOnly) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        for (TopicPartition p : partitions) {
            Long offset = done.get(p);
            if (offset != null && !(changedOnly && offset.equals(asked.get(p)))) {
                found.put(p, new OffsetAndMetadata(offset));
            }
        }
        return found;
    }

    private void tell(Map<TopicPartition, OffsetAndMetadata> offsets, Exception error, String where, double sent) {
        Map<String, Long> plain = new HashMap<>();
        offsets.forEach((p, offset) -> plain.put(p.topic() + "/" + p.partition(), offset.offset()));
        write("commit", "o", plain, "ok", error == null, "error", error == null ? null : error.getClass().getSimpleName(),
            "where", where, "sent", sent);
    }

    private void commitNow(String where, Collection<TopicPartition> partitions) {
        Map<TopicPartition, OffsetAndMetadata> offsets = offsets(partitions, false);
        if (!commits || offsets.isEmpty()) {
            return;
        }
        double sent = now();
        Exception failure = null;
        try {
            consumer.commitSync(offsets);
        } catch (RuntimeException error) {
            failure = error;
        }
        tell(offsets, failure, where, sent);
    }

    private void commitInBackground() {
        if (!commits || now() < nextCommit) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = offsets(new ArrayList<>(done.keySet()), true);
        if (offsets.isEmpty()) {
            return;
        }
        double sent = now();
        nextCommit = sent + options.get("commit_every_s").asDouble();
        offsets.forEach((p, offset) -> asked.put(p, offset.offset()));
        consumer.commitAsync(offsets, (told, error) -> {
            tell(offsets, error, "loop", sent);
            if (error != null) {
                asked.keySet().removeAll(offsets.keySet());
            }
        });
    }

    private void run() throws Exception {
        Thread listener = new Thread(this::listen);
        listener.setDaemon(true);
        listener.start();
        write("start", "pid", ProcessHandle.current().pid());
        List<String> topics = new ArrayList<>();
        options.get("topics").forEach(topic -> topics.add(topic.asText()));
        if (!topics.isEmpty()) {
            consumer.subscribe(topics, this);
        }
        while (running) {
            obey();
            if (running && holding) {
                Thread.sleep(20);
            } else if (running) {
                try {
                    take();
                    commitInBackground();
                } catch (RuntimeException error) {
                    write("raised", "error", error.getClass().getSimpleName(), "text", String.valueOf(error.getMessage()));
                }
            }
        }
    }

    private void take() {
        if (consumer.subscription().isEmpty()) {
            sleep(0.05);
            return;
        }
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
        for (TopicPartition p : records.partitions()) {
            List<ConsumerRecord<byte[], byte[]>> run = records.records(p);
            long last = run.get(run.size() - 1).offset();
            done.put(p, last + 1);
            write("read", "p", p.topic() + "/" + p.partition(), "o", List.of(run.get(0).offset(), last), "n", run.size());
        }
    }

    private void listen() {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                commands.add(JSON.readTree(line));
            }
        } catch (java.io.IOException error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(3); // whoever started it is gone
    }

    private void obey() {
        for (JsonNode command = commands.poll(); command != null; command = commands.poll()) {
            String what = command.get("do").asText();
            int number = command.get("n").asInt();
            try {
                write("done", "do", what, "n", number, "result", act(what, command));
            } catch (RuntimeException error) {
                write("done", "do", what, "n", number, "raised", error.toString());
            }
        }
    }

    private Object act(String what, JsonNode command) {
        switch (what) {
            case "commit" -> commitNow("command", new ArrayList<>(done.keySet()));
            case "hold" -> holding = true;
            case "go" -> holding = false;
            case "sleep" -> sleep(command.get("seconds").asDouble());
            case "slow" -> slow.put(command.get("callback").asText(), command.get("seconds").asDouble());
            case "unsubscribe" -> consumer.unsubscribe();
            case "assignment" -> {
                return new TreeSet<>(names(consumer.assignment()));
            }
            case "subscribe" -> {
                List<String> topics = new ArrayList<>();
                command.get("topics").forEach(topic -> topics.add(topic.asText()));
                consumer.subscribe(topics, this);
            }
            case "close" -> {
                running = false;
                commitNow("close", new ArrayList<>(done.keySet()));
                consumer.close();
                write("closed");
            }
            default -> throw new IllegalArgumentException("no command " + what);
        }
        return null;
    }
}
