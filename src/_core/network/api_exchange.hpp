// Owns: the frame around a request and a response, and the ApiVersions exchange of a new connection.
// Threads: N (pure functions). Never: knows a socket.
#pragma once
#include <cctype>
#include <string>
#include <unordered_map>

#include "network/connection.hpp"
#include "protocol/wire.hpp"

namespace kc {

constexpr int16_t API_VERSIONS_KEY = 18;
constexpr int16_t API_VERSIONS_NEWEST = 3;
constexpr int16_t UNSUPPORTED_VERSION = 35;

// Kafka's name of an API, for log lines and error texts.
inline const char* api_name(int api_key) {
  switch (api_key) {
    case 0: return "Produce";
    case 1: return "Fetch";
    case 2: return "ListOffsets";
    case 3: return "Metadata";
    case 8: return "OffsetCommit";
    case 9: return "OffsetFetch";
    case 10: return "FindCoordinator";
    case 11: return "JoinGroup";
    case 12: return "Heartbeat";
    case 13: return "LeaveGroup";
    case 14: return "SyncGroup";
    case 17: return "SaslHandshake";
    case 18: return "ApiVersions";
    case 23: return "OffsetForLeaderEpoch";
    case 36: return "SaslAuthenticate";
    case 68: return "ConsumerGroupHeartbeat";
    case 69: return "ConsumerGroupDescribe";
    case 71: return "GetTelemetrySubscriptions";
    case 72: return "PushTelemetry";
    default: return "an unnamed API";
  }
}

inline void encode_header(Writer& w, int16_t api_key, int16_t version, int16_t header_version, int32_t correlation_id,
                          const std::string& client_id) {
  w.write_int16(api_key);
  w.write_int16(version);
  w.write_int32(correlation_id);
  if (header_version >= 1) w.write_string(client_id, false);
  if (header_version >= 2) w.write_uvarint(0);
}

inline bool encode_frame(Writer& w, const RequestBody& body, int16_t version, int32_t correlation_id,
                         const std::string& client_id) {
  w.clear();
  w.write_int32(0);
  encode_header(w, body.api_key(), version, body.request_header_version(version), correlation_id, client_id);
  body.encode(w, version);
  w.patch_int32(0, static_cast<int32_t>(w.size() - 4));
  return w.ok();
}

// Brokers accept letters, digits, '-' and '.' between letters or digits, and answer anything else with an error.
inline std::string software_word(const std::string& word) {
  std::string out;
  for (char ch : word) out.push_back(isalnum(static_cast<unsigned char>(ch)) || ch == '-' || ch == '.' ? ch : '-');
  while (!out.empty() && !isalnum(static_cast<unsigned char>(out.front()))) out.erase(0, 1);
  while (!out.empty() && !isalnum(static_cast<unsigned char>(out.back()))) out.pop_back();
  return out.empty() ? "unknown" : out;
}

inline void encode_api_versions(Writer& w, int16_t version, int32_t correlation_id, const NetworkConfig& config) {
  w.clear();
  w.write_int32(0);
  encode_header(w, API_VERSIONS_KEY, version, version >= 3 ? 2 : 1, correlation_id, config.client_id);
  if (version >= 3) {
    w.write_string(software_word(config.software_name), true);
    w.write_string(software_word(config.software_version), true);
    w.write_uvarint(0);
  }
  w.patch_int32(0, static_cast<int32_t>(w.size() - 4));
}

// Reads correlation id and header; the reader is then at the body.
inline int32_t decode_header(Reader& r, int16_t header_version) {
  int32_t correlation_id = r.read_int32("CorrelationId");
  if (header_version >= 1) r.skip_tagged_fields("ResponseHeader");
  return correlation_id;
}

// The error code comes first in every version; where it is not 0 the rest is not looked at: some brokers answer an
// unknown version with a body that does not parse.
inline int16_t decode_api_versions(Reader& r, int16_t version, std::unordered_map<int16_t, ApiRange>& out) {
  r.begin("ApiVersionsResponse", version);
  int16_t error = r.read_int16("ErrorCode");
  if (!r.ok() || error != 0) return error;
  bool flexible = version >= 3;
  int64_t count = r.read_array_length(6, flexible, false, "ApiKeys");
  for (int64_t i = 0; i < count && r.ok(); i++) {
    int16_t key = r.read_int16("ApiKey");
    ApiRange range;
    range.low = r.read_int16("MinVersion");
    range.high = r.read_int16("MaxVersion");
    if (flexible) r.skip_tagged_fields("ApiKeys");
    if (r.ok()) out[key] = range;
  }
  return 0;
}

}  // namespace kc
