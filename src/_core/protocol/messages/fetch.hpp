// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of Fetch, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct FetchRequest_ReplicaState {
  int32_t replica_id = -1;
  int64_t replica_epoch = -1;

  void encode(Writer& w, int16_t) const {
    w.write_int32(replica_id);
    w.write_int64(replica_epoch);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    replica_id = r.read_int32("ReplicaState.replica_id");
    replica_epoch = r.read_int64("ReplicaState.replica_epoch");
    r.skip_tagged_fields("ReplicaState.tagged_fields");
  }
  bool is_default() const {
    return replica_id == -1 && replica_epoch == -1;
  }
  static constexpr size_t min_size(int16_t) {
    return 13;
  }
  template <class F>
  void each_field(F&& f) {
    f("replica_id", replica_id);
    f("replica_epoch", replica_epoch);
  }
};

struct FetchRequest_FetchPartition {
  int32_t partition = 0;
  int32_t current_leader_epoch = -1;
  int64_t fetch_offset = 0;
  int32_t last_fetched_epoch = -1;
  int64_t log_start_offset = -1;
  int32_t partition_max_bytes = 0;
  Uuid replica_directory_id;
  int64_t high_watermark = INT64_MAX;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 12;
    w.write_int32(partition);
    if (version >= 9) {
      w.write_int32(current_leader_epoch);
    }
    w.write_int64(fetch_offset);
    if (version >= 12) {
      w.write_int32(last_fetched_epoch);
    }
    if (version >= 5) {
      w.write_int64(log_start_offset);
    }
    w.write_int32(partition_max_bytes);
    if (flexible) {
      Writer::Tags tags = w.begin_tags();
      if (version >= 17 && !replica_directory_id.is_zero()) {
        w.begin_tag(tags, 0);
        w.write_uuid(replica_directory_id);
        w.end_tag(tags);
      }
      if (version >= 18 && high_watermark != INT64_MAX) {
        w.begin_tag(tags, 1);
        w.write_int64(high_watermark);
        w.end_tag(tags);
      }
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 12;
    partition = r.read_int32("FetchPartition.partition");
    if (version >= 9) {
      current_leader_epoch = r.read_int32("FetchPartition.current_leader_epoch");
    } else {
      current_leader_epoch = -1;
    }
    fetch_offset = r.read_int64("FetchPartition.fetch_offset");
    if (version >= 12) {
      last_fetched_epoch = r.read_int32("FetchPartition.last_fetched_epoch");
    } else {
      last_fetched_epoch = -1;
    }
    if (version >= 5) {
      log_start_offset = r.read_int64("FetchPartition.log_start_offset");
    } else {
      log_start_offset = -1;
    }
    partition_max_bytes = r.read_int32("FetchPartition.partition_max_bytes");
    replica_directory_id = Uuid();
    high_watermark = INT64_MAX;
    if (flexible) {
      for (TaggedFields tags(r, "FetchPartition.tagged_fields"); tags.next();) {
        switch (tags.tag()) {
          case 0:
            if (version >= 17) {
              replica_directory_id = r.read_uuid("FetchPartition.replica_directory_id");
            } else {
              tags.skip();
            }
            break;
          case 1:
            if (version >= 18) {
              high_watermark = r.read_int64("FetchPartition.high_watermark");
            } else {
              tags.skip();
            }
            break;
          default:
            tags.skip();
        }
      }
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 12 && last_fetched_epoch != -1) return refuse_field(field, "FetchPartition.last_fetched_epoch");
    return true;
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 12 ? 33 : version >= 9 ? 28 : version >= 5 ? 24 : 16;
  }
  template <class F>
  void each_field(F&& f) {
    f("partition", partition);
    f("current_leader_epoch", current_leader_epoch);
    f("fetch_offset", fetch_offset);
    f("last_fetched_epoch", last_fetched_epoch);
    f("log_start_offset", log_start_offset);
    f("partition_max_bytes", partition_max_bytes);
    f("replica_directory_id", replica_directory_id);
    f("high_watermark", high_watermark);
  }
};

