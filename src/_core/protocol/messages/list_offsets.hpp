// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of ListOffsets, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct ListOffsetsRequest_ListOffsetsPartition {
  int32_t partition_index = 0;
  int32_t current_leader_epoch = -1;
  int64_t timestamp = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    w.write_int32(partition_index);
    if (version >= 4) {
      w.write_int32(current_leader_epoch);
    }
    w.write_int64(timestamp);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    partition_index = r.read_int32("ListOffsetsPartition.partition_index");
    if (version >= 4) {
      current_leader_epoch = r.read_int32("ListOffsetsPartition.current_leader_epoch");
    } else {
      current_leader_epoch = -1;
    }
    timestamp = r.read_int64("ListOffsetsPartition.timestamp");
    if (flexible) {
      r.skip_tagged_fields("ListOffsetsPartition.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 6 ? 17 : version >= 4 ? 16 : 12;
  }
  template <class F>
  void each_field(F&& f) {
    f("partition_index", partition_index);
    f("current_leader_epoch", current_leader_epoch);
    f("timestamp", timestamp);
  }
};

struct ListOffsetsRequest_ListOffsetsTopic {
  std::string name;
  std::vector<ListOffsetsRequest_ListOffsetsPartition> partitions;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    w.write_string(name, flexible);
    w.write_structs(partitions, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    r.read_string(name, flexible, "ListOffsetsTopic.name");
    r.read_structs(partitions, version, flexible, "ListOffsetsTopic.partitions");
    if (flexible) {
      r.skip_tagged_fields("ListOffsetsTopic.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 6 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("partitions", partitions);
  }
};

struct ListOffsetsRequest {
  static constexpr const char* name = "ListOffsetsRequest";
  static constexpr int16_t api_key = 2;
  static constexpr int16_t min_version = 1;
  static constexpr int16_t max_version = 11;
  static constexpr int16_t header_version(int16_t version) { return version >= 6 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 6 ? 1 : 0; }

  int32_t replica_id = 0;
  int8_t isolation_level = 0;
  std::vector<ListOffsetsRequest_ListOffsetsTopic> topics;
  int32_t timeout_ms = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    w.write_int32(replica_id);
    if (version >= 2) {
      w.write_int8(isolation_level);
    }
    w.write_structs(topics, version, flexible);
    if (version >= 10) {
      w.write_int32(timeout_ms);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    r.begin(name, version);
    replica_id = r.read_int32("replica_id");
    if (version >= 2) {
      isolation_level = r.read_int8("isolation_level");
    } else {
      isolation_level = 0;
    }
    r.read_structs(topics, version, flexible, "topics");
    if (version >= 10) {
      timeout_ms = r.read_int32("timeout_ms");
    } else {
      timeout_ms = 0;
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 2 && isolation_level != 0) return refuse_field(field, "isolation_level");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("replica_id", replica_id);
    f("isolation_level", isolation_level);
    f("topics", topics);
    f("timeout_ms", timeout_ms);
  }
};

struct ListOffsetsResponse_ListOffsetsPartitionResponse {
  int32_t partition_index = 0;
  int16_t error_code = 0;
  int64_t timestamp = -1;
  int64_t offset = -1;
  int32_t leader_epoch = -1;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    w.write_int32(partition_index);
    w.write_int16(error_code);
    w.write_int64(timestamp);
    w.write_int64(offset);
    if (version >= 4) {
      w.write_int32(leader_epoch);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    partition_index = r.read_int32("ListOffsetsPartitionResponse.partition_index");
    error_code = r.read_int16("ListOffsetsPartitionResponse.error_code");
    timestamp = r.read_int64("ListOffsetsPartitionResponse.timestamp");
    offset = r.read_int64("ListOffsetsPartitionResponse.offset");
    if (version >= 4) {
      leader_epoch = r.read_int32("ListOffsetsPartitionResponse.leader_epoch");
    } else {
      leader_epoch = -1;
    }
    if (flexible) {
      r.skip_tagged_fields("ListOffsetsPartitionResponse.tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 4 && leader_epoch != -1) {
      return refuse_field(field, "ListOffsetsPartitionResponse.leader_epoch");
    }
    return true;
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 6 ? 27 : version >= 4 ? 26 : 22;
  }
  template <class F>
  void each_field(F&& f) {
    f("partition_index", partition_index);
    f("error_code", error_code);
    f("timestamp", timestamp);
    f("offset", offset);
    f("leader_epoch", leader_epoch);
  }
};

struct ListOffsetsResponse_ListOffsetsTopicResponse {
  std::string name;
  std::vector<ListOffsetsResponse_ListOffsetsPartitionResponse> partitions;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    w.write_string(name, flexible);
    w.write_structs(partitions, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    r.read_string(name, flexible, "ListOffsetsTopicResponse.name");
    r.read_structs(partitions, version, flexible, "ListOffsetsTopicResponse.partitions");
    if (flexible) {
      r.skip_tagged_fields("ListOffsetsTopicResponse.tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    for (const auto& element : partitions) {
      if (!element.can_encode(version, field)) return false;
    }
    return true;
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 6 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("partitions", partitions);
  }
};

struct ListOffsetsResponse {
  static constexpr const char* name = "ListOffsetsResponse";
  static constexpr int16_t api_key = 2;
  static constexpr int16_t min_version = 1;
  static constexpr int16_t max_version = 11;
  static constexpr int16_t header_version(int16_t version) { return version >= 6 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  std::vector<ListOffsetsResponse_ListOffsetsTopicResponse> topics;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    if (version >= 2) {
      w.write_int32(throttle_time_ms);
    }
    w.write_structs(topics, version, flexible);
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
    r.read_structs(topics, version, flexible, "topics");
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    for (const auto& element : topics) {
      if (!element.can_encode(version, field)) return false;
    }
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("topics", topics);
  }
};

}  // namespace kc
