// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of Metadata, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct MetadataRequest_MetadataRequestTopic {
  Uuid topic_id;
  NullableString name{PRESENT};

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 9;
    if (version >= 10) {
      w.write_uuid(topic_id);
    }
    w.write_nullable_string(name, flexible, version >= 10);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 9;
    if (version >= 10) {
      topic_id = r.read_uuid("MetadataRequestTopic.topic_id");
    } else {
      topic_id = Uuid();
    }
    r.read_nullable_string(name, flexible, version >= 10, "MetadataRequestTopic.name");
    if (flexible) {
      r.skip_tagged_fields("MetadataRequestTopic.tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 10 && name.is_null) return refuse_field(field, "MetadataRequestTopic.name");
    return true;
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 10 ? 18 : 2;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic_id", topic_id);
    f("name", name);
  }
};

struct MetadataRequest {
  static constexpr const char* name = "MetadataRequest";
  static constexpr int16_t api_key = 3;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 13;
  static constexpr int16_t header_version(int16_t version) { return version >= 9 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 9 ? 1 : 0; }

  Nullable<std::vector<MetadataRequest_MetadataRequestTopic>> topics{PRESENT};
  bool allow_auto_topic_creation = true;
  bool include_cluster_authorized_operations = false;
  bool include_topic_authorized_operations = false;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 9;
    w.write_structs(topics, version, flexible, version >= 1);
    if (version >= 4) {
      w.write_bool(allow_auto_topic_creation);
    }
    if (version >= 8 && version <= 10) {
      w.write_bool(include_cluster_authorized_operations);
    }
    if (version >= 8) {
      w.write_bool(include_topic_authorized_operations);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 9;
    r.begin(name, version);
    r.read_structs(topics, version, flexible, version >= 1, "topics");
    if (version >= 4) {
      allow_auto_topic_creation = r.read_bool("allow_auto_topic_creation");
    } else {
      allow_auto_topic_creation = true;
    }
    if (version >= 8 && version <= 10) {
      include_cluster_authorized_operations = r.read_bool("include_cluster_authorized_operations");
    } else {
      include_cluster_authorized_operations = false;
    }
    if (version >= 8) {
      include_topic_authorized_operations = r.read_bool("include_topic_authorized_operations");
    } else {
      include_topic_authorized_operations = false;
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 1 && topics.is_null) return refuse_field(field, "topics");
    for (const auto& element : topics.value) {
      if (!element.can_encode(version, field)) return false;
    }
    if (version < 4 && !allow_auto_topic_creation) return refuse_field(field, "allow_auto_topic_creation");
    if (!(version >= 8 && version <= 10) && include_cluster_authorized_operations) {
      return refuse_field(field, "include_cluster_authorized_operations");
    }
    if (version < 8 && include_topic_authorized_operations) {
      return refuse_field(field, "include_topic_authorized_operations");
    }
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("topics", topics);
    f("allow_auto_topic_creation", allow_auto_topic_creation);
    f("include_cluster_authorized_operations", include_cluster_authorized_operations);
    f("include_topic_authorized_operations", include_topic_authorized_operations);
  }
};

