// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of ConsumerProtocolSubscription, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct ConsumerProtocolSubscription_TopicPartition {
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

struct ConsumerProtocolSubscription {
  static constexpr const char* name = "ConsumerProtocolSubscription";
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 3;

  std::vector<std::string> topics;
  NullableString user_data;
  std::vector<ConsumerProtocolSubscription_TopicPartition> owned_partitions;
  int32_t generation_id = -1;
  NullableString rack_id;

  void encode(Writer& w, int16_t version) const {
    w.write_strings(topics, false);
    w.write_nullable_bytes(user_data, false, true);
    if (version >= 1) {
      w.write_structs(owned_partitions, version, false);
    }
    if (version >= 2) {
      w.write_int32(generation_id);
    }
    if (version >= 3) {
      w.write_nullable_string(rack_id, false, true);
    }
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    r.read_strings(topics, false, "topics");
    r.read_nullable_bytes(user_data, false, true, "user_data");
    if (version >= 1) {
      r.read_structs(owned_partitions, version, false, "owned_partitions");
    } else {
      owned_partitions.clear();
    }
    if (version >= 2) {
      generation_id = r.read_int32("generation_id");
    } else {
      generation_id = -1;
    }
    if (version >= 3) {
      r.read_nullable_string(rack_id, false, true, "rack_id");
    } else {
      rack_id.set_null();
    }
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("topics", topics);
    f("user_data", user_data);
    f("owned_partitions", owned_partitions);
    f("generation_id", generation_id);
    f("rack_id", rack_id);
  }
};

}  // namespace kc
