// Owns: Topics: the simulated cluster's brokers, topics, leaders and logs, and the answers about them (Metadata,
// ListOffsets, OffsetForLeaderEpoch).
// Threads: the simulation's thread. Never: knows a group, keeps a fetch session.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/list_offsets.hpp"
#include "protocol/messages/metadata.hpp"
#include "protocol/messages/offset_for_leader_epoch.hpp"
#include "simulation/exchange.hpp"
#include "simulation/partition_log.hpp"

namespace kc::sim {

struct Broker {
  int32_t id = 0;
  bool up = true;
  int64_t news_delay_ms = 0;  // delay until it learns of new leaders
};

struct Partition {
  PartitionLog log;
  int32_t leader = 0;
  int32_t epoch = 0;
  int32_t previous_leader = 0;
  int32_t previous_epoch = 0;
  int64_t moved_ms = 0;
};

struct Topic {
  std::string name;
  Uuid id;
  std::vector<std::unique_ptr<Partition>> partitions;
};

class Topics {
 public:
  explicit Topics(World& world) : world_(world) {}
  std::vector<Broker> brokers;
  std::vector<std::unique_ptr<Topic>> topics;
  // A change of a partition that a parked Fetch may wait for.
  std::function<void(const Topic&, int32_t partition)> changed;

  Broker* broker(int32_t id) {
    for (Broker& b : brokers) {
      if (b.id == id) return &b;
    }
    return nullptr;
  }
  Topic* by_name(const std::string& name) {
    for (auto& t : topics) {
      if (t->name == name) return t.get();
    }
    return nullptr;
  }
  Topic* by_id(const Uuid& id) {
    for (auto& t : topics) {
      if (t->id == id) return t.get();
    }
    return nullptr;
  }
  static Partition* part(Topic* topic, int32_t index) {
    if (!topic || index < 0 || static_cast<size_t>(index) >= topic->partitions.size()) return nullptr;
    return topic->partitions[static_cast<size_t>(index)].get();
  }
  static std::string host(int32_t id) { return "broker-" + std::to_string(id); }

  void create(const std::string& name, int32_t partitions) {
    auto topic = std::make_unique<Topic>();
    topic->name = name;
    topic->id = Uuid(0x7070, topics.size() + 1);
    topics.push_back(std::move(topic));
    grow(name, partitions);
  }
  void grow(const std::string& name, int32_t partitions) {
    Topic* topic = by_name(name);
    while (topic && topic->partitions.size() < static_cast<size_t>(partitions)) {
      auto p = std::make_unique<Partition>();
      p->leader = p->previous_leader = live_broker();
      p->log.begin_epoch(0);
      topic->partitions.push_back(std::move(p));
    }
    world_.trace("cluster: %s has %d partitions", name.c_str(), partitions);
  }
  void move_leader(Topic& topic, int32_t index, int32_t to) {
    Partition& p = *topic.partitions[static_cast<size_t>(index)];
    p.previous_leader = p.leader;
    p.previous_epoch = p.epoch;
    p.moved_ms = world_.now_ms;
    p.leader = to;
    p.epoch += 1;
    p.log.begin_epoch(p.epoch);
    world_.trace("cluster: %s [%d] leader %d epoch %d", topic.name.c_str(), index, to, p.epoch);
    changed(topic, index);
  }
  int32_t live_broker() {
    std::vector<int32_t> up;
    for (const Broker& b : brokers) {
      if (b.up) up.push_back(b.id);
    }
    return up.empty() ? brokers[0].id : up[static_cast<size_t>(world_.chance.below(static_cast<int64_t>(up.size())))];
  }
  // NONE if `node` may serve the partition to a client that knows `epoch` (-1: not given).
  Error leadership(const Partition& p, int32_t node, int32_t epoch) const {
    if (p.leader != node) return NOT_LEADER_OR_FOLLOWER;
    if (epoch >= 0 && epoch < p.epoch) return FENCED_LEADER_EPOCH;
    if (epoch >= 0 && epoch > p.epoch) return UNKNOWN_LEADER_EPOCH;
    return NONE;
  }

