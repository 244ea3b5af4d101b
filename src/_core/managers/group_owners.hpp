// Owns: GroupOwners: what a described classic group says about its partitions: the topics that its members subscribe to,
// and the partitions that have an owner.
// Threads: any (pure functions); in a consumer N. Never: trusts the bytes of other members, asks for anything.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "events/topic_partition.hpp"
#include "managers/consumer_protocol.hpp"
#include "protocol/messages/describe_groups.hpp"
#include "state/metadata.hpp"

namespace kc {

struct GroupOwners {
  std::vector<std::string> topics;      // sorted
  std::vector<TopicPartition> owned;    // sorted

  Status read(const DescribeGroupsResponse_DescribedGroup& group) {
    topics.clear();
    owned.clear();
    for (const auto& described : group.members) {
      GroupMember member;
      member.member_id = described.member_id;
      Status status = decode_subscription(reinterpret_cast<const uint8_t*>(described.member_metadata.data()),
                                          described.member_metadata.size(), member);
      if (!status.ok()) return status;
      std::vector<TopicPartitions> assigned;
      NullableString user_data;
      status = decode_assignment(reinterpret_cast<const uint8_t*>(described.member_assignment.data()),
                                 described.member_assignment.size(), assigned, user_data);
      if (!status.ok()) return status;
      for (std::string& topic : member.topics) topics.push_back(std::move(topic));
      for (const TopicPartitions& entry : assigned) {
        for (int32_t p : entry.partitions) owned.emplace_back(entry.topic, p);
      }
    }
    std::sort(topics.begin(), topics.end());
    topics.erase(std::unique(topics.begin(), topics.end()), topics.end());
    sort_partitions(owned);
    return Status();
  }

  // Whether a partition of the topics has no owner. `first` is the first such partition.
  bool find_orphan(ClusterCache& cluster, TopicPartition& first) const {
    for (const std::string& name : topics) {
      const TopicEntry* entry = cluster.topic(name);
      if (!entry || entry->error != 0) continue;
      for (const PartitionEntry& partition : entry->partitions) {
        if (holds_partition(owned, name, partition.id)) continue;
        first = TopicPartition(name, partition.id);
        return true;
      }
    }
    return false;
  }
};

}  // namespace kc
