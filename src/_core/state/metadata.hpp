// Owns: what is known of the cluster: topics, their ids, partitions and leaders. thread: N.
// Never: asks for anything; MetadataRequestManager fills it.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "network/request.hpp"
#include "protocol/types.hpp"

namespace kc {

struct PartitionEntry {
  int32_t id = 0;
  int32_t error = 0;
  int32_t leader_id = -1;
  int32_t leader_epoch = -1;
  std::vector<int32_t> replicas;  // only where brokers have racks
};

struct TopicEntry {
  std::string name;
  Uuid id;
  int32_t error = 0;
  bool internal = false;
  int64_t updated_ms = 0;
  std::unordered_map<int32_t, PartitionEntry> partitions;
};

class ClusterCache {
 public:
  std::string cluster_id;
  int32_t controller_id = -1;
  std::vector<NodeAddress> brokers;
  std::unordered_map<std::string, TopicEntry> topics;
  std::unordered_map<Uuid, std::string> names;  // topic id → name

  TopicEntry* topic(const std::string& name) {
    auto it = topics.find(name);
    return it == topics.end() ? nullptr : &it->second;
  }
  PartitionEntry* partition(const std::string& name, int32_t id) {
    TopicEntry* t = topic(name);
    if (!t) return nullptr;
    auto it = t->partitions.find(id);
    return it == t->partitions.end() ? nullptr : &it->second;
  }
  const std::string* name_of(const Uuid& id) const {
    auto it = names.find(id);
    return it == names.end() ? nullptr : &it->second;
  }
  void put(TopicEntry entry) {
    forget(entry.name);
    if (!entry.id.is_zero()) names[entry.id] = entry.name;
    std::string key = entry.name;
    topics[key] = std::move(entry);
  }
  void forget(const std::string& name) {
    auto it = topics.find(name);
    if (it == topics.end()) return;
    if (!it->second.id.is_zero()) names.erase(it->second.id);
    topics.erase(it);
  }
  bool has_broker(int32_t id) const {
    for (const auto& b : brokers) {
      if (b.id == id) return true;
    }
    return false;
  }
  void put_broker(const NodeAddress& node) {
    for (auto& b : brokers) {
      if (b.id == node.id) {
        b = node;
        return;
      }
    }
    brokers.push_back(node);
  }
};

}  // namespace kc
