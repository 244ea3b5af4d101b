// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of ConsumerGroupDescribe, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct ConsumerGroupDescribeRequest {
  static constexpr const char* name = "ConsumerGroupDescribeRequest";
  static constexpr int16_t api_key = 69;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 1;
  static constexpr int16_t header_version(int16_t) { return 2; }
  static constexpr int16_t response_header_version(int16_t) { return 1; }

  std::vector<std::string> group_ids;
  bool include_authorized_operations = false;

  void encode(Writer& w, int16_t) const {
    w.write_strings(group_ids, true);
    w.write_bool(include_authorized_operations);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    r.read_strings(group_ids, true, "group_ids");
    include_authorized_operations = r.read_bool("include_authorized_operations");
    r.skip_tagged_fields("tagged_fields");
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("group_ids", group_ids);
    f("include_authorized_operations", include_authorized_operations);
  }
};

struct ConsumerGroupDescribeResponse_TopicPartitions {
  Uuid topic_id;
  std::string topic_name;
  std::vector<int32_t> partitions;

  void encode(Writer& w, int16_t) const {
    w.write_uuid(topic_id);
    w.write_string(topic_name, true);
    w.write_integers(partitions, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    topic_id = r.read_uuid("TopicPartitions.topic_id");
    r.read_string(topic_name, true, "TopicPartitions.topic_name");
    r.read_integers(partitions, true, "TopicPartitions.partitions");
    r.skip_tagged_fields("TopicPartitions.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 19;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic_id", topic_id);
    f("topic_name", topic_name);
    f("partitions", partitions);
  }
};

struct ConsumerGroupDescribeResponse_Assignment {
  std::vector<ConsumerGroupDescribeResponse_TopicPartitions> topic_partitions;

  void encode(Writer& w, int16_t version) const {
    w.write_structs(topic_partitions, version, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.read_structs(topic_partitions, version, true, "Assignment.topic_partitions");
    r.skip_tagged_fields("Assignment.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 2;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic_partitions", topic_partitions);
  }
};

struct ConsumerGroupDescribeResponse_Member {
  std::string member_id;
  NullableString instance_id;
  NullableString rack_id;
  int32_t member_epoch = 0;
  std::string client_id;
  std::string client_host;
  std::vector<std::string> subscribed_topic_names;
  NullableString subscribed_topic_regex;
  ConsumerGroupDescribeResponse_Assignment assignment;
  ConsumerGroupDescribeResponse_Assignment target_assignment;
  int8_t member_type = -1;

  void encode(Writer& w, int16_t version) const {
    w.write_string(member_id, true);
    w.write_nullable_string(instance_id, true, true);
    w.write_nullable_string(rack_id, true, true);
    w.write_int32(member_epoch);
    w.write_string(client_id, true);
    w.write_string(client_host, true);
    w.write_strings(subscribed_topic_names, true);
    w.write_nullable_string(subscribed_topic_regex, true, true);
    assignment.encode(w, version);
    target_assignment.encode(w, version);
    if (version >= 1) {
      w.write_int8(member_type);
    }
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.read_string(member_id, true, "Member.member_id");
    r.read_nullable_string(instance_id, true, true, "Member.instance_id");
    r.read_nullable_string(rack_id, true, true, "Member.rack_id");
    member_epoch = r.read_int32("Member.member_epoch");
    r.read_string(client_id, true, "Member.client_id");
    r.read_string(client_host, true, "Member.client_host");
    r.read_strings(subscribed_topic_names, true, "Member.subscribed_topic_names");
    r.read_nullable_string(subscribed_topic_regex, true, true, "Member.subscribed_topic_regex");
    assignment.decode(r, version);
    target_assignment.decode(r, version);
    if (version >= 1) {
      member_type = r.read_int8("Member.member_type");
    } else {
      member_type = -1;
    }
    r.skip_tagged_fields("Member.tagged_fields");
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 1 ? 17 : 16;
  }
  template <class F>
  void each_field(F&& f) {
    f("member_id", member_id);
    f("instance_id", instance_id);
    f("rack_id", rack_id);
    f("member_epoch", member_epoch);
    f("client_id", client_id);
    f("client_host", client_host);
    f("subscribed_topic_names", subscribed_topic_names);
    f("subscribed_topic_regex", subscribed_topic_regex);
    f("assignment", assignment);
    f("target_assignment", target_assignment);
    f("member_type", member_type);
  }
};

struct ConsumerGroupDescribeResponse_DescribedGroup {
  int16_t error_code = 0;
  NullableString error_message;
  std::string group_id;
  std::string group_state;
  int32_t group_epoch = 0;
  int32_t assignment_epoch = 0;
  std::string assignor_name;
  std::vector<ConsumerGroupDescribeResponse_Member> members;
  int32_t authorized_operations = INT32_MIN;

  void encode(Writer& w, int16_t version) const {
    w.write_int16(error_code);
    w.write_nullable_string(error_message, true, true);
    w.write_string(group_id, true);
    w.write_string(group_state, true);
    w.write_int32(group_epoch);
    w.write_int32(assignment_epoch);
    w.write_string(assignor_name, true);
    w.write_structs(members, version, true);
    w.write_int32(authorized_operations);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    error_code = r.read_int16("DescribedGroup.error_code");
    r.read_nullable_string(error_message, true, true, "DescribedGroup.error_message");
    r.read_string(group_id, true, "DescribedGroup.group_id");
    r.read_string(group_state, true, "DescribedGroup.group_state");
    group_epoch = r.read_int32("DescribedGroup.group_epoch");
    assignment_epoch = r.read_int32("DescribedGroup.assignment_epoch");
    r.read_string(assignor_name, true, "DescribedGroup.assignor_name");
    r.read_structs(members, version, true, "DescribedGroup.members");
    authorized_operations = r.read_int32("DescribedGroup.authorized_operations");
    r.skip_tagged_fields("DescribedGroup.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 20;
  }
  template <class F>
  void each_field(F&& f) {
    f("error_code", error_code);
    f("error_message", error_message);
    f("group_id", group_id);
    f("group_state", group_state);
    f("group_epoch", group_epoch);
    f("assignment_epoch", assignment_epoch);
    f("assignor_name", assignor_name);
    f("members", members);
    f("authorized_operations", authorized_operations);
  }
};

struct ConsumerGroupDescribeResponse {
  static constexpr const char* name = "ConsumerGroupDescribeResponse";
  static constexpr int16_t api_key = 69;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 1;
  static constexpr int16_t header_version(int16_t) { return 1; }

  int32_t throttle_time_ms = 0;
  std::vector<ConsumerGroupDescribeResponse_DescribedGroup> groups;

  void encode(Writer& w, int16_t version) const {
    w.write_int32(throttle_time_ms);
    w.write_structs(groups, version, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    throttle_time_ms = r.read_int32("throttle_time_ms");
    r.read_structs(groups, version, true, "groups");
    r.skip_tagged_fields("tagged_fields");
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("groups", groups);
  }
};

}  // namespace kc
