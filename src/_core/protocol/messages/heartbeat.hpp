// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of Heartbeat, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct HeartbeatRequest {
  static constexpr const char* name = "HeartbeatRequest";
  static constexpr int16_t api_key = 12;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 4;
  static constexpr int16_t header_version(int16_t version) { return version >= 4 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 4 ? 1 : 0; }

  std::string group_id;
  int32_t generation_id = 0;
  std::string member_id;
  NullableString group_instance_id;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_string(group_id, flexible);
    w.write_int32(generation_id);
    w.write_string(member_id, flexible);
    if (version >= 3) {
      w.write_nullable_string(group_instance_id, flexible, true);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.begin(name, version);
    r.read_string(group_id, flexible, "group_id");
    generation_id = r.read_int32("generation_id");
    r.read_string(member_id, flexible, "member_id");
    if (version >= 3) {
      r.read_nullable_string(group_instance_id, flexible, true, "group_instance_id");
    } else {
      group_instance_id.set_null();
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 3 && !group_instance_id.is_null) return refuse_field(field, "group_instance_id");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("group_id", group_id);
    f("generation_id", generation_id);
    f("member_id", member_id);
    f("group_instance_id", group_instance_id);
  }
};

struct HeartbeatResponse {
  static constexpr const char* name = "HeartbeatResponse";
  static constexpr int16_t api_key = 12;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 4;
  static constexpr int16_t header_version(int16_t version) { return version >= 4 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  int16_t error_code = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    if (version >= 1) {
      w.write_int32(throttle_time_ms);
    }
    w.write_int16(error_code);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.begin(name, version);
    if (version >= 1) {
      throttle_time_ms = r.read_int32("throttle_time_ms");
    } else {
      throttle_time_ms = 0;
    }
    error_code = r.read_int16("error_code");
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
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