struct MetadataResponse_MetadataResponseBroker {
  int32_t node_id = 0;
  std::string host;
  int32_t port = 0;
  NullableString rack;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 9;
    w.write_int32(node_id);
    w.write_string(host, flexible);
    w.write_int32(port);
    if (version >= 1) {
      w.write_nullable_string(rack, flexible, true);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 9;
    node_id = r.read_int32("MetadataResponseBroker.node_id");
    r.read_string(host, flexible, "MetadataResponseBroker.host");
    port = r.read_int32("MetadataResponseBroker.port");
    if (version >= 1) {
      r.read_nullable_string(rack, flexible, true, "MetadataResponseBroker.rack");
    } else {
      rack.set_null();
    }
    if (flexible) {
      r.skip_tagged_fields("MetadataResponseBroker.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 9 ? 11 : version >= 1 ? 12 : 10;
  }
  template <class F>
  void each_field(F&& f) {
    f("node_id", node_id);
    f("host", host);
    f("port", port);
    f("rack", rack);
  }
};

struct MetadataResponse_MetadataResponsePartition {
  int16_t error_code = 0;
  int32_t partition_index = 0;
  int32_t leader_id = 0;
  int32_t leader_epoch = -1;
  Int32Array replica_nodes;
  Int32Array isr_nodes;
  Int32Array offline_replicas;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 9;
    w.write_int16(error_code);
    w.write_int32(partition_index);
    w.write_int32(leader_id);
    if (version >= 7) {
      w.write_int32(leader_epoch);
    }
    w.write_integers(replica_nodes, flexible);
    w.write_integers(isr_nodes, flexible);
    if (version >= 5) {
      w.write_integers(offline_replicas, flexible);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 9;
    error_code = r.read_int16("MetadataResponsePartition.error_code");
    partition_index = r.read_int32("MetadataResponsePartition.partition_index");
    leader_id = r.read_int32("MetadataResponsePartition.leader_id");
    if (version >= 7) {
      leader_epoch = r.read_int32("MetadataResponsePartition.leader_epoch");
    } else {
      leader_epoch = -1;
    }
    r.read_integers(replica_nodes, flexible, "MetadataResponsePartition.replica_nodes");
    r.read_integers(isr_nodes, flexible, "MetadataResponsePartition.isr_nodes");
    if (version >= 5) {
      r.read_integers(offline_replicas, flexible, "MetadataResponsePartition.offline_replicas");
    } else {
      offline_replicas.clear();
    }
    if (flexible) {
      r.skip_tagged_fields("MetadataResponsePartition.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 9 ? 18 : version >= 7 ? 26 : version >= 5 ? 22 : 18;
  }
  template <class F>
  void each_field(F&& f) {
    f("error_code", error_code);
    f("partition_index", partition_index);
    f("leader_id", leader_id);
    f("leader_epoch", leader_epoch);
    f("replica_nodes", replica_nodes);
    f("isr_nodes", isr_nodes);
    f("offline_replicas", offline_replicas);
  }
};

struct MetadataResponse_MetadataResponseTopic {
  int16_t error_code = 0;
  NullableString name{PRESENT};
  Uuid topic_id;
  bool is_internal = false;
  std::vector<MetadataResponse_MetadataResponsePartition> partitions;
  int32_t topic_authorized_operations = INT32_MIN;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 9;
    w.write_int16(error_code);
    w.write_nullable_string(name, flexible, version >= 12);
    if (version >= 10) {
      w.write_uuid(topic_id);
    }
    if (version >= 1) {
      w.write_bool(is_internal);
    }
    w.write_structs(partitions, version, flexible);
    if (version >= 8) {
      w.write_int32(topic_authorized_operations);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 9;
    error_code = r.read_int16("MetadataResponseTopic.error_code");
    r.read_nullable_string(name, flexible, version >= 12, "MetadataResponseTopic.name");
    if (version >= 10) {
      topic_id = r.read_uuid("MetadataResponseTopic.topic_id");
    } else {
      topic_id = Uuid();
    }
    if (version >= 1) {
      is_internal = r.read_bool("MetadataResponseTopic.is_internal");
    } else {
      is_internal = false;
    }
    r.read_structs(partitions, version, flexible, "MetadataResponseTopic.partitions", MAX_PARTITIONS);
    if (version >= 8) {
      topic_authorized_operations = r.read_int32("MetadataResponseTopic.topic_authorized_operations");
    } else {
      topic_authorized_operations = INT32_MIN;
    }
    if (flexible) {
      r.skip_tagged_fields("MetadataResponseTopic.tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 12 && name.is_null) return refuse_field(field, "MetadataResponseTopic.name");
    if (version < 8 && topic_authorized_operations != INT32_MIN) {
      return refuse_field(field, "MetadataResponseTopic.topic_authorized_operations");
    }
    return true;
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 10 ? 26 : version >= 9 ? 10 : version >= 8 ? 13 : version >= 1 ? 9 : 8;
  }
  template <class F>
  void each_field(F&& f) {
    f("error_code", error_code);
    f("name", name);
    f("topic_id", topic_id);
    f("is_internal", is_internal);
    f("partitions", partitions);
    f("topic_authorized_operations", topic_authorized_operations);
  }
};

struct MetadataResponse {
  static constexpr const char* name = "MetadataResponse";
  static constexpr int16_t api_key = 3;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 13;
  static constexpr int16_t header_version(int16_t version) { return version >= 9 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  std::vector<MetadataResponse_MetadataResponseBroker> brokers;
  NullableString cluster_id;
  int32_t controller_id = -1;
  std::vector<MetadataResponse_MetadataResponseTopic> topics;
  int32_t cluster_authorized_operations = INT32_MIN;
  int16_t error_code = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 9;
    if (version >= 3) {
      w.write_int32(throttle_time_ms);
    }
    w.write_structs(brokers, version, flexible);
    if (version >= 2) {
      w.write_nullable_string(cluster_id, flexible, true);
    }
    if (version >= 1) {
      w.write_int32(controller_id);
    }
    w.write_structs(topics, version, flexible);
    if (version >= 8 && version <= 10) {
      w.write_int32(cluster_authorized_operations);
    }
    if (version >= 13) {
      w.write_int16(error_code);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 9;
    r.begin(name, version);
    if (version >= 3) {
      throttle_time_ms = r.read_int32("throttle_time_ms");
    } else {
      throttle_time_ms = 0;
    }
    r.read_structs(brokers, version, flexible, "brokers", MAX_BROKERS);
    if (version >= 2) {
      r.read_nullable_string(cluster_id, flexible, true, "cluster_id");
    } else {
      cluster_id.set_null();
    }
    if (version >= 1) {
      controller_id = r.read_int32("controller_id");
    } else {
      controller_id = -1;
    }
    r.read_structs(topics, version, flexible, "topics", MAX_TOPICS);
    if (version >= 8 && version <= 10) {
      cluster_authorized_operations = r.read_int32("cluster_authorized_operations");
    } else {
      cluster_authorized_operations = INT32_MIN;
    }
    if (version >= 13) {
      error_code = r.read_int16("error_code");
    } else {
      error_code = 0;
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    for (const auto& element : topics) {
      if (!element.can_encode(version, field)) return false;
    }
    if (!(version >= 8 && version <= 10) && cluster_authorized_operations != INT32_MIN) {
      return refuse_field(field, "cluster_authorized_operations");
    }
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("brokers", brokers);
    f("cluster_id", cluster_id);
    f("controller_id", controller_id);
    f("topics", topics);
    f("cluster_authorized_operations", cluster_authorized_operations);
    f("error_code", error_code);
  }
};

}  // namespace kc
