// Owns: setting how many bytes a second the consumers of one client id may read, as kafka-configs does.
// Threads: its own process. Never: touches another entity's quota.
//
// Arguments: bootstrap servers, client id, bytes a second (or "none" to lift the quota).

import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;

public final class ConsumerQuota {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        Double bytes = args[2].equals("none") ? null : Double.valueOf(args[2]);
        ClientQuotaEntity client = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, args[1]));
        ClientQuotaAlteration change = new ClientQuotaAlteration(
            client, List.of(new ClientQuotaAlteration.Op("consumer_byte_rate", bytes)));
        try (Admin admin = Admin.create(properties)) {
            admin.alterClientQuotas(List.of(change)).all().get();
        }
    }
}
