// Owns: the Java client's codecs, called with lines of text: "operation TAB message TAB version TAB payload" on stdin,
// "ok TAB payload" or "error TAB reason" on stdout. Run as a source file with the kafka-clients jar on the class path.
// Threads: one. Never: opens a connection.
//
//   json    hex -> the message as Kafka's own JSON converter prints it
//   bytes   JSON -> hex
//   older   JSON of the newest version -> hex of this one
//   tags    hex -> hex with unknown tagged fields added in every struct that may have them
//   again   hex -> hex, decoded and encoded
//   headers an API's number -> the versions of its request's and of its response's header
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.RawTaggedField;

public class ProtocolPeer {
    private static final String PACKAGE = "org.apache.kafka.common.message.";
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; out.flush()) {
            String[] words = line.split("\t", -1);
            try {
                out.println("ok\t" + answer(words[0], words[1], Short.parseShort(words[2]), words[3]));
            } catch (InvocationTargetException e) {
                out.println("error\t" + e.getCause());
            } catch (Exception e) {
                out.println("error\t" + e);
            }
        }
    }

    private static String answer(String operation, String name, short version, String payload) throws Exception {
        if (operation.equals("headers")) {
            ApiMessageType api = ApiMessageType.fromApiKey(Short.parseShort(payload));
            return api.requestHeaderVersion(version) + " " + api.responseHeaderVersion(version);
        }
        // Only requests, responses and their headers have a suffix in Java.
        String type = PACKAGE + name + (name.startsWith("ConsumerProtocol") ? "" : "Data");
        Class<?> data = Class.forName(type);
        Class<?> converter = Class.forName(type + "JsonConverter");
        Message message = (Message) data.getConstructor().newInstance();
        if (operation.equals("bytes") || operation.equals("older")) {
            short from = operation.equals("older") ? message.highestSupportedVersion() : version;
            Method read = converter.getMethod("read", JsonNode.class, short.class);
            return encode((Message) read.invoke(null, MAPPER.readTree(payload), from), version);
        }
        ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(payload));
        message.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalArgumentException(buffer.remaining() + " bytes left over");
        }
        switch (operation) {
            case "again":
                return encode(message, version);
            case "json":
                Method write = converter.getMethod("write", data, short.class);
                return MAPPER.writeValueAsString(write.invoke(null, message, version));
            case "tags":
                addUnknownTags(message);
                return encode(message, version);
            default:
                throw new IllegalArgumentException(operation);
        }
    }

    private static String encode(Message message, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HEX.formatHex(bytes);
    }

    private static void addUnknownTags(Message message) throws ReflectiveOperationException {
        message.unknownTaggedFields().add(new RawTaggedField(100, new byte[] {1, 2, 3}));
        message.unknownTaggedFields().add(new RawTaggedField(20000, new byte[0]));
        message.unknownTaggedFields().add(new RawTaggedField(Integer.MAX_VALUE - 1, new byte[200]));
        for (Field field : message.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || !field.trySetAccessible()) {
                continue;
            }
            Object value = field.get(message);
            if (value instanceof Message) {
                // One at its default may be absent from this version, and would have to be written were it given tags.
                if (!value.equals(value.getClass().getConstructor().newInstance())) {
                    addUnknownTags((Message) value);
                }
            } else if (value instanceof Collection) {
                for (Object element : (Collection<?>) value) {
                    if (element instanceof Message) {
                        addUnknownTags((Message) element);
                    }
                }
            }
        }
    }
}