struct FetchRequest_FetchTopic {
  std::string topic;
  Uuid topic_id;
  std::vector<FetchRequest_FetchPartition> partitions;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 12;
    if (version <= 12) {
      w.write_string(topic, flexible);
    }
    if (version >= 13) {
      w.write_uuid(topic_id);
    }
    w.write_structs(partitions, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 12;
    if (version <= 12) {
      r.read_string(topic, flexible, "FetchTopic.topic");
    } else {
      topic.clear();
    }
    if (version >= 13) {
      topic_id = r.read_uuid("FetchTopic.topic_id");
    } else {
      topic_id = Uuid();
    }
    r.read_structs(partitions, version, flexible, "FetchTopic.partitions");
    if (flexible) {
      r.skip_tagged_fields("FetchTopic.tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    for (const auto& element : partitions) {
      if (!element.can_encode(version, field)) return false;
    }
    return true;
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 13 ? 18 : version >= 12 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic", topic);
    f("topic_id", topic_id);
    f("partitions", partitions);
  }
};

struct FetchRequest_ForgottenTopic {
  std::string topic;
  Uuid topic_id;
  std::vector<int32_t> partitions;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 12;
    if (version <= 12) {
      w.write_string(topic, flexible);
    }
    if (version >= 13) {
      w.write_uuid(topic_id);
    }
    w.write_integers(partitions, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 12;
    if (version <= 12) {
      r.read_string(topic, flexible, "ForgottenTopic.topic");
    } else {
      topic.clear();
    }
    if (version >= 13) {
      topic_id = r.read_uuid("ForgottenTopic.topic_id");
    } else {
      topic_id = Uuid();
    }
    r.read_integers(partitions, flexible, "ForgottenTopic.partitions");
    if (flexible) {
      r.skip_tagged_fields("ForgottenTopic.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 13 ? 18 : version >= 12 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic", topic);
    f("topic_id", topic_id);
    f("partitions", partitions);
  }
};

struct FetchRequest {
  static constexpr const char* name = "FetchRequest";
  static constexpr int16_t api_key = 1;
  static constexpr int16_t min_version = 4;
  static constexpr int16_t max_version = 18;
  static constexpr int16_t header_version(int16_t version) { return version >= 12 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 12 ? 1 : 0; }

  NullableString cluster_id;
  int32_t replica_id = -1;
  FetchRequest_ReplicaState replica_state;
  int32_t max_wait_ms = 0;
  int32_t min_bytes = 0;
  int32_t max_bytes = INT32_MAX;
  int8_t isolation_level = 0;
  int32_t session_id = 0;
  int32_t session_epoch = -1;
  std::vector<FetchRequest_FetchTopic> topics;
  std::vector<FetchRequest_ForgottenTopic> forgotten_topics_data;
  std::string rack_id;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 12;
    if (version <= 14) {
      w.write_int32(replica_id);
    }
    w.write_int32(max_wait_ms);
    w.write_int32(min_bytes);
    w.write_int32(max_bytes);
    w.write_int8(isolation_level);
    if (version >= 7) {
      w.write_int32(session_id);
      w.write_int32(session_epoch);
    }
    w.write_structs(topics, version, flexible);
    if (version >= 7) {
      w.write_structs(forgotten_topics_data, version, flexible);
    }
    if (version >= 11) {
      w.write_string(rack_id, flexible);
    }
    if (flexible) {
      Writer::Tags tags = w.begin_tags();
      if (!cluster_id.is_null) {
        w.begin_tag(tags, 0);
        w.write_nullable_string(cluster_id, true, true);
        w.end_tag(tags);
      }
      if (version >= 15 && !replica_state.is_default()) {
        w.begin_tag(tags, 1);
        replica_state.encode(w, version);
        w.end_tag(tags);
      }
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 12;
    r.begin(name, version);
    if (version <= 14) {
      replica_id = r.read_int32("replica_id");
    } else {
      replica_id = -1;
    }
    max_wait_ms = r.read_int32("max_wait_ms");
    min_bytes = r.read_int32("min_bytes");
    max_bytes = r.read_int32("max_bytes");
    isolation_level = r.read_int8("isolation_level");
    if (version >= 7) {
      session_id = r.read_int32("session_id");
      session_epoch = r.read_int32("session_epoch");
    } else {
      session_id = 0;
      session_epoch = -1;
    }
    r.read_structs(topics, version, flexible, "topics");
    if (version >= 7) {
      r.read_structs(forgotten_topics_data, version, flexible, "forgotten_topics_data");
    } else {
      forgotten_topics_data.clear();
    }
    if (version >= 11) {
      r.read_string(rack_id, flexible, "rack_id");
    } else {
      rack_id.clear();
    }
    cluster_id.set_null();
    replica_state = FetchRequest_ReplicaState();
    if (flexible) {
      for (TaggedFields tags(r, "tagged_fields"); tags.next();) {
        switch (tags.tag()) {
          case 0:
            r.read_nullable_string(cluster_id, true, true, "cluster_id");
            break;
          case 1:
            if (version >= 15) {
              replica_state.decode(r, version);
            } else {
              tags.skip();
            }
            break;
          default:
            tags.skip();
        }
      }
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version > 14 && replica_id != -1) return refuse_field(field, "replica_id");
    if (version < 15 && !replica_state.is_default()) return refuse_field(field, "replica_state");
    for (const auto& element : topics) {
      if (!element.can_encode(version, field)) return false;
    }
    if (version < 7 && !forgotten_topics_data.empty()) return refuse_field(field, "forgotten_topics_data");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("cluster_id", cluster_id);
    f("replica_id", replica_id);
    f("replica_state", replica_state);
    f("max_wait_ms", max_wait_ms);
    f("min_bytes", min_bytes);
    f("max_bytes", max_bytes);
    f("isolation_level", isolation_level);
    f("session_id", session_id);
    f("session_epoch", session_epoch);
    f("topics", topics);
    f("forgotten_topics_data", forgotten_topics_data);
    f("rack_id", rack_id);
  }
};

struct FetchResponse_EpochEndOffset {
  int32_t epoch = -1;
  int64_t end_offset = -1;

