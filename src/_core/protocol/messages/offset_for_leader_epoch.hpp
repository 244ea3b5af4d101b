// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of OffsetForLeaderEpoch, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct OffsetForLeaderEpochRequest_OffsetForLeaderPartition {
  int32_t partition = 0;
  int32_t current_leader_epoch = -1;
  int32_t leader_epoch = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_int32(partition);
    w.write_int32(current_leader_epoch);
    w.write_int32(leader_epoch);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    partition = r.read_int32("OffsetForLeaderPartition.partition");
    current_leader_epoch = r.read_int32("OffsetForLeaderPartition.current_leader_epoch");
    leader_epoch = r.read_int32("OffsetForLeaderPartition.leader_epoch");
    if (flexible) {
      r.skip_tagged_fields("OffsetForLeaderPartition.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 4 ? 13 : 12;
  }
  template <class F>
  void each_field(F&& f) {
    f("partition", partition);
    f("current_leader_epoch", current_leader_epoch);
    f("leader_epoch", leader_epoch);
  }
};

struct OffsetForLeaderEpochRequest_OffsetForLeaderTopic {
  std::string topic;
  std::vector<OffsetForLeaderEpochRequest_OffsetForLeaderPartition> partitions;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_string(topic, flexible);
    w.write_structs(partitions, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.read_string(topic, flexible, "OffsetForLeaderTopic.topic");
    r.read_structs(partitions, version, flexible, "OffsetForLeaderTopic.partitions");
    if (flexible) {
      r.skip_tagged_fields("OffsetForLeaderTopic.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 4 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic", topic);
    f("partitions", partitions);
  }
};

struct OffsetForLeaderEpochRequest {
  static constexpr const char* name = "OffsetForLeaderEpochRequest";
  static constexpr int16_t api_key = 23;
  static constexpr int16_t min_version = 2;
  static constexpr int16_t max_version = 4;
  static constexpr int16_t header_version(int16_t version) { return version >= 4 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 4 ? 1 : 0; }

  int32_t replica_id = -2;
  std::vector<OffsetForLeaderEpochRequest_OffsetForLeaderTopic> topics;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    if (version >= 3) {
      w.write_int32(replica_id);
    }
    w.write_structs(topics, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.begin(name, version);
    if (version >= 3) {
      replica_id = r.read_int32("replica_id");
    } else {
      replica_id = -2;
    }
    r.read_structs(topics, version, flexible, "topics");
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("replica_id", replica_id);
    f("topics", topics);
  }
};

struct OffsetForLeaderEpochResponse_EpochEndOffset {
  int16_t error_code = 0;
  int32_t partition = 0;
  int32_t leader_epoch = -1;
  int64_t end_offset = -1;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_int16(error_code);
    w.write_int32(partition);
    w.write_int32(leader_epoch);
    w.write_int64(end_offset);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    error_code = r.read_int16("EpochEndOffset.error_code");
    partition = r.read_int32("EpochEndOffset.partition");
    leader_epoch = r.read_int32("EpochEndOffset.leader_epoch");
    end_offset = r.read_int64("EpochEndOffset.end_offset");
    if (flexible) {
      r.skip_tagged_fields("EpochEndOffset.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 4 ? 19 : 18;
  }
  template <class F>
  void each_field(F&& f) {
    f("error_code", error_code);
    f("partition", partition);
    f("leader_epoch", leader_epoch);
    f("end_offset", end_offset);
  }
};

struct OffsetForLeaderEpochResponse_OffsetForLeaderTopicResult {
  std::string topic;
  std::vector<OffsetForLeaderEpochResponse_EpochEndOffset> partitions;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_string(topic, flexible);
    w.write_structs(partitions, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.read_string(topic, flexible, "OffsetForLeaderTopicResult.topic");
    r.read_structs(partitions, version, flexible, "OffsetForLeaderTopicResult.partitions");
    if (flexible) {
      r.skip_tagged_fields("OffsetForLeaderTopicResult.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 4 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic", topic);
    f("partitions", partitions);
  }
};

struct OffsetForLeaderEpochResponse {
  static constexpr const char* name = "OffsetForLeaderEpochResponse";
  static constexpr int16_t api_key = 23;
  static constexpr int16_t min_version = 2;
  static constexpr int16_t max_version = 4;
  static constexpr int16_t header_version(int16_t version) { return version >= 4 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  std::vector<OffsetForLeaderEpochResponse_OffsetForLeaderTopicResult> topics;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_int32(throttle_time_ms);
    w.write_structs(topics, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.begin(name, version);
    throttle_time_ms = r.read_int32("throttle_time_ms");
    r.read_structs(topics, version, flexible, "topics");
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
    f("topics", topics);
  }
};

}  // namespace kc
