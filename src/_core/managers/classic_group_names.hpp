// Owns: the texts of the classic protocol's errors and rejoins, and partitions grouped by topic, as requests have them.
// Threads: any (pure functions). Never: decides what an error means; ClassicGroupManager does.
#pragma once
#include <cstdint>
#include <vector>

#include "events/assignor_call.hpp"
#include "events/topic_partition.hpp"

namespace kc {

constexpr const char* kAssignorRaised = "the application's assignor raised an exception";  // a reason of a rejoin

inline const char* classic_error(int32_t code) {
  switch (code) {
    case 14: return "the coordinator is loading the group";
    case 15: case 16: return "the broker is not the coordinator";
    case 22: return "the generation is not the present one of the group";
    case 23: return "the members have no assignor or protocol type in common";
    case 24: return "the group id is not valid";
    case 25: return "the coordinator does not know this member";
    case 26: return "the session timeout is outside the limits of the broker: adjust session.timeout.ms";
    case 27: return "a rebalance is in progress";
    case 30: return "not authorized for the group: grant READ on the group";
    case 35: return "the broker is too old for the settings of this group";
    case 79: return "a member id is required";
    case 81: return "the group has its maximum number of members";
    case 82: return "another member with this group.instance.id has taken its place";
  }
  return "the coordinator reported an unexpected error: see the broker's log";
}

inline void group_by_topic(const std::vector<TopicPartition>& sorted, std::vector<TopicPartitions>& out) {
  for (const TopicPartition& p : sorted) {
    if (out.empty() || out.back().topic != p.topic) out.push_back({p.topic, {}});
    out.back().partitions.push_back(p.partition);
  }
}

inline void flatten(const std::vector<TopicPartitions>& sorted, std::vector<TopicPartition>& out) {
  for (const TopicPartitions& t : sorted)
    for (int32_t p : t.partitions) out.emplace_back(t.topic, p);
}

}  // namespace kc
