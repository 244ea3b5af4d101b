// Owns: RackIndex, the racks of members and of partitions' replicas as numbers (KIP-881).
// Threads: any (values); in a consumer N. Never: chooses an owner.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "managers/assignor_input.hpp"

namespace kc {

constexpr int32_t NO_RACK = -1;

// Stores nothing about partitions if no member has a rack: call any() first.
class RackIndex {
 public:
  explicit RackIndex(const AssignorInput& in) : member_racks_(in.members.size(), NO_RACK) {
    std::unordered_map<std::string, int32_t> numbers;
    for (size_t m = 0; m < in.members.size(); ++m) {
      const std::string& rack = in.members[m].input->rack;
      if (!rack.empty()) member_racks_[m] = numbers.emplace(rack, static_cast<int32_t>(numbers.size())).first->second;
    }
    members_racks_ = static_cast<int32_t>(numbers.size());
    if (numbers.empty()) return;
    partition_racks_.resize(in.partition_count);
    for (const AssignorInput::Topic& topic : in.topics) {
      size_t known = std::min(topic.input->replica_racks.size(), static_cast<size_t>(topic.count));
      for (size_t p = 0; p < known; ++p) {
        std::vector<int32_t>& racks = partition_racks_[topic.first + p];
        for (const std::string& rack : topic.input->replica_racks[p]) {
          racks.push_back(numbers.emplace(rack, static_cast<int32_t>(numbers.size())).first->second);
        }
        std::sort(racks.begin(), racks.end());
        racks.erase(std::unique(racks.begin(), racks.end()), racks.end());
      }
    }
  }

  bool any() const { return members_racks_ > 0; }
  int32_t of_member(int32_t member) const { return member_racks_[static_cast<size_t>(member)]; }
  const std::vector<int32_t>& of_partition(size_t partition) const { return partition_racks_[partition]; }

  // Whether a member in that rack reads the partition from its own rack, or has no rack.
  bool matches(int32_t rack, size_t partition) const {
    if (rack == NO_RACK) return true;
    const std::vector<int32_t>& racks = partition_racks_[partition];
    return std::binary_search(racks.begin(), racks.end(), rack);
  }

  // Whether racks can change the result for these consecutive partitions and members: some replica is in the rack of a
  // member, and not all partitions have replicas in all racks.
  bool useful(size_t first, size_t count, const std::vector<int32_t>& members) const {
    std::vector<int32_t> wanted, offered;
    for (int32_t member : members) {
      if (of_member(member) != NO_RACK) wanted.push_back(of_member(member));
    }
    if (wanted.empty()) return false;
    for (size_t p = first; p < first + count; ++p) {
      offered.insert(offered.end(), partition_racks_[p].begin(), partition_racks_[p].end());
    }
    std::sort(offered.begin(), offered.end());
    offered.erase(std::unique(offered.begin(), offered.end()), offered.end());
    bool common = std::any_of(wanted.begin(), wanted.end(), [&](int32_t rack) {
      return std::binary_search(offered.begin(), offered.end(), rack);
    });
    if (!common) return false;
    return std::any_of(partition_racks_.begin() + static_cast<std::ptrdiff_t>(first),
                       partition_racks_.begin() + static_cast<std::ptrdiff_t>(first + count),
                       [&](const std::vector<int32_t>& racks) { return racks != offered; });
  }

 private:
  std::vector<int32_t> member_racks_;
  std::vector<std::vector<int32_t>> partition_racks_;  // sorted
  int32_t members_racks_ = 0;
};

}  // namespace kc
