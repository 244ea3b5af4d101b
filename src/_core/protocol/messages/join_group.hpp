// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of JoinGroup, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct JoinGroupRequest_JoinGroupRequestProtocol {
  std::string name;
  std::string metadata;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    w.write_string(name, flexible);
    w.write_bytes(metadata, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    r.read_string(name, flexible, "JoinGroupRequestProtocol.name");
    r.read_bytes(metadata, flexible, "JoinGroupRequestProtocol.metadata");
    if (flexible) {
      r.skip_tagged_fields("JoinGroupRequestProtocol.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 6 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("metadata", metadata);
  }
};

struct JoinGroupRequest {
  static constexpr const char* name = "JoinGroupRequest";
  static constexpr int16_t api_key = 11;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 9;
  static constexpr int16_t header_version(int16_t version) { return version >= 6 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 6 ? 1 : 0; }

  std::string group_id;
  int32_t session_timeout_ms = 0;
  int32_t rebalance_timeout_ms = -1;
  std::string member_id;
  NullableString group_instance_id;
  std::string protocol_type;
  std::vector<JoinGroupRequest_JoinGroupRequestProtocol> protocols;
  NullableString reason;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    w.write_string(group_id, flexible);
    w.write_int32(session_timeout_ms);
    if (version >= 1) {
      w.write_int32(rebalance_timeout_ms);
    }
    w.write_string(member_id, flexible);
    if (version >= 5) {
      w.write_nullable_string(group_instance_id, flexible, true);
    }
    w.write_string(protocol_type, flexible);
    w.write_structs(protocols, version, flexible);
    if (version >= 8) {
      w.write_nullable_string(reason, flexible, true);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    r.begin(name, version);
    r.read_string(group_id, flexible, "group_id");
    session_timeout_ms = r.read_int32("session_timeout_ms");
    if (version >= 1) {
      rebalance_timeout_ms = r.read_int32("rebalance_timeout_ms");
    } else {
      rebalance_timeout_ms = -1;
    }
    r.read_string(member_id, flexible, "member_id");
    if (version >= 5) {
      r.read_nullable_string(group_instance_id, flexible, true, "group_instance_id");
    } else {
      group_instance_id.set_null();
    }
    r.read_string(protocol_type, flexible, "protocol_type");
    r.read_structs(protocols, version, flexible, "protocols");
    if (version >= 8) {
      r.read_nullable_string(reason, flexible, true, "reason");
    } else {
      reason.set_null();
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 5 && !group_instance_id.is_null) return refuse_field(field, "group_instance_id");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("group_id", group_id);
    f("session_timeout_ms", session_timeout_ms);
    f("rebalance_timeout_ms", rebalance_timeout_ms);
    f("member_id", member_id);
    f("group_instance_id", group_instance_id);
    f("protocol_type", protocol_type);
    f("protocols", protocols);
    f("reason", reason);
  }
};

struct JoinGroupResponse_JoinGroupResponseMember {
  std::string member_id;
  NullableString group_instance_id;
  std::string metadata;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    w.write_string(member_id, flexible);
    if (version >= 5) {
      w.write_nullable_string(group_instance_id, flexible, true);
    }
    w.write_bytes(metadata, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    r.read_string(member_id, flexible, "JoinGroupResponseMember.member_id");
    if (version >= 5) {
      r.read_nullable_string(group_instance_id, flexible, true, "JoinGroupResponseMember.group_instance_id");
    } else {
      group_instance_id.set_null();
    }
    r.read_bytes(metadata, flexible, "JoinGroupResponseMember.metadata");
    if (flexible) {
      r.skip_tagged_fields("JoinGroupResponseMember.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 6 ? 4 : version >= 5 ? 8 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("member_id", member_id);
    f("group_instance_id", group_instance_id);
    f("metadata", metadata);
  }
};

struct JoinGroupResponse {
  static constexpr const char* name = "JoinGroupResponse";
  static constexpr int16_t api_key = 11;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 9;
  static constexpr int16_t header_version(int16_t version) { return version >= 6 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  int16_t error_code = 0;
  int32_t generation_id = -1;
  NullableString protocol_type;
  NullableString protocol_name{PRESENT};
  std::string leader;
  bool skip_assignment = false;
  std::string member_id;
  std::vector<JoinGroupResponse_JoinGroupResponseMember> members;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    if (version >= 2) {
      w.write_int32(throttle_time_ms);
    }
    w.write_int16(error_code);
    w.write_int32(generation_id);
    if (version >= 7) {
      w.write_nullable_string(protocol_type, flexible, true);
    }
    w.write_nullable_string(protocol_name, flexible, version >= 7);
    w.write_string(leader, flexible);
    if (version >= 9) {
      w.write_bool(skip_assignment);
    }
    w.write_string(member_id, flexible);
    w.write_structs(members, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    r.begin(name, version);
    if (version >= 2) {
      throttle_time_ms = r.read_int32("throttle_time_ms");
    } else {
      throttle_time_ms = 0;
    }
    error_code = r.read_int16("error_code");
    generation_id = r.read_int32("generation_id");
    if (version >= 7) {
      r.read_nullable_string(protocol_type, flexible, true, "protocol_type");
    } else {
      protocol_type.set_null();
    }
    r.read_nullable_string(protocol_name, flexible, version >= 7, "protocol_name");
    r.read_string(leader, flexible, "leader");
    if (version >= 9) {
      skip_assignment = r.read_bool("skip_assignment");
    } else {
      skip_assignment = false;
    }
    r.read_string(member_id, flexible, "member_id");
    r.read_structs(members, version, flexible, "members");
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 7 && protocol_name.is_null) return refuse_field(field, "protocol_name");
    if (version < 9 && skip_assignment) return refuse_field(field, "skip_assignment");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("error_code", error_code);
    f("generation_id", generation_id);
    f("protocol_type", protocol_type);
    f("protocol_name", protocol_name);
    f("leader", leader);
    f("skip_assignment", skip_assignment);
    f("member_id", member_id);
    f("members", members);
  }
};

}  // namespace kc
