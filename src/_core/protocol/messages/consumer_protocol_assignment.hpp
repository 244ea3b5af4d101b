// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of ConsumerProtocolAssignment, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct ConsumerProtocolAssignment_TopicPartition {
  std::string topic;
  std::vector<int32_t> partitions;

  void encode(Writer& w, int16_t) const {
    w.write_string(topic, false);
    w.write_integers(partitions, false);
  }
  void decode(Reader& r, int16_t) {
    r.read_string(topic, false, "TopicPartition.topic");
    r.read_integers(partitions, false, "TopicPartition.partitions");
  }
  static constexpr size_t min_size(int16_t) {
    return 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic", topic);
    f("partitions", partitions);
  }
};

struct ConsumerProtocolAssignment {
  static constexpr const char* name = "ConsumerProtocolAssignment";
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 3;

  std::vector<ConsumerProtocolAssignment_TopicPartition> assigned_partitions;
  NullableString user_data;

  void encode(Writer& w, int16_t version) const {
    w.write_structs(assigned_partitions, version, false);
    w.write_nullable_bytes(user_data, false, true);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    r.read_structs(assigned_partitions, version, false, "assigned_partitions");
    r.read_nullable_bytes(user_data, false, true, "user_data");
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("assigned_partitions", assigned_partitions);
    f("user_data", user_data);
  }
};

}  // namespace kc