  void describe(MetadataResponse& out, const MetadataRequest& asked, int16_t version, int32_t node) {
    for (const Broker& b : brokers) {
      MetadataResponse_MetadataResponseBroker listed;
      listed.node_id = b.id;
      listed.host = host(b.id);
      listed.port = 9092;
      if (b.up) out.brokers.push_back(listed);
    }
    out.cluster_id.set("simulated");
    out.controller_id = brokers[0].id;
    const bool all = asked.topics.is_null || (version == 0 && asked.topics.value.empty());
    if (all) {
      for (auto& t : topics) add_topic(out, t.get(), t->name, t->id, node);
      return;
    }
    for (const auto& wanted : asked.topics.value) {
      const bool named = !wanted.name.is_null;
      Topic* t = named ? by_name(wanted.name.value) : by_id(wanted.topic_id);
      add_topic(out, t, named ? wanted.name.value : std::string(), wanted.topic_id, node);
    }
  }

  void list_offsets(ListOffsetsResponse& out, const ListOffsetsRequest& asked, int32_t node) {
    for (const auto& topic : asked.topics) {
      out.topics.emplace_back();
      out.topics.back().name = topic.name;
      for (const auto& wanted : topic.partitions) {
        ListOffsetsResponse_ListOffsetsPartitionResponse found;
        found.partition_index = wanted.partition_index;
        Partition* p = part(by_name(topic.name), wanted.partition_index);
        found.error_code = p ? leadership(*p, node, wanted.current_leader_epoch) : UNKNOWN_TOPIC_OR_PARTITION;
        if (found.error_code == NONE && world_.goes_wrong(world_.faults.refuse)) found.error_code = OFFSET_NOT_AVAILABLE;
        if (found.error_code == NONE) {
          const int64_t end = asked.isolation_level ? p->log.last_stable_offset() : p->log.end;
          found.offset = wanted.timestamp == -2 ? p->log.start : end;
          found.leader_epoch = p->epoch;
        }
        out.topics.back().partitions.push_back(found);
      }
    }
  }

  void epoch_ends(OffsetForLeaderEpochResponse& out, const OffsetForLeaderEpochRequest& asked, int32_t node) {
    for (const auto& topic : asked.topics) {
      out.topics.emplace_back();
      out.topics.back().topic = topic.topic;
      for (const auto& wanted : topic.partitions) {
        OffsetForLeaderEpochResponse_EpochEndOffset found;
        found.partition = wanted.partition;
        Partition* p = part(by_name(topic.topic), wanted.partition);
        found.error_code = p ? leadership(*p, node, wanted.current_leader_epoch) : UNKNOWN_TOPIC_OR_PARTITION;
        if (found.error_code == NONE) {
          std::tie(found.leader_epoch, found.end_offset) = p->log.epoch_end(wanted.leader_epoch);
        }
        out.topics.back().partitions.push_back(found);
      }
    }
  }

 private:
  void add_topic(MetadataResponse& out, Topic* topic, const std::string& name, const Uuid& id, int32_t node) {
    out.topics.emplace_back();
    auto& listed = out.topics.back();
    listed.name.set(topic ? topic->name : name);
    listed.topic_id = topic ? topic->id : id;
    if (!topic) {
      listed.error_code = name.empty() ? UNKNOWN_TOPIC_ID : UNKNOWN_TOPIC_OR_PARTITION;
      return;
    }
    for (size_t i = 0; i < topic->partitions.size(); ++i) {
      const Partition& p = *topic->partitions[i];
      const bool late = world_.now_ms < p.moved_ms + broker(node)->news_delay_ms;
      MetadataResponse_MetadataResponsePartition entry;
      entry.partition_index = static_cast<int32_t>(i);
      entry.leader_id = late ? p.previous_leader : p.leader;
      entry.leader_epoch = late ? p.previous_epoch : p.epoch;
      std::vector<int32_t> replicas;
      for (const Broker& b : brokers) replicas.push_back(b.id);
      entry.replica_nodes = Int32Array(replicas);
      entry.isr_nodes = entry.replica_nodes;
      listed.partitions.push_back(entry);
    }
  }

  World& world_;
};

}  // namespace kc::sim
