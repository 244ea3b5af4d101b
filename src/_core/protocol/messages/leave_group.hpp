// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of LeaveGroup, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct LeaveGroupRequest_MemberIdentity {
  std::string member_id;
  NullableString group_instance_id;
  NullableString reason;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_string(member_id, flexible);
    w.write_nullable_string(group_instance_id, flexible, true);
    if (version >= 5) {
      w.write_nullable_string(reason, flexible, true);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.read_string(member_id, flexible, "MemberIdentity.member_id");
    r.read_nullable_string(group_instance_id, flexible, true, "MemberIdentity.group_instance_id");
    if (version >= 5) {
      r.read_nullable_string(reason, flexible, true, "MemberIdentity.reason");
    } else {
      reason.set_null();
    }
    if (flexible) {
      r.skip_tagged_fields("MemberIdentity.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 5 ? 4 : version >= 4 ? 3 : 4;
  }
  template <class F>
  void each_field(F&& f) {
    f("member_id", member_id);
    f("group_instance_id", group_instance_id);
    f("reason", reason);
  }
};

struct LeaveGroupRequest {
  static constexpr const char* name = "LeaveGroupRequest";
  static constexpr int16_t api_key = 13;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 5;
  static constexpr int16_t header_version(int16_t version) { return version >= 4 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 4 ? 1 : 0; }

  std::string group_id;
  std::string member_id;
  std::vector<LeaveGroupRequest_MemberIdentity> members;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_string(group_id, flexible);
    if (version <= 2) {
      w.write_string(member_id, flexible);
    }
    if (version >= 3) {
      w.write_structs(members, version, flexible);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.begin(name, version);
    r.read_string(group_id, flexible, "group_id");
    if (version <= 2) {
      r.read_string(member_id, flexible, "member_id");
    } else {
      member_id.clear();
    }
    if (version >= 3) {
      r.read_structs(members, version, flexible, "members");
    } else {
      members.clear();
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version > 2 && !member_id.empty()) return refuse_field(field, "member_id");
    if (version < 3 && !members.empty()) return refuse_field(field, "members");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("group_id", group_id);
    f("member_id", member_id);
    f("members", members);
  }
};

struct LeaveGroupResponse_MemberResponse {
  std::string member_id;
  NullableString group_instance_id{PRESENT};
  int16_t error_code = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_string(member_id, flexible);
    w.write_nullable_string(group_instance_id, flexible, true);
    w.write_int16(error_code);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.read_string(member_id, flexible, "MemberResponse.member_id");
    r.read_nullable_string(group_instance_id, flexible, true, "MemberResponse.group_instance_id");
    error_code = r.read_int16("MemberResponse.error_code");
    if (flexible) {
      r.skip_tagged_fields("MemberResponse.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 4 ? 5 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("member_id", member_id);
    f("group_instance_id", group_instance_id);
    f("error_code", error_code);
  }
};

struct LeaveGroupResponse {
  static constexpr const char* name = "LeaveGroupResponse";
  static constexpr int16_t api_key = 13;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 5;
  static constexpr int16_t header_version(int16_t version) { return version >= 4 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  int16_t error_code = 0;
  std::vector<LeaveGroupResponse_MemberResponse> members;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    if (version >= 1) {
      w.write_int32(throttle_time_ms);
    }
    w.write_int16(error_code);
    if (version >= 3) {
      w.write_structs(members, version, flexible);
    }
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
    if (version >= 3) {
      r.read_structs(members, version, flexible, "members");
    } else {
      members.clear();
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 3 && !members.empty()) return refuse_field(field, "members");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("error_code", error_code);
    f("members", members);
  }
};

}  // namespace kc
