// Owns: the Java client's own assignors, called with lines of JSON: a request on stdin, its answer on stdout. Run as a source
// file with the kafka-clients jar on the class path.
// Threads: one. Never: opens a connection, keeps an assignor for a second assignment.
//
//   {"assign": NAME, "cases": [{"members": [[id, instance id or null, subscription in hex]],
//                               "topics": [[name, [[rack or null of each replica] of each partition]]]}]}
//       -> [{member id: assignment in hex} or "why it failed" of each case]
//   {"user_data": NAME, "assignment": hex or null, "generation": n} -> what a member then tells in its subscription
//   {"subscription": hex} or {"assignment": hex} -> decoded and encoded
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

public class AssignorPeer {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; out.flush()) {
            out.println(MAPPER.writeValueAsString(answer(MAPPER.readTree(line))));
        }
    }

    private static Object answer(JsonNode request) {
        if (request.has("assign")) {
            List<Object> results = new ArrayList<>();
            for (JsonNode each : request.get("cases")) {
                results.add(assign(assignor(request.get("assign").asText()), each));
            }
            return results;
        }
        if (request.has("user_data")) {
            ConsumerPartitionAssignor assignor = assignor(request.get("user_data").asText());
            if (!request.get("assignment").isNull()) {
                assignor.onAssignment(ConsumerProtocol.deserializeAssignment(bytes(request.get("assignment"))),
                    new ConsumerGroupMetadata("group", request.get("generation").asInt(), "member", Optional.empty()));
            }
            return hex(assignor.subscriptionUserData(Set.of()));
        }
        if (request.has("subscription")) {
            return hex(ConsumerProtocol.serializeSubscription(
                ConsumerProtocol.deserializeSubscription(bytes(request.get("subscription")))));
        }
        return hex(ConsumerProtocol.serializeAssignment(
            ConsumerProtocol.deserializeAssignment(bytes(request.get("assignment")))));
    }

    private static Object assign(ConsumerPartitionAssignor assignor, JsonNode input) {
        try {
            Map<String, Subscription> members = new HashMap<>();
            for (JsonNode member : input.get("members")) {
                Subscription subscription = ConsumerProtocol.deserializeSubscription(bytes(member.get(2)));
                subscription.setGroupInstanceId(Optional.ofNullable(member.get(1).textValue()));
                members.put(member.get(0).textValue(), subscription);
            }
            Map<String, String> results = new HashMap<>();
            Map<String, Assignment> assignments =
                assignor.assign(cluster(input.get("topics")), new GroupSubscription(members)).groupAssignment();
            assignments.forEach((id, each) -> results.put(id, hex(ConsumerProtocol.serializeAssignment(each))));
            return results;
        } catch (RuntimeException e) {
            return e.toString();
        }
    }

    private static Cluster cluster(JsonNode topics) {
        List<Node> nodes = new ArrayList<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (JsonNode topic : topics) {
            int number = 0;
            for (JsonNode racks : topic.get(1)) {
                Node[] replicas = new Node[racks.size()];
                for (int i = 0; i < replicas.length; i++) {
                    replicas[i] = new Node(nodes.size(), "localhost", 9092, racks.get(i).textValue());
                    nodes.add(replicas[i]);
                }
                Node leader = replicas.length > 0 ? replicas[0] : Node.noNode();
                partitions.add(new PartitionInfo(topic.get(0).textValue(), number++, leader, replicas, replicas));
            }
        }
        return new Cluster("cluster", nodes, partitions, Set.of(), Set.of());
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static ByteBuffer bytes(JsonNode hex) {
        return ByteBuffer.wrap(HEX.parseHex(hex.textValue()));
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HEX.formatHex(bytes);
    }
}