  void encode(Writer& w, int16_t) const {
    w.write_int32(epoch);
    w.write_int64(end_offset);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    epoch = r.read_int32("EpochEndOffset.epoch");
    end_offset = r.read_int64("EpochEndOffset.end_offset");
    r.skip_tagged_fields("EpochEndOffset.tagged_fields");
  }
  bool is_default() const {
    return epoch == -1 && end_offset == -1;
  }
  static constexpr size_t min_size(int16_t) {
    return 13;
  }
  template <class F>
  void each_field(F&& f) {
    f("epoch", epoch);
    f("end_offset", end_offset);
  }
};

struct FetchResponse_LeaderIdAndEpoch {
  int32_t leader_id = -1;
  int32_t leader_epoch = -1;

  void encode(Writer& w, int16_t) const {
    w.write_int32(leader_id);
    w.write_int32(leader_epoch);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    leader_id = r.read_int32("LeaderIdAndEpoch.leader_id");
    leader_epoch = r.read_int32("LeaderIdAndEpoch.leader_epoch");
    r.skip_tagged_fields("LeaderIdAndEpoch.tagged_fields");
  }
  bool is_default() const {
    return leader_id == -1 && leader_epoch == -1;
  }
  static constexpr size_t min_size(int16_t) {
    return 9;
  }
  template <class F>
  void each_field(F&& f) {
    f("leader_id", leader_id);
    f("leader_epoch", leader_epoch);
  }
};

struct FetchResponse_SnapshotId {
  int64_t end_offset = -1;
  int32_t epoch = -1;

