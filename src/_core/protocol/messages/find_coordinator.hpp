// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of FindCoordinator, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct FindCoordinatorRequest {
  static constexpr const char* name = "FindCoordinatorRequest";
  static constexpr int16_t api_key = 10;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 6;
  static constexpr int16_t header_version(int16_t version) { return version >= 3 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 3 ? 1 : 0; }

  std::string key;
  int8_t key_type = 0;
  std::vector<std::string> coordinator_keys;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 3;
    if (version <= 3) {
      w.write_string(key, flexible);
    }
    if (version >= 1) {
      w.write_int8(key_type);
    }
    if (version >= 4) {
      w.write_strings(coordinator_keys, flexible);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 3;
    r.begin(name, version);
    if (version <= 3) {
      r.read_string(key, flexible, "key");
    } else {
      key.clear();
    }
    if (version >= 1) {
      key_type = r.read_int8("key_type");
    } else {
      key_type = 0;
    }
    if (version >= 4) {
      r.read_strings(coordinator_keys, flexible, "coordinator_keys");
    } else {
      coordinator_keys.clear();
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version > 3 && !key.empty()) return refuse_field(field, "key");
    if (version < 1 && key_type != 0) return refuse_field(field, "key_type");
    if (version < 4 && !coordinator_keys.empty()) return refuse_field(field, "coordinator_keys");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("key", key);
    f("key_type", key_type);
    f("coordinator_keys", coordinator_keys);
  }
};

struct FindCoordinatorResponse_Coordinator {
  std::string key;
  int32_t node_id = 0;
  std::string host;
  int32_t port = 0;
  int16_t error_code = 0;
  NullableString error_message{PRESENT};

  void encode(Writer& w, int16_t) const {
    w.write_string(key, true);
    w.write_int32(node_id);
    w.write_string(host, true);
    w.write_int32(port);
    w.write_int16(error_code);
    w.write_nullable_string(error_message, true, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    r.read_string(key, true, "Coordinator.key");
    node_id = r.read_int32("Coordinator.node_id");
    r.read_string(host, true, "Coordinator.host");
    port = r.read_int32("Coordinator.port");
    error_code = r.read_int16("Coordinator.error_code");
    r.read_nullable_string(error_message, true, true, "Coordinator.error_message");
    r.skip_tagged_fields("Coordinator.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 14;
  }
  template <class F>
  void each_field(F&& f) {
    f("key", key);
    f("node_id", node_id);
    f("host", host);
    f("port", port);
    f("error_code", error_code);
    f("error_message", error_message);
  }
};

struct FindCoordinatorResponse {
  static constexpr const char* name = "FindCoordinatorResponse";
  static constexpr int16_t api_key = 10;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 6;
  static constexpr int16_t header_version(int16_t version) { return version >= 3 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  int16_t error_code = 0;
  NullableString error_message{PRESENT};
  int32_t node_id = 0;
  std::string host;
  int32_t port = 0;
  std::vector<FindCoordinatorResponse_Coordinator> coordinators;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 3;
    if (version >= 1) {
      w.write_int32(throttle_time_ms);
    }
    if (version <= 3) {
      w.write_int16(error_code);
    }
    if (version >= 1 && version <= 3) {
      w.write_nullable_string(error_message, flexible, true);
    }
    if (version <= 3) {
      w.write_int32(node_id);
      w.write_string(host, flexible);
      w.write_int32(port);
    }
    if (version >= 4) {
      w.write_structs(coordinators, version, flexible);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 3;
    r.begin(name, version);
    if (version >= 1) {
      throttle_time_ms = r.read_int32("throttle_time_ms");
    } else {
      throttle_time_ms = 0;
    }
    if (version <= 3) {
      error_code = r.read_int16("error_code");
    } else {
      error_code = 0;
    }
    if (version >= 1 && version <= 3) {
      r.read_nullable_string(error_message, flexible, true, "error_message");
    } else {
      error_message.set_present().clear();
    }
    if (version <= 3) {
      node_id = r.read_int32("node_id");
      r.read_string(host, flexible, "host");
      port = r.read_int32("port");
    } else {
      node_id = 0;
      host.clear();
      port = 0;
    }
    if (version >= 4) {
      r.read_structs(coordinators, version, flexible, "coordinators");
    } else {
      coordinators.clear();
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version > 3 && error_code != 0) return refuse_field(field, "error_code");
    if (version > 3 && node_id != 0) return refuse_field(field, "node_id");
    if (version > 3 && !host.empty()) return refuse_field(field, "host");
    if (version > 3 && port != 0) return refuse_field(field, "port");
    if (version < 4 && !coordinators.empty()) return refuse_field(field, "coordinators");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("error_code", error_code);
    f("error_message", error_message);
    f("node_id", node_id);
    f("host", host);
    f("port", port);
    f("coordinators", coordinators);
  }
};

}  // namespace kc
