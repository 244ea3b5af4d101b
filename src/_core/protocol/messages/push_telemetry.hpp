// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of PushTelemetry, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct PushTelemetryRequest {
  static constexpr const char* name = "PushTelemetryRequest";
  static constexpr int16_t api_key = 72;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 0;
  static constexpr int16_t header_version(int16_t) { return 2; }
  static constexpr int16_t response_header_version(int16_t) { return 1; }

  Uuid client_instance_id;
  int32_t subscription_id = 0;
  bool terminating = false;
  int8_t compression_type = 0;
  std::string metrics;

  void encode(Writer& w, int16_t) const {
    w.write_uuid(client_instance_id);
    w.write_int32(subscription_id);
    w.write_bool(terminating);
    w.write_int8(compression_type);
    w.write_bytes(metrics, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    client_instance_id = r.read_uuid("client_instance_id");
    subscription_id = r.read_int32("subscription_id");
    terminating = r.read_bool("terminating");
    compression_type = r.read_int8("compression_type");
    r.read_bytes(metrics, true, "metrics");
    r.skip_tagged_fields("tagged_fields");
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("client_instance_id", client_instance_id);
    f("subscription_id", subscription_id);
    f("terminating", terminating);
    f("compression_type", compression_type);
    f("metrics", metrics);
  }
};

struct PushTelemetryResponse {
  static constexpr const char* name = "PushTelemetryResponse";
  static constexpr int16_t api_key = 72;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 0;
  static constexpr int16_t header_version(int16_t) { return 1; }

  int32_t throttle_time_ms = 0;
  int16_t error_code = 0;

  void encode(Writer& w, int16_t) const {
    w.write_int32(throttle_time_ms);
    w.write_int16(error_code);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    throttle_time_ms = r.read_int32("throttle_time_ms");
    error_code = r.read_int16("error_code");
    r.skip_tagged_fields("tagged_fields");
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("error_code", error_code);
  }
};

}  // namespace kc
