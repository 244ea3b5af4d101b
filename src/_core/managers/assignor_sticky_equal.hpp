// Owns: the sticky algorithm for members with equal subscriptions: each member keeps its owned partitions up to its
// share; the other partitions are dealt out.
// Threads: any (a pure function); in a consumer N. Never: makes the counts of two members differ by more than one.
//
// Shares differ by at most one, so the number of moves is minimal. With racks (KIP-881) a member keeps only partitions
// that it reads from its own rack, and is first offered partitions of that rack.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "managers/assignor_claims.hpp"
#include "managers/assignor_input.hpp"
#include "managers/assignor_racks.hpp"

namespace kc {

class StickyEqualAssignor {
 public:
  // `racks` is null if racks make no difference. With `leave_far` no member keeps a partition of another rack.
  StickyEqualAssignor(const AssignorInput& in, const Claims& claims, const RackIndex* racks, bool leave_far,
                      AssignorResult& result)
      : in_(in), claims_(claims), racks_(racks), leave_far_(leave_far), result_(result),
        counts_(in.members.size(), 0) {}

  void run() {
    size_t members = in_.members.size();
    least_ = in_.partition_count / members;
    larger_left_ = in_.partition_count % members;
    most_ = least_ + (larger_left_ > 0 ? 1 : 0);
    keep_owned();
    std::vector<size_t> free;
    for (size_t p = 0; p < in_.partition_count; ++p) {
      if (result_.owners[p] == NO_MEMBER) free.push_back(p);
    }
    if (racks_) assign_within_racks(free);
    deal(free);
  }

 private:
  // A member keeps its share of the partitions it owned, the lowest numbers first. Members with too few partitions go
  // into below_, members that may get one more into level_.
  void keep_owned() {
    std::vector<std::vector<std::pair<int32_t, size_t>>> owned(in_.members.size());
    for (const AssignorInput::Topic& topic : in_.topics) {
      for (int32_t p = 0; p < topic.count; ++p) {
        size_t partition = topic.first + static_cast<size_t>(p);
        int32_t owner = claims_.owner(partition);
        if (owner == NO_MEMBER || (leave_far_ && !racks_->matches(racks_->of_member(owner), partition))) continue;
        owned[static_cast<size_t>(owner)].emplace_back(p, partition);
      }
    }
    for (int32_t m = 0; m < in_.member_count(); ++m) {
      auto& mine = owned[static_cast<size_t>(m)];
      size_t keep = std::min(mine.size(), least_);
      if (mine.size() < least_) {
        below_.push_back(m);
      } else if (larger_left_ > 0 && mine.size() >= most_) {
        keep = most_;
        --larger_left_;
      } else {
        level_.push_back(m);
      }
      std::sort(mine.begin(), mine.end());
      for (size_t i = 0; i < keep; ++i) give(mine[i].second, m);
    }
    if (larger_left_ == 0) level_.clear();
  }

  // Each partition goes to the next member below its share that is in one of its racks, else to one that may get one
  // more. Partitions with few near members come first.
  void assign_within_racks(std::vector<size_t>& free) {
    std::vector<int32_t> members_near = count_members_near();
    std::stable_sort(free.begin(), free.end(), [&](size_t a, size_t b) { return members_near[a] < members_near[b]; });
    size_t next = 0;
    auto in_rack = [this](size_t p, int32_t m) {
      return racks_->of_member(m) != NO_RACK && racks_->matches(racks_->of_member(m), p);
    };
    free.erase(std::remove_if(free.begin(), free.end(), [&](size_t p) {
      if (members_near[p] == 0) return false;
      for (size_t tried = 0; tried < below_.size(); ++tried) {
        size_t i = (next + tried) % below_.size();
        if (!in_rack(p, below_[i])) continue;
        next = give_below(p, i) ? i : i + 1;
        if (next >= below_.size()) next = 0;
        return true;
      }
      auto found = std::find_if(level_.begin(), level_.end(), [&](int32_t m) { return in_rack(p, m); });
      if (found == level_.end()) return false;
      give_level(p, static_cast<size_t>(found - level_.begin()));
      return true;
    }), free.end());
  }
  std::vector<int32_t> count_members_near() const {
    std::vector<int32_t> in_rack;
    for (int32_t m = 0; m < in_.member_count(); ++m) {
      int32_t rack = racks_->of_member(m);
      if (rack == NO_RACK) continue;
      if (in_rack.size() <= static_cast<size_t>(rack)) in_rack.resize(static_cast<size_t>(rack) + 1, 0);
      ++in_rack[static_cast<size_t>(rack)];
    }
    std::vector<int32_t> near(in_.partition_count, 0);
    for (size_t p = 0; p < near.size(); ++p) {
      for (int32_t rack : racks_->of_partition(p)) {
        if (static_cast<size_t>(rack) < in_rack.size()) near[p] += in_rack[static_cast<size_t>(rack)];
      }
    }
    return near;
  }

  // Deal out the remaining partitions: first to members below their share, then one each to members that may get more.
  void deal(std::vector<size_t>& free) {
    if (leave_far_) give_back(free);
    size_t next = 0;
    for (size_t p : free) {
      if (below_.empty()) {
        give_level(p, 0);
        continue;
      }
      next = give_below(p, next) ? next : next + 1;
      if (next >= below_.size()) next = 0;
    }
  }
  // A member gets back a partition that it lost only for racks, if it has room and no nearer member took the partition.
  void give_back(std::vector<size_t>& free) {
    free.erase(std::remove_if(free.begin(), free.end(), [this](size_t p) {
      int32_t owner = claims_.owner(p);
      if (owner == NO_MEMBER) return false;
      auto at = std::find(below_.begin(), below_.end(), owner);
      if (at != below_.end()) {
        give_below(p, static_cast<size_t>(at - below_.begin()));
        return true;
      }
      at = std::find(level_.begin(), level_.end(), owner);
      if (at == level_.end()) return false;
      give_level(p, static_cast<size_t>(at - level_.begin()));
      return true;
    }), free.end());
  }

  void give(size_t partition, int32_t member) {
    result_.owners[partition] = member;
    ++counts_[static_cast<size_t>(member)];
  }
  // Give the partition to below_[i]. True if that member has reached its share and has left below_.
  bool give_below(size_t partition, size_t i) {
    int32_t member = below_[i];
    give(partition, member);
    if (counts_[static_cast<size_t>(member)] < least_) return false;
    below_.erase(below_.begin() + static_cast<std::ptrdiff_t>(i));
    if (larger_left_ > 0) level_.push_back(member);
    return true;
  }
  void give_level(size_t partition, size_t i) {
    give(partition, level_[i]);
    level_.erase(level_.begin() + static_cast<std::ptrdiff_t>(i));
    if (--larger_left_ == 0) level_.clear();
  }

  const AssignorInput& in_;
  const Claims& claims_;
  const RackIndex* const racks_;
  const bool leave_far_;
  AssignorResult& result_;
  std::vector<size_t> counts_;   // by member
  size_t least_ = 0;             // the share of every member
  size_t most_ = 0;
  size_t larger_left_ = 0;       // number of members that may still get most_, if that is one more
  std::vector<int32_t> below_;   // members with fewer than least_ partitions
  std::vector<int32_t> level_;   // members with least_ partitions that may get one more
};

}  // namespace kc
