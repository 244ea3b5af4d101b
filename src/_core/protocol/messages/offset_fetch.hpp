// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of OffsetFetch, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct OffsetFetchRequest_OffsetFetchRequestTopic {
  std::string name;
  std::vector<int32_t> partition_indexes;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    w.write_string(name, flexible);
    w.write_integers(partition_indexes, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    r.read_string(name, flexible, "OffsetFetchRequestTopic.name");
    r.read_integers(partition_indexes, flexible, "OffsetFetchRequestTopic.partition_indexes");
    if (flexible) {
      r.skip_tagged_fields("OffsetFetchRequestTopic.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 6 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("partition_indexes", partition_indexes);
  }
};

struct OffsetFetchRequest_OffsetFetchRequestTopics {
  std::string name;
  Uuid topic_id;
  std::vector<int32_t> partition_indexes;

  void encode(Writer& w, int16_t version) const {
    if (version <= 9) {
      w.write_string(name, true);
    }
    if (version >= 10) {
      w.write_uuid(topic_id);
    }
    w.write_integers(partition_indexes, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    if (version <= 9) {
      r.read_string(name, true, "OffsetFetchRequestTopics.name");
    } else {
      name.clear();
    }
    if (version >= 10) {
      topic_id = r.read_uuid("OffsetFetchRequestTopics.topic_id");
    } else {
      topic_id = Uuid();
    }
    r.read_integers(partition_indexes, true, "OffsetFetchRequestTopics.partition_indexes");
    r.skip_tagged_fields("OffsetFetchRequestTopics.tagged_fields");
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 10 ? 18 : 3;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("topic_id", topic_id);
    f("partition_indexes", partition_indexes);
  }
};

struct OffsetFetchRequest_OffsetFetchRequestGroup {
  std::string group_id;
  NullableString member_id;
  int32_t member_epoch = -1;
  Nullable<std::vector<OffsetFetchRequest_OffsetFetchRequestTopics>> topics{PRESENT};

  void encode(Writer& w, int16_t version) const {
    w.write_string(group_id, true);
    if (version >= 9) {
      w.write_nullable_string(member_id, true, true);
      w.write_int32(member_epoch);
    }
    w.write_structs(topics, version, true, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.read_string(group_id, true, "OffsetFetchRequestGroup.group_id");
    if (version >= 9) {
      r.read_nullable_string(member_id, true, true, "OffsetFetchRequestGroup.member_id");
      member_epoch = r.read_int32("OffsetFetchRequestGroup.member_epoch");
    } else {
      member_id.set_null();
      member_epoch = -1;
    }
    r.read_structs(topics, version, true, true, "OffsetFetchRequestGroup.topics");
    r.skip_tagged_fields("OffsetFetchRequestGroup.tagged_fields");
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 9 ? 8 : 3;
  }
  template <class F>
  void each_field(F&& f) {
    f("group_id", group_id);
    f("member_id", member_id);
    f("member_epoch", member_epoch);
    f("topics", topics);
  }
};

struct OffsetFetchRequest {
  static constexpr const char* name = "OffsetFetchRequest";
  static constexpr int16_t api_key = 9;
  static constexpr int16_t min_version = 1;
  static constexpr int16_t max_version = 10;
  static constexpr int16_t header_version(int16_t version) { return version >= 6 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 6 ? 1 : 0; }

  std::string group_id;
  Nullable<std::vector<OffsetFetchRequest_OffsetFetchRequestTopic>> topics{PRESENT};
  std::vector<OffsetFetchRequest_OffsetFetchRequestGroup> groups;
  bool require_stable = false;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    if (version <= 7) {
      w.write_string(group_id, flexible);
      w.write_structs(topics, version, flexible, version >= 2);
    }
    if (version >= 8) {
      w.write_structs(groups, version, flexible);
    }
    if (version >= 7) {
      w.write_bool(require_stable);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    r.begin(name, version);
    if (version <= 7) {
      r.read_string(group_id, flexible, "group_id");
      r.read_structs(topics, version, flexible, version >= 2, "topics");
    } else {
      group_id.clear();
      topics.set_present().clear();
    }
    if (version >= 8) {
      r.read_structs(groups, version, flexible, "groups");
    } else {
      groups.clear();
    }
    if (version >= 7) {
      require_stable = r.read_bool("require_stable");
    } else {
      require_stable = false;
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version > 7 && !group_id.empty()) return refuse_field(field, "group_id");
    if (version > 7 && (topics.is_null || !topics.value.empty())) return refuse_field(field, "topics");
    if (version <= 7 && version < 2 && topics.is_null) return refuse_field(field, "topics");
    if (version < 8 && !groups.empty()) return refuse_field(field, "groups");
    if (version < 7 && require_stable) return refuse_field(field, "require_stable");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("group_id", group_id);
    f("topics", topics);
    f("groups", groups);
    f("require_stable", require_stable);
  }
};

struct OffsetFetchResponse_OffsetFetchResponsePartition {
  int32_t partition_index = 0;
  int64_t committed_offset = 0;
  int32_t committed_leader_epoch = -1;
  NullableString metadata{PRESENT};
  int16_t error_code = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    w.write_int32(partition_index);
    w.write_int64(committed_offset);
    if (version >= 5) {
      w.write_int32(committed_leader_epoch);
    }
    w.write_nullable_string(metadata, flexible, true);
    w.write_int16(error_code);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    partition_index = r.read_int32("OffsetFetchResponsePartition.partition_index");
    committed_offset = r.read_int64("OffsetFetchResponsePartition.committed_offset");
    if (version >= 5) {
      committed_leader_epoch = r.read_int32("OffsetFetchResponsePartition.committed_leader_epoch");
    } else {
      committed_leader_epoch = -1;
    }
    r.read_nullable_string(metadata, flexible, true, "OffsetFetchResponsePartition.metadata");
    error_code = r.read_int16("OffsetFetchResponsePartition.error_code");
    if (flexible) {
      r.skip_tagged_fields("OffsetFetchResponsePartition.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 5 ? 20 : 16;
  }
  template <class F>
  void each_field(F&& f) {
    f("partition_index", partition_index);
    f("committed_offset", committed_offset);
    f("committed_leader_epoch", committed_leader_epoch);
    f("metadata", metadata);
    f("error_code", error_code);
  }
};

struct OffsetFetchResponse_OffsetFetchResponseTopic {
  std::string name;
  std::vector<OffsetFetchResponse_OffsetFetchResponsePartition> partitions;

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
    r.read_string(name, flexible, "OffsetFetchResponseTopic.name");
    r.read_structs(partitions, version, flexible, "OffsetFetchResponseTopic.partitions");
    if (flexible) {
      r.skip_tagged_fields("OffsetFetchResponseTopic.tagged_fields");
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

struct OffsetFetchResponse_OffsetFetchResponsePartitions {
  int32_t partition_index = 0;
  int64_t committed_offset = 0;
  int32_t committed_leader_epoch = -1;
  NullableString metadata{PRESENT};
  int16_t error_code = 0;

  void encode(Writer& w, int16_t) const {
    w.write_int32(partition_index);
    w.write_int64(committed_offset);
    w.write_int32(committed_leader_epoch);
    w.write_nullable_string(metadata, true, true);
    w.write_int16(error_code);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    partition_index = r.read_int32("OffsetFetchResponsePartitions.partition_index");
    committed_offset = r.read_int64("OffsetFetchResponsePartitions.committed_offset");
    committed_leader_epoch = r.read_int32("OffsetFetchResponsePartitions.committed_leader_epoch");
    r.read_nullable_string(metadata, true, true, "OffsetFetchResponsePartitions.metadata");
    error_code = r.read_int16("OffsetFetchResponsePartitions.error_code");
    r.skip_tagged_fields("OffsetFetchResponsePartitions.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 20;
  }
  template <class F>
  void each_field(F&& f) {
    f("partition_index", partition_index);
    f("committed_offset", committed_offset);
    f("committed_leader_epoch", committed_leader_epoch);
    f("metadata", metadata);
    f("error_code", error_code);
  }
};

struct OffsetFetchResponse_OffsetFetchResponseTopics {
  std::string name;
  Uuid topic_id;
  std::vector<OffsetFetchResponse_OffsetFetchResponsePartitions> partitions;

  void encode(Writer& w, int16_t version) const {
    if (version <= 9) {
      w.write_string(name, true);
    }
    if (version >= 10) {
      w.write_uuid(topic_id);
    }
    w.write_structs(partitions, version, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    if (version <= 9) {
      r.read_string(name, true, "OffsetFetchResponseTopics.name");
    } else {
      name.clear();
    }
    if (version >= 10) {
      topic_id = r.read_uuid("OffsetFetchResponseTopics.topic_id");
    } else {
      topic_id = Uuid();
    }
    r.read_structs(partitions, version, true, "OffsetFetchResponseTopics.partitions");
    r.skip_tagged_fields("OffsetFetchResponseTopics.tagged_fields");
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 10 ? 18 : 3;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("topic_id", topic_id);
    f("partitions", partitions);
  }
};

struct OffsetFetchResponse_OffsetFetchResponseGroup {
  std::string group_id;
  std::vector<OffsetFetchResponse_OffsetFetchResponseTopics> topics;
  int16_t error_code = 0;

  void encode(Writer& w, int16_t version) const {
    w.write_string(group_id, true);
    w.write_structs(topics, version, true);
    w.write_int16(error_code);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t version) {
    r.read_string(group_id, true, "OffsetFetchResponseGroup.group_id");
    r.read_structs(topics, version, true, "OffsetFetchResponseGroup.topics");
    error_code = r.read_int16("OffsetFetchResponseGroup.error_code");
    r.skip_tagged_fields("OffsetFetchResponseGroup.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 5;
  }
  template <class F>
  void each_field(F&& f) {
    f("group_id", group_id);
    f("topics", topics);
    f("error_code", error_code);
  }
};

struct OffsetFetchResponse {
  static constexpr const char* name = "OffsetFetchResponse";
  static constexpr int16_t api_key = 9;
  static constexpr int16_t min_version = 1;
  static constexpr int16_t max_version = 10;
  static constexpr int16_t header_version(int16_t version) { return version >= 6 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  std::vector<OffsetFetchResponse_OffsetFetchResponseTopic> topics;
  int16_t error_code = 0;
  std::vector<OffsetFetchResponse_OffsetFetchResponseGroup> groups;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 6;
    if (version >= 3) {
      w.write_int32(throttle_time_ms);
    }
    if (version <= 7) {
      w.write_structs(topics, version, flexible);
    }
    if (version >= 2 && version <= 7) {
      w.write_int16(error_code);
    }
    if (version >= 8) {
      w.write_structs(groups, version, flexible);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 6;
    r.begin(name, version);
    if (version >= 3) {
      throttle_time_ms = r.read_int32("throttle_time_ms");
    } else {
      throttle_time_ms = 0;
    }
    if (version <= 7) {
      r.read_structs(topics, version, flexible, "topics");
    } else {
      topics.clear();
    }
    if (version >= 2 && version <= 7) {
      error_code = r.read_int16("error_code");
    } else {
      error_code = 0;
    }
    if (version >= 8) {
      r.read_structs(groups, version, flexible, "groups");
    } else {
      groups.clear();
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version > 7 && !topics.empty()) return refuse_field(field, "topics");
    if (version < 8 && !groups.empty()) return refuse_field(field, "groups");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("topics", topics);
    f("error_code", error_code);
    f("groups", groups);
  }
};

}  // namespace kc
