// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of DescribeGroups, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct DescribeGroupsRequest {
  static constexpr const char* name = "DescribeGroupsRequest";
  static constexpr int16_t api_key = 15;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 6;
  static constexpr int16_t header_version(int16_t version) { return version >= 5 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 5 ? 1 : 0; }

  std::vector<std::string> groups;
  bool include_authorized_operations = false;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 5;
    w.write_strings(groups, flexible);
    if (version >= 3) {
      w.write_bool(include_authorized_operations);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 5;
    r.begin(name, version);
    r.read_strings(groups, flexible, "groups");
    if (version >= 3) {
      include_authorized_operations = r.read_bool("include_authorized_operations");
    } else {
      include_authorized_operations = false;
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 3 && include_authorized_operations) return refuse_field(field, "include_authorized_operations");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("groups", groups);
    f("include_authorized_operations", include_authorized_operations);
  }
};

struct DescribeGroupsResponse_DescribedGroupMember {
  std::string member_id;
  NullableString group_instance_id;
  std::string client_id;
  std::string client_host;
  std::string member_metadata;
  std::string member_assignment;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 5;
    w.write_string(member_id, flexible);
    if (version >= 4) {
      w.write_nullable_string(group_instance_id, flexible, true);
    }
    w.write_string(client_id, flexible);
    w.write_string(client_host, flexible);
    w.write_bytes(member_metadata, flexible);
    w.write_bytes(member_assignment, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 5;
    r.read_string(member_id, flexible, "DescribedGroupMember.member_id");
    if (version >= 4) {
      r.read_nullable_string(group_instance_id, flexible, true, "DescribedGroupMember.group_instance_id");
    } else {
      group_instance_id.set_null();
    }
    r.read_string(client_id, flexible, "DescribedGroupMember.client_id");
    r.read_string(client_host, flexible, "DescribedGroupMember.client_host");
    r.read_bytes(member_metadata, flexible, "DescribedGroupMember.member_metadata");
    r.read_bytes(member_assignment, flexible, "DescribedGroupMember.member_assignment");
    if (flexible) {
      r.skip_tagged_fields("DescribedGroupMember.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 5 ? 7 : version >= 4 ? 16 : 14;
  }
  template <class F>
  void each_field(F&& f) {
    f("member_id", member_id);
    f("group_instance_id", group_instance_id);
    f("client_id", client_id);
    f("client_host", client_host);
    f("member_metadata", member_metadata);
    f("member_assignment", member_assignment);
  }
};

struct DescribeGroupsResponse_DescribedGroup {
  int16_t error_code = 0;
  NullableString error_message;
  std::string group_id;
  std::string group_state;
  std::string protocol_type;
  std::string protocol_data;
  std::vector<DescribeGroupsResponse_DescribedGroupMember> members;
  int32_t authorized_operations = INT32_MIN;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 5;
    w.write_int16(error_code);
    if (version >= 6) {
      w.write_nullable_string(error_message, flexible, true);
    }
    w.write_string(group_id, flexible);
    w.write_string(group_state, flexible);
    w.write_string(protocol_type, flexible);
    w.write_string(protocol_data, flexible);
    w.write_structs(members, version, flexible);
    if (version >= 3) {
      w.write_int32(authorized_operations);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 5;
    error_code = r.read_int16("DescribedGroup.error_code");
    if (version >= 6) {
      r.read_nullable_string(error_message, flexible, true, "DescribedGroup.error_message");
    } else {
      error_message.set_null();
    }
    r.read_string(group_id, flexible, "DescribedGroup.group_id");
    r.read_string(group_state, flexible, "DescribedGroup.group_state");
    r.read_string(protocol_type, flexible, "DescribedGroup.protocol_type");
    r.read_string(protocol_data, flexible, "DescribedGroup.protocol_data");
    r.read_structs(members, version, flexible, "DescribedGroup.members");
    if (version >= 3) {
      authorized_operations = r.read_int32("DescribedGroup.authorized_operations");
    } else {
      authorized_operations = INT32_MIN;
    }
    if (flexible) {
      r.skip_tagged_fields("DescribedGroup.tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 6 && !error_message.is_null) return refuse_field(field, "DescribedGroup.error_message");
    if (version < 3 && authorized_operations != INT32_MIN) {
      return refuse_field(field, "DescribedGroup.authorized_operations");
    }
    return true;
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 6 ? 13 : version >= 5 ? 12 : version >= 3 ? 18 : 14;
  }
  template <class F>
  void each_field(F&& f) {
    f("error_code", error_code);
    f("error_message", error_message);
    f("group_id", group_id);
    f("group_state", group_state);
    f("protocol_type", protocol_type);
    f("protocol_data", protocol_data);
    f("members", members);
    f("authorized_operations", authorized_operations);
  }
};

struct DescribeGroupsResponse {
  static constexpr const char* name = "DescribeGroupsResponse";
  static constexpr int16_t api_key = 15;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 6;
  static constexpr int16_t header_version(int16_t version) { return version >= 5 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  std::vector<DescribeGroupsResponse_DescribedGroup> groups;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 5;
    if (version >= 1) {
      w.write_int32(throttle_time_ms);
    }
    w.write_structs(groups, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 5;
    r.begin(name, version);
    if (version >= 1) {
      throttle_time_ms = r.read_int32("throttle_time_ms");
    } else {
      throttle_time_ms = 0;
    }
    r.read_structs(groups, version, flexible, "groups");
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    for (const auto& element : groups) {
      if (!element.can_encode(version, field)) return false;
    }
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("groups", groups);
  }
};

}  // namespace kc
