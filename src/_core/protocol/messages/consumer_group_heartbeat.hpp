// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of ConsumerGroupHeartbeat, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct ConsumerGroupHeartbeatRequest_TopicPartitions {
  Uuid topic_id;
  std::vector<int32_t> partitions;

  void encode(Writer& w, int16_t) const {
    w.write_uuid(topic_id);
    w.write_integers(partitions, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    topic_id = r.read_uuid("TopicPartitions.topic_id");
    r.read_integers(partitions, true, "TopicPartitions.partitions");
    r.skip_tagged_fields("TopicPartitions.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 18;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic_id", topic_id);
    f("partitions", partitions);
  }
};

struct ConsumerGroupHeartbeatRequest {
  static constexpr const char* name = "ConsumerGroupHeartbeatRequest";
  static constexpr int16_t api_key = 68;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 1;
  static constexpr int16_t header_version(int16_t) { return 2; }
  static constexpr int16_t response_header_version(int16_t) { return 1; }

  std::string group_id;
  std::string member_id;
  int32_t member_epoch = 0;
  NullableString instance_id;
  NullableString rack_id;
  int32_t rebalance_timeout_ms = -1;
  Nullable<std::vector<std::string>> subscribed_topic_names;
  NullableString subscribed_topic_regex;
  NullableString server_assignor;
  Nullable<std::vector<ConsumerGroupHeartbeatRequest_TopicPartitions>> topic_partitions;

  void encode(Writer& w, int16_t version) const {
    w.write_string(group_id, true);
    w.write_string(member_id, true);
    w.write_int32(member_epoch);
    w.write_nullable_string(instance_id, true, true);
    w.write_nullable_string(rack_id, true, true);
    w.write_int32(rebalance_timeout_ms);
    w.write_strings(subscribed_topic_names, true, true);
    if (version >= 1) {
      w.write_nullable_string(subscribed_topic_regex, true, true);
    }
    w.write_nullable_string(server_assignor, true, true);
    w.write_structs(topic_partitions, version, true, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    r.read_string(group_id, true, "group_id");
    r.read_string(member_id, true, "member_id");
    member_epoch = r.read_int32("member_epoch");
    r.read_nullable_string(instance_id, true, true, "instance_id");
    r.read_nullable_string(rack_id, true, true, "rack_id");
    rebalance_timeout_ms = r.read_int32("rebalance_timeout_ms");
    r.read_strings(subscribed_topic_names, true, true, "subscribed_topic_names");
    if (version >= 1) {
      r.read_nullable_string(subscribed_topic_regex, true, true, "subscribed_topic_regex");
    } else {
      subscribed_topic_regex.set_null();
    }
    r.read_nullable_string(server_assignor, true, true, "server_assignor");
    r.read_structs(topic_partitions, version, true, true, "topic_partitions");
    r.skip_tagged_fields("tagged_fields");
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 1 && !subscribed_topic_regex.is_null) return refuse_field(field, "subscribed_topic_regex");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("group_id", group_id);
    f("member_id", member_id);
    f("member_epoch", member_epoch);
    f("instance_id", instance_id);
    f("rack_id", rack_id);
    f("rebalance_timeout_ms", rebalance_timeout_ms);
    f("subscribed_topic_names", subscribed_topic_names);
    f("subscribed_topic_regex", subscribed_topic_regex);
    f("server_assignor", server_assignor);
    f("topic_partitions", topic_partitions);
  }
};

struct ConsumerGroupHeartbeatResponse_TopicPartitions {
  Uuid topic_id;
  std::vector<int32_t> partitions;

  void encode(Writer& w, int16_t) const {
    w.write_uuid(topic_id);
    w.write_integers(partitions, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    topic_id = r.read_uuid("TopicPartitions.topic_id");
    r.read_integers(partitions, true, "TopicPartitions.partitions");
    r.skip_tagged_fields("TopicPartitions.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 18;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic_id", topic_id);
    f("partitions", partitions);
  }
};

struct ConsumerGroupHeartbeatResponse_Assignment {
  std::vector<ConsumerGroupHeartbeatResponse_TopicPartitions> topic_partitions;

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

struct ConsumerGroupHeartbeatResponse {
  static constexpr const char* name = "ConsumerGroupHeartbeatResponse";
  static constexpr int16_t api_key = 68;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 1;
  static constexpr int16_t header_version(int16_t) { return 1; }

  int32_t throttle_time_ms = 0;
  int16_t error_code = 0;
  NullableString error_message;
  NullableString member_id;
  int32_t member_epoch = 0;
  int32_t heartbeat_interval_ms = 0;
  Nullable<ConsumerGroupHeartbeatResponse_Assignment> assignment;

  void encode(Writer& w, int16_t version) const {
    w.write_int32(throttle_time_ms);
    w.write_int16(error_code);
    w.write_nullable_string(error_message, true, true);
    w.write_nullable_string(member_id, true, true);
    w.write_int32(member_epoch);
    w.write_int32(heartbeat_interval_ms);
    w.write_nullable_struct(assignment, version, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    throttle_time_ms = r.read_int32("throttle_time_ms");
    error_code = r.read_int16("error_code");
    r.read_nullable_string(error_message, true, true, "error_message");
    r.read_nullable_string(member_id, true, true, "member_id");
    member_epoch = r.read_int32("member_epoch");
    heartbeat_interval_ms = r.read_int32("heartbeat_interval_ms");
    r.read_nullable_struct(assignment, version, true, "assignment");
    r.skip_tagged_fields("tagged_fields");
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("error_code", error_code);
    f("error_message", error_message);
    f("member_id", member_id);
    f("member_epoch", member_epoch);
    f("heartbeat_interval_ms", heartbeat_interval_ms);
    f("assignment", assignment);
  }
};

}  // namespace kc
