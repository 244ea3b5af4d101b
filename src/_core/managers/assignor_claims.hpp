// Owns: Claims, the owners of the partitions before a rebalance, for the sticky assignors: the claims of each member,
// and a decision where two claims contradict each other.
// Threads: any (values); in a consumer N. Never: accepts a claim of a partition that does not exist.
//
// A member that missed rebalances may claim a partition that another member has owned since then. The claim of the
// highest generation counts. Two claims of the same generation are both ignored, and the partition is free. Rejected
// claims, and claims of members with an older generation than the group, are kept as the former owner.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "managers/assignor_input.hpp"
#include "managers/consumer_protocol.hpp"

namespace kc {

class Claims {
 public:
  Claims(AssignorKind kind, const AssignorInput& in) : partitions_(in.partition_count) {
    std::vector<std::vector<size_t>> claimed(in.members.size());
    std::vector<int32_t> generations(in.members.size());
    int32_t newest = -1;
    for (size_t m = 0; m < in.members.size(); ++m) {
      generations[m] = read_claims(kind, in, *in.members[m].input, claimed[m]);
      newest = std::max(newest, generations[m]);
    }
    for (int32_t m = 0; m < in.member_count(); ++m) {
      int32_t generation = generations[static_cast<size_t>(m)];
      for (size_t p : claimed[static_cast<size_t>(m)]) {
        settle(partitions_[p], m, generation);
        if (generation < newest && in.is_subscribed(m, in.topic_of(p))) {
          remember(partitions_[p], m, generation);
        }
      }
    }
  }

  // For a group that has just joined again: every member claims its partitions in `owners`, all in the same generation.
  explicit Claims(const std::vector<int32_t>& owners) : partitions_(owners.size()) {
    for (size_t p = 0; p < owners.size(); ++p) {
      if (owners[p] != NO_MEMBER) settle(partitions_[p], owners[p], 0);
    }
  }

  // The member that claims the partition; `NO_MEMBER` if none does, or if two claim it in the same generation.
  int32_t owner(size_t partition) const { return partitions_[partition].owner; }
  // Whether there is a claim for every partition.
  bool complete() const {
    return std::all_of(partitions_.begin(), partitions_.end(), [](const Partition& p) { return p.claimed; });
  }
  // A subscriber that owned the partition in an earlier generation than the newest, or `NO_MEMBER`.
  int32_t former_owner(size_t partition) const { return partitions_[partition].former; }
  // Whether a member other than `next` may still consume the partition. `next` then gets it only after that member has
  // stated that it no longer owns it.
  bool held_by_another(size_t partition, int32_t next) const {
    const Partition& p = partitions_[partition];
    return p.claimed && p.owner != next;
  }

 private:
  struct Partition {
    bool claimed = false;
    int32_t owner = NO_MEMBER;
    int32_t generation = -1;
    int32_t former = NO_MEMBER;
    int32_t former_generation = -1;
  };

  // The partitions that the member claims, without duplicates, and the generation of the claim.
  static int32_t read_claims(AssignorKind kind, const AssignorInput& in, const GroupMember& member,
                             std::vector<size_t>& out) {
    std::vector<TopicPartitions> previous;
    const std::vector<TopicPartitions>* owned = &member.owned;
    int32_t generation = member.generation;
    if (kind == ASSIGNOR_STICKY) {
      // Eager members give up all partitions before they join; the user data contains their earlier partitions.
      read_sticky_user_data(member.user_data.value, previous, generation);
      owned = &previous;
    } else if (generation < 0) {
      generation = read_cooperative_user_data(member.user_data.value);
    }
    for (const TopicPartitions& entry : *owned) {
      int32_t number = in.find_topic(entry.topic);
      if (number == NO_TOPIC) continue;
      const AssignorInput::Topic& topic = in.topics[static_cast<size_t>(number)];
      for (int32_t p : entry.partitions) {
        if (p >= 0 && p < topic.count) out.push_back(topic.first + static_cast<size_t>(p));
      }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return generation;
  }
  static void settle(Partition& p, int32_t member, int32_t generation) {
    if (!p.claimed || generation > p.generation) {
      p.claimed = true;
      p.owner = member;
      p.generation = generation;
    } else if (generation == p.generation) {
      p.owner = NO_MEMBER;
    }
  }
  static void remember(Partition& p, int32_t member, int32_t generation) {
    if (p.former != NO_MEMBER && generation <= p.former_generation) return;
    p.former = member;
    p.former_generation = generation;
  }

  std::vector<Partition> partitions_;
};

}  // namespace kc
