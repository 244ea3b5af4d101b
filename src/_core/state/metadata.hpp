// Owns: the known state of the cluster: topics, topic ids, partitions and leaders. thread: N.
// Never: sends a request; MetadataRequestManager fills it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "network/request.hpp"
#include "protocol/types.hpp"

namespace kc {

// 20 bytes, because a response may list two million partitions.
struct PartitionEntry {
  int32_t id = 0;
  int32_t leader_id = -1;
  int32_t leader_epoch = -1;
  uint32_t first_replica = 0;  // index in the replica list of its topic
  uint16_t replica_count = 0;
  int16_t error = 0;
};

struct Replicas {
  const int32_t* nodes = nullptr;
  size_t count = 0;
};

// The partitions of a topic by number. A vector, because a hash table needs three times the memory.
class PartitionList {
 public:
  void reserve(size_t count) { entries_.reserve(count); }
  // Call seal() after the last add. Of two entries with one number the later one counts. Drops replicas beyond 65,535.
  void add(PartitionEntry entry, const Int32Array& replicas) {
    entry.first_replica = static_cast<uint32_t>(replicas_.size());
    entry.replica_count = static_cast<uint16_t>(std::min<size_t>(replicas.size(), UINT16_MAX));
    for (size_t i = 0; i < entry.replica_count; ++i) replicas_.push_back(replicas.at(i));
    entries_.push_back(entry);
  }
  Replicas replicas(const PartitionEntry& entry) const {
    return {replicas_.data() + entry.first_replica, entry.replica_count};
  }
  void seal() {
    auto before = [](const PartitionEntry& a, const PartitionEntry& b) { return a.id < b.id; };
    if (!std::is_sorted(entries_.begin(), entries_.end(), before)) {
      std::stable_sort(entries_.begin(), entries_.end(), before);
    }
    auto same = [](const PartitionEntry& a, const PartitionEntry& b) { return a.id == b.id; };
    auto last = std::unique(entries_.rbegin(), entries_.rend(), same);
    entries_.erase(entries_.begin(), last.base());
  }
  PartitionEntry* find(int32_t id) {
    auto at = std::lower_bound(entries_.begin(), entries_.end(), id,
                               [](const PartitionEntry& e, int32_t wanted) { return e.id < wanted; });
    return at == entries_.end() || at->id != id ? nullptr : &*at;
  }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  void clear() {
    entries_ = std::vector<PartitionEntry>();
    replicas_ = std::vector<int32_t>();
  }
  std::vector<PartitionEntry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<PartitionEntry>::const_iterator end() const { return entries_.end(); }

 private:
  std::vector<PartitionEntry> entries_;
  std::vector<int32_t> replicas_;  // of all partitions
};

struct TopicEntry {
  Uuid id;
  int32_t error = 0;
  bool internal = false;
  uint32_t update = 0;  // the latest response that named the topic (a count of MetadataRequestManager)
  int64_t updated_ms = 0;
  int32_t former_ids = 0;  // how many responses in a row named an id that the topic had before
  PartitionList partitions;
};

class ClusterCache {
 public:
  std::string cluster_id;
  int32_t controller_id = -1;
  std::vector<NodeAddress> brokers;
  std::unordered_map<std::string, TopicEntry> topics;

  TopicEntry* topic(const std::string& name) {
    auto it = topics.find(name);
    return it == topics.end() ? nullptr : &it->second;
  }
  PartitionEntry* partition(const std::string& name, int32_t id) {
    TopicEntry* t = topic(name);
    return t ? t->partitions.find(id) : nullptr;
  }
  Replicas replicas(const std::string& name, int32_t id) {
    TopicEntry* t = topic(name);
    PartitionEntry* entry = t ? t->partitions.find(id) : nullptr;
    return entry ? t->partitions.replicas(*entry) : Replicas();
  }
  const std::string* name_of(const Uuid& id) const {
    auto it = names_.find(id);
    return it == names_.end() ? nullptr : it->second;
  }
  // Replace the entry of the topic by an empty one.
  TopicEntry* renew(const std::string& name, const Uuid& id) {
    forget(name);
    auto place = topics.emplace(name, TopicEntry()).first;
    place->second.id = id;
    if (!id.is_zero()) names_[id] = &place->first;
    return &place->second;
  }
  // A response has named another id: the topic was recreated. No id ever comes back, but a broker may lag behind.
  void retire(const Uuid& id, const Uuid& next) {
    if (retired_.size() >= MOST_RETIRED) retired_.clear();
    retired_.insert(id);
    retired_.erase(next);
  }
  bool is_retired(const Uuid& id) const { return retired_.count(id) != 0; }
  void forget(const std::string& name) {
    auto it = topics.find(name);
    if (it == topics.end()) return;
    auto named = names_.find(it->second.id);
    if (named != names_.end() && named->second == &it->first) names_.erase(named);
    topics.erase(it);
  }
  bool has_broker(int32_t id) const {
    for (const auto& b : brokers) {
      if (b.id == id) return true;
    }
    return false;
  }
  // False if there are too many brokers: each answer of a coordinator or a leader may name one more.
  bool put_broker(const NodeAddress& node) {
    for (auto& b : brokers) {
      if (b.id == node.id) {
        b = node;
        return true;
      }
    }
    if (brokers.size() >= static_cast<size_t>(MAX_BROKERS)) return false;
    brokers.push_back(node);
    return true;
  }

 private:
  static constexpr size_t MOST_RETIRED = 10000;
  std::unordered_set<Uuid> retired_;                    // former ids of recreated topics
  std::unordered_map<Uuid, const std::string*> names_;  // topic id → the key of `topics`
};

}  // namespace kc