  void encode(Writer& w, int16_t) const {
    w.write_int64(end_offset);
    w.write_int32(epoch);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    end_offset = r.read_int64("SnapshotId.end_offset");
    epoch = r.read_int32("SnapshotId.epoch");
    r.skip_tagged_fields("SnapshotId.tagged_fields");
  }
  bool is_default() const {
    return end_offset == -1 && epoch == -1;
  }
  static constexpr size_t min_size(int16_t) {
    return 13;
  }
  template <class F>
  void each_field(F&& f) {
    f("end_offset", end_offset);
    f("epoch", epoch);
  }
};

struct FetchResponse_AbortedTransaction {
  int64_t producer_id = 0;
  int64_t first_offset = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 12;
    w.write_int64(producer_id);
    w.write_int64(first_offset);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 12;
    producer_id = r.read_int64("AbortedTransaction.producer_id");
    first_offset = r.read_int64("AbortedTransaction.first_offset");
    if (flexible) {
      r.skip_tagged_fields("AbortedTransaction.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 12 ? 17 : 16;
  }
  template <class F>
  void each_field(F&& f) {
    f("producer_id", producer_id);
    f("first_offset", first_offset);
  }
};

struct FetchResponse_PartitionData {
  int32_t partition_index = 0;
  int16_t error_code = 0;
  int64_t high_watermark = 0;
  int64_t last_stable_offset = -1;
  int64_t log_start_offset = -1;
  FetchResponse_EpochEndOffset diverging_epoch;
  FetchResponse_LeaderIdAndEpoch current_leader;
  FetchResponse_SnapshotId snapshot_id;
  Nullable<std::vector<FetchResponse_AbortedTransaction>> aborted_transactions{PRESENT};
  int32_t preferred_read_replica = -1;
  BytesView records;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 12;
    w.write_int32(partition_index);
    w.write_int16(error_code);
    w.write_int64(high_watermark);
    w.write_int64(last_stable_offset);
    if (version >= 5) {
      w.write_int64(log_start_offset);
    }
    w.write_structs(aborted_transactions, version, flexible, true);
    if (version >= 11) {
      w.write_int32(preferred_read_replica);
    }
    w.write_view(records, flexible, true);
    if (flexible) {
      Writer::Tags tags = w.begin_tags();
      if (!diverging_epoch.is_default()) {
        w.begin_tag(tags, 0);
        diverging_epoch.encode(w, version);
        w.end_tag(tags);
      }
      if (!current_leader.is_default()) {
        w.begin_tag(tags, 1);
        current_leader.encode(w, version);
        w.end_tag(tags);
      }
      if (!snapshot_id.is_default()) {
        w.begin_tag(tags, 2);
        snapshot_id.encode(w, version);
        w.end_tag(tags);
      }
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 12;
    partition_index = r.read_int32("PartitionData.partition_index");
    error_code = r.read_int16("PartitionData.error_code");
    high_watermark = r.read_int64("PartitionData.high_watermark");
    last_stable_offset = r.read_int64("PartitionData.last_stable_offset");
    if (version >= 5) {
      log_start_offset = r.read_int64("PartitionData.log_start_offset");
    } else {
      log_start_offset = -1;
    }
    r.read_structs(aborted_transactions, version, flexible, true, "PartitionData.aborted_transactions");
    if (version >= 11) {
      preferred_read_replica = r.read_int32("PartitionData.preferred_read_replica");
    } else {
      preferred_read_replica = -1;
    }
    records = r.read_view(flexible, true, "PartitionData.records");
    diverging_epoch = FetchResponse_EpochEndOffset();
    current_leader = FetchResponse_LeaderIdAndEpoch();
    snapshot_id = FetchResponse_SnapshotId();
    if (flexible) {
      for (TaggedFields tags(r, "PartitionData.tagged_fields"); tags.next();) {
        switch (tags.tag()) {
          case 0:
            diverging_epoch.decode(r, version);
            break;
          case 1:
            current_leader.decode(r, version);
            break;
          case 2:
            snapshot_id.decode(r, version);
            break;
          default:
            tags.skip();
        }
      }
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 12 && !diverging_epoch.is_default()) {
      return refuse_field(field, "PartitionData.diverging_epoch");
    }
    if (version < 12 && !current_leader.is_default()) return refuse_field(field, "PartitionData.current_leader");
    if (version < 12 && !snapshot_id.is_default()) return refuse_field(field, "PartitionData.snapshot_id");
    if (version < 11 && preferred_read_replica != -1) {
      return refuse_field(field, "PartitionData.preferred_read_replica");
    }
    return true;
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 12 ? 37 : version >= 11 ? 42 : version >= 5 ? 38 : 30;
  }
  template <class F>
  void each_field(F&& f) {
    f("partition_index", partition_index);
    f("error_code", error_code);
    f("high_watermark", high_watermark);
    f("last_stable_offset", last_stable_offset);
    f("log_start_offset", log_start_offset);
    f("diverging_epoch", diverging_epoch);
    f("current_leader", current_leader);
    f("snapshot_id", snapshot_id);
    f("aborted_transactions", aborted_transactions);
    f("preferred_read_replica", preferred_read_replica);
    f("records", records);
  }
};

struct FetchResponse_FetchableTopicResponse {
  std::string topic;
  Uuid topic_id;
  std::vector<FetchResponse_PartitionData> partitions;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 12;
    if (version <= 12) {
      w.write_string(topic, flexible);
    }
    if (version >= 13) {
      w.write_uuid(topic_id);
    }
    w.write_structs(partitions, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 12;
    if (version <= 12) {
      r.read_string(topic, flexible, "FetchableTopicResponse.topic");
    } else {
      topic.clear();
    }
    if (version >= 13) {
      topic_id = r.read_uuid("FetchableTopicResponse.topic_id");
    } else {
      topic_id = Uuid();
    }
    r.read_structs(partitions, version, flexible, "FetchableTopicResponse.partitions");
    if (flexible) {
      r.skip_tagged_fields("FetchableTopicResponse.tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    for (const auto& element : partitions) {
      if (!element.can_encode(version, field)) return false;
    }
    return true;
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 13 ? 18 : version >= 12 ? 3 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("topic", topic);
    f("topic_id", topic_id);
    f("partitions", partitions);
  }
};

struct FetchResponse_NodeEndpoint {
  int32_t node_id = 0;
  std::string host;
  int32_t port = 0;
  NullableString rack;

