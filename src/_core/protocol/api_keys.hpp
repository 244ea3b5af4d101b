// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the numbers and names of the APIs this client speaks. Threads: any. Never: holds state.
#pragma once
#include <cstdint>

namespace kc {

enum ApiKey : int16_t {
  API_FETCH = 1,
  API_LIST_OFFSETS = 2,
  API_METADATA = 3,
  API_OFFSET_COMMIT = 8,
  API_OFFSET_FETCH = 9,
  API_FIND_COORDINATOR = 10,
  API_JOIN_GROUP = 11,
  API_HEARTBEAT = 12,
  API_LEAVE_GROUP = 13,
  API_SYNC_GROUP = 14,
  API_DESCRIBE_GROUPS = 15,
  API_SASL_HANDSHAKE = 17,
  API_API_VERSIONS = 18,
  API_OFFSET_FOR_LEADER_EPOCH = 23,
  API_DESCRIBE_CONFIGS = 32,
  API_SASL_AUTHENTICATE = 36,
  API_CONSUMER_GROUP_HEARTBEAT = 68,
  API_CONSUMER_GROUP_DESCRIBE = 69,
  API_GET_TELEMETRY_SUBSCRIPTIONS = 71,
  API_PUSH_TELEMETRY = 72,
};

inline const char* api_name(int16_t api_key) {
  switch (api_key) {
    case API_FETCH: return "Fetch";
    case API_LIST_OFFSETS: return "ListOffsets";
    case API_METADATA: return "Metadata";
    case API_OFFSET_COMMIT: return "OffsetCommit";
    case API_OFFSET_FETCH: return "OffsetFetch";
    case API_FIND_COORDINATOR: return "FindCoordinator";
    case API_JOIN_GROUP: return "JoinGroup";
    case API_HEARTBEAT: return "Heartbeat";
    case API_LEAVE_GROUP: return "LeaveGroup";
    case API_SYNC_GROUP: return "SyncGroup";
    case API_DESCRIBE_GROUPS: return "DescribeGroups";
    case API_SASL_HANDSHAKE: return "SaslHandshake";
    case API_API_VERSIONS: return "ApiVersions";
    case API_OFFSET_FOR_LEADER_EPOCH: return "OffsetForLeaderEpoch";
    case API_DESCRIBE_CONFIGS: return "DescribeConfigs";
    case API_SASL_AUTHENTICATE: return "SaslAuthenticate";
    case API_CONSUMER_GROUP_HEARTBEAT: return "ConsumerGroupHeartbeat";
    case API_CONSUMER_GROUP_DESCRIBE: return "ConsumerGroupDescribe";
    case API_GET_TELEMETRY_SUBSCRIPTIONS: return "GetTelemetrySubscriptions";
    case API_PUSH_TELEMETRY: return "PushTelemetry";
    default: return "unknown API";
  }
}

}  // namespace kc
