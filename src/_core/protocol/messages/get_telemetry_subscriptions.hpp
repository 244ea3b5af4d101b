// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of GetTelemetrySubscriptions, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct GetTelemetrySubscriptionsRequest {
  static constexpr const char* name = "GetTelemetrySubscriptionsRequest";
  static constexpr int16_t api_key = 71;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 0;
  static constexpr int16_t header_version(int16_t) { return 2; }
  static constexpr int16_t response_header_version(int16_t) { return 1; }

  Uuid client_instance_id;

  void encode(Writer& w, int16_t) const {
    w.write_uuid(client_instance_id);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    client_instance_id = r.read_uuid("client_instance_id");
    r.skip_tagged_fields("tagged_fields");
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("client_instance_id", client_instance_id);
  }
};

struct GetTelemetrySubscriptionsResponse {
  static constexpr const char* name = "GetTelemetrySubscriptionsResponse";
  static constexpr int16_t api_key = 71;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 0;
  static constexpr int16_t header_version(int16_t) { return 1; }

  int32_t throttle_time_ms = 0;
  int16_t error_code = 0;
  Uuid client_instance_id;
  int32_t subscription_id = 0;
  std::vector<int8_t> accepted_compression_types;
  int32_t push_interval_ms = 0;
  int32_t telemetry_max_bytes = 0;
  bool delta_temporality = false;
  std::vector<std::string> requested_metrics;

  void encode(Writer& w, int16_t) const {
    w.write_int32(throttle_time_ms);
    w.write_int16(error_code);
    w.write_uuid(client_instance_id);
    w.write_int32(subscription_id);
    w.write_integers(accepted_compression_types, true);
    w.write_int32(push_interval_ms);
    w.write_int32(telemetry_max_bytes);
    w.write_bool(delta_temporality);
    w.write_strings(requested_metrics, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    throttle_time_ms = r.read_int32("throttle_time_ms");
    error_code = r.read_int16("error_code");
    client_instance_id = r.read_uuid("client_instance_id");
    subscription_id = r.read_int32("subscription_id");
    r.read_integers(accepted_compression_types, true, "accepted_compression_types");
    push_interval_ms = r.read_int32("push_interval_ms");
    telemetry_max_bytes = r.read_int32("telemetry_max_bytes");
    delta_temporality = r.read_bool("delta_temporality");
    r.read_strings(requested_metrics, true, "requested_metrics");
    r.skip_tagged_fields("tagged_fields");
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("error_code", error_code);
    f("client_instance_id", client_instance_id);
    f("subscription_id", subscription_id);
    f("accepted_compression_types", accepted_compression_types);
    f("push_interval_ms", push_interval_ms);
    f("telemetry_max_bytes", telemetry_max_bytes);
    f("delta_temporality", delta_temporality);
    f("requested_metrics", requested_metrics);
  }
};

}  // namespace kc