  void encode(Writer& w, int16_t) const {
    w.write_int32(node_id);
    w.write_string(host, true);
    w.write_int32(port);
    w.write_nullable_string(rack, true, true);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    node_id = r.read_int32("NodeEndpoint.node_id");
    r.read_string(host, true, "NodeEndpoint.host");
    port = r.read_int32("NodeEndpoint.port");
    r.read_nullable_string(rack, true, true, "NodeEndpoint.rack");
    r.skip_tagged_fields("NodeEndpoint.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 11;
  }
  template <class F>
  void each_field(F&& f) {
    f("node_id", node_id);
    f("host", host);
    f("port", port);
    f("rack", rack);
  }
};

struct FetchResponse {
  static constexpr const char* name = "FetchResponse";
  static constexpr int16_t api_key = 1;
  static constexpr int16_t min_version = 4;
  static constexpr int16_t max_version = 18;
  static constexpr int16_t header_version(int16_t version) { return version >= 12 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  int16_t error_code = 0;
  int32_t session_id = 0;
  std::vector<FetchResponse_FetchableTopicResponse> responses;
  std::vector<FetchResponse_NodeEndpoint> node_endpoints;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 12;
    w.write_int32(throttle_time_ms);
    if (version >= 7) {
      w.write_int16(error_code);
      w.write_int32(session_id);
    }
    w.write_structs(responses, version, flexible);
    if (flexible) {
      Writer::Tags tags = w.begin_tags();
      if (version >= 16 && !node_endpoints.empty()) {
        w.begin_tag(tags, 0);
        w.write_structs(node_endpoints, version, true);
        w.end_tag(tags);
      }
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 12;
    r.begin(name, version);
    throttle_time_ms = r.read_int32("throttle_time_ms");
    if (version >= 7) {
      error_code = r.read_int16("error_code");
      session_id = r.read_int32("session_id");
    } else {
      error_code = 0;
      session_id = 0;
    }
    r.read_structs(responses, version, flexible, "responses");
    node_endpoints.clear();
    if (flexible) {
      for (TaggedFields tags(r, "tagged_fields"); tags.next();) {
        switch (tags.tag()) {
          case 0:
            if (version >= 16) {
              r.read_structs(node_endpoints, version, true, "node_endpoints");
            } else {
              tags.skip();
            }
            break;
          default:
            tags.skip();
        }
      }
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 7 && session_id != 0) return refuse_field(field, "session_id");
    for (const auto& element : responses) {
      if (!element.can_encode(version, field)) return false;
    }
    if (version < 16 && !node_endpoints.empty()) return refuse_field(field, "node_endpoints");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("error_code", error_code);
    f("session_id", session_id);
    f("responses", responses);
    f("node_endpoints", node_endpoints);
  }
};

}  // namespace kc
