// Owns: TopicPartition, a partition by name, and PartitionOffset, an offset to commit or a fetched committed offset.
// Threads: any (values). Never: refers to an assignment; PartitionState does.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace kc {

struct TopicPartition {
  std::string topic;
  int32_t partition = 0;
  TopicPartition() = default;
  TopicPartition(std::string t, int32_t p) : topic(std::move(t)), partition(p) {}
  bool operator==(const TopicPartition& o) const { return partition == o.partition && topic == o.topic; }
  bool operator<(const TopicPartition& o) const {
    int order = topic.compare(o.topic);
    return order != 0 ? order < 0 : partition < o.partition;
  }
};

struct PartitionOffset {
  std::string topic;
  int32_t partition = 0;
  int64_t offset = -1001;        // OFFSET_INVALID
  int32_t leader_epoch = -1;
  std::string metadata;
  int32_t error = 0;        // result: a code of Kafka or a local code
};

inline void sort_partitions(std::vector<TopicPartition>& p) { std::sort(p.begin(), p.end()); }

inline void sort_offsets(std::vector<PartitionOffset>& offsets) {
  std::sort(offsets.begin(), offsets.end(), [](const PartitionOffset& a, const PartitionOffset& b) {
    const int order = a.topic.compare(b.topic);
    return order != 0 ? order < 0 : a.partition < b.partition;
  });
}

inline void sort_names(std::vector<std::string>& names) { std::sort(names.begin(), names.end()); }

inline bool contains_name(const std::vector<std::string>& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

inline bool holds_partition(const std::vector<TopicPartition>& sorted, const std::string& topic, int32_t partition) {
  return std::binary_search(sorted.begin(), sorted.end(), TopicPartition(topic, partition));
}

// All partitions of both, which are sorted.
inline std::vector<TopicPartition> partitions_with(const std::vector<TopicPartition>& a,
                                                   const std::vector<TopicPartition>& b) {
  std::vector<TopicPartition> all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

// The partitions of `from` that are not in `without`; both are sorted.
inline std::vector<TopicPartition> partitions_without(const std::vector<TopicPartition>& from,
                                                      const std::vector<TopicPartition>& without) {
  std::vector<TopicPartition> left;
  auto w = without.begin();
  for (const TopicPartition& p : from) {
    while (w != without.end() && *w < p) ++w;
    if (w == without.end() || !(*w == p)) left.push_back(p);
  }
  return left;
}

}  // namespace kc
