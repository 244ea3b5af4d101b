// Owns: the list of the Java consumer's properties: name, tab, default ("" for none), tab, documentation, one a line.
// Thread: main. Never: lists a property that begins with "internal.".
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.config.ConfigDef;

public final class ConfigPeer {
    public static void main(String[] args) {
        for (ConfigDef.ConfigKey key : ConsumerConfig.configDef().configKeys().values()) {
            if (key.name.startsWith("internal.")) continue;
            Object value = key.hasDefault() ? key.defaultValue : null;
            String text = value == null ? "" : ConfigDef.convertToString(value, key.type).replace("class ", "");
            System.out.println(key.name + "\t" + text + "\t" + key.documentation.replaceAll("\\s+", " "));
        }
    }
}
