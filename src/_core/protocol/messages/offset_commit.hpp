// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of OffsetCommit, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct OffsetCommitRequest_OffsetCommitRequestPartition {
  int32_t partition_index = 0;
  int64_t committed_offset = 0;
  int32_t committed_leader_epoch = -1;
  NullableString committed_metadata{PRESENT};

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 8;
    w.write_int32(partition_index);
    w.write_int64(committed_offset);
    if (version >= 6) {
      w.write_int32(committed_leader_epoch);
    }
    w.write_nullable_string(committed_metadata, flexible, true);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 8;
    partition_index = r.read_int32("OffsetCommitRequestPartition.partition_index");
    committed_offset = r.read_int64("OffsetCommitRequestPartition.committed_offset");
    if (version >= 6) {
      committed_leader_epoch = r.read_int32("OffsetCommitRequestPartition.committed_leader_epoch");
    } else {
      committed_leader_epoch = -1;
    }
    r.read_nullable_string(committed_metadata, flexible, true, "OffsetCommitRequestPartition.committed_metadata");
    if (flexible) {
      r.skip_tagged_fields("OffsetCommitRequestPartition.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 6 ? 18 : 14;
  }
  template <class F>
  void each_field(F&& f) {
    f("partition_index", partition_index);
    f("committed_offset", committed_offset);
    f("committed_leader_epoch", committed_leader_epoch);
    f("committed_metadata", committed_metadata);
  }
};

struct OffsetCommitRequest_OffsetCommitRequestTopic {
  std::string name;
  Uuid topic_id;
  std::vector<OffsetCommitRequest_OffsetCommitRequestPartition> partitions;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 8;
    if (version <= 9) {
      w.write_string(name, flexible);
    }
    if (version >= 10) {
      w.write_uuid(topic_id);
    }
    w.write_structs(partitions, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 8;
    if (version <= 9) {
      r.read_string(name, flexible, "OffsetCommitRequestTopic.name");
    } else {
      name.clear();
    }
    if (version >= 10) {
      topic_id = r.read_uuid("OffsetCommitRequestTopic.topic_id");
    } else {
      topic_id = Uuid();
    }
    r.read_structs(partitions, version, flexible, "OffsetCommitRequestTopic.partitions");
    if (flexible) {
      r.skip_tagged_fields("OffsetCommitRequestTopic.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 10 ? 18 : version >= 8 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("topic_id", topic_id);
    f("partitions", partitions);
  }
};

struct OffsetCommitRequest {
  static constexpr const char* name = "OffsetCommitRequest";
  static constexpr int16_t api_key = 8;
  static constexpr int16_t min_version = 2;
  static constexpr int16_t max_version = 10;
  static constexpr int16_t header_version(int16_t version) { return version >= 8 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 8 ? 1 : 0; }

  std::string group_id;
  int32_t generation_id_or_member_epoch = -1;
  std::string member_id;
  NullableString group_instance_id;
  int64_t retention_time_ms = -1;
  std::vector<OffsetCommitRequest_OffsetCommitRequestTopic> topics;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 8;
    w.write_string(group_id, flexible);
    w.write_int32(generation_id_or_member_epoch);
    w.write_string(member_id, flexible);
    if (version >= 7) {
      w.write_nullable_string(group_instance_id, flexible, true);
    }
    if (version <= 4) {
      w.write_int64(retention_time_ms);
    }
    w.write_structs(topics, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 8;
    r.begin(name, version);
    r.read_string(group_id, flexible, "group_id");
    generation_id_or_member_epoch = r.read_int32("generation_id_or_member_epoch");
    r.read_string(member_id, flexible, "member_id");
    if (version >= 7) {
      r.read_nullable_string(group_instance_id, flexible, true, "group_instance_id");
    } else {
      group_instance_id.set_null();
    }
    if (version <= 4) {
      retention_time_ms = r.read_int64("retention_time_ms");
    } else {
      retention_time_ms = -1;
    }
    r.read_structs(topics, version, flexible, "topics");
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 7 && !group_instance_id.is_null) return refuse_field(field, "group_instance_id");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("group_id", group_id);
    f("generation_id_or_member_epoch", generation_id_or_member_epoch);
    f("member_id", member_id);
    f("group_instance_id", group_instance_id);
    f("retention_time_ms", retention_time_ms);
    f("topics", topics);
  }
};

struct OffsetCommitResponse_OffsetCommitResponsePartition {
  int32_t partition_index = 0;
  int16_t error_code = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 8;
    w.write_int32(partition_index);
    w.write_int16(error_code);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 8;
    partition_index = r.read_int32("OffsetCommitResponsePartition.partition_index");
    error_code = r.read_int16("OffsetCommitResponsePartition.error_code");
    if (flexible) {
      r.skip_tagged_fields("OffsetCommitResponsePartition.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 8 ? 7 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("partition_index", partition_index);
    f("error_code", error_code);
  }
};

struct OffsetCommitResponse_OffsetCommitResponseTopic {
  std::string name;
  Uuid topic_id;
  std::vector<OffsetCommitResponse_OffsetCommitResponsePartition> partitions;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 8;
    if (version <= 9) {
      w.write_string(name, flexible);
    }
    if (version >= 10) {
      w.write_uuid(topic_id);
    }
    w.write_structs(partitions, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 8;
    if (version <= 9) {
      r.read_string(name, flexible, "OffsetCommitResponseTopic.name");
    } else {
      name.clear();
    }
    if (version >= 10) {
      topic_id = r.read_uuid("OffsetCommitResponseTopic.topic_id");
    } else {
      topic_id = Uuid();
    }
    r.read_structs(partitions, version, flexible, "OffsetCommitResponseTopic.partitions");
    if (flexible) {
      r.skip_tagged_fields("OffsetCommitResponseTopic.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 10 ? 18 : version >= 8 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("topic_id", topic_id);
    f("partitions", partitions);
  }
};

struct OffsetCommitResponse {
  static constexpr const char* name = "OffsetCommitResponse";
  static constexpr int16_t api_key = 8;
  static constexpr int16_t min_version = 2;
  static constexpr int16_t max_version = 10;
  static constexpr int16_t header_version(int16_t version) { return version >= 8 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  std::vector<OffsetCommitResponse_OffsetCommitResponseTopic> topics;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 8;
    if (version >= 3) {
      w.write_int32(throttle_time_ms);
    }
    w.write_structs(topics, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 8;
    r.begin(name, version);
    if (version >= 3) {
      throttle_time_ms = r.read_int32("throttle_time_ms");
    } else {
      throttle_time_ms = 0;
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
    f("throttle_time_ms", throttle_time_ms);
    f("topics", topics);
  }
};

}  // namespace kc
