// Owns: a Java consumer that is a member of a group for some seconds from its first partition on (a busy machine may
// take long to get there; after a minute without any it gives up). Threads: its own process.
// Never: commits, closes without leaving.
//
// Arguments: bootstrap servers, group, topic, seconds, further properties as name=value.
// Writes one line at its end: the largest number of partitions at one time, and the number of records read.

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class GroupMember {
    public static void main(String[] args) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("group.id", args[1]);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        for (int i = 4; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        long seconds = Long.parseLong(args[3]) * 1_000_000_000L;
        long end = System.nanoTime() + 60_000_000_000L;
        int most = 0;
        long records = 0;
        ByteArrayDeserializer raw = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, raw, raw)) {
            consumer.subscribe(List.of(args[2]));
            while (System.nanoTime() < end) {
                records += consumer.poll(Duration.ofMillis(100)).count();
                if (most == 0 && !consumer.assignment().isEmpty()) {
                    end = System.nanoTime() + seconds;
                }
                most = Math.max(most, consumer.assignment().size());
            }
        }
        System.out.println(most + " " + records);
    }
}
