// Owns: the range assignor: it cuts the partitions of every topic into consecutive ranges, one per subscriber. With
// racks (KIP-881), members first get partitions that they read from their own rack, within the sizes of the ranges.
// Threads: any (a pure function); in a consumer N. Never: uses the members' earlier partitions.
//
// Topics with the same subscribers and the same number of partitions stay co-partitioned: a member gets the same
// partition numbers of all of them. This has priority over racks.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "managers/assignor_input.hpp"
#include "managers/assignor_racks.hpp"

namespace kc {

class RangeAssignor {
 public:
  RangeAssignor(const AssignorInput& in, AssignorResult& result) : in_(in), racks_(in), result_(result) {}

  void run() {
    number_in_order_served();
    if (racks_.any()) {
      run_with_racks();
      return;
    }
    for (const AssignorInput::Topic& topic : in_.topics) {
      Shares shares = shares_of(topic);
      give_ranges(shares, false);
    }
  }

 private:
  // One topic during its assignment.
  struct Shares {
    const AssignorInput::Topic* topic = nullptr;
    std::vector<int32_t> members;  // in the order of service
    std::vector<int32_t> given;    // number of partitions given to each
    int32_t share = 0;             // minimum for every member
    int32_t larger_left = 0;       // number of members that may still get one more
    bool racks_useful = false;

    int32_t room(size_t i) const { return std::max(0, share + (larger_left > 0 ? 1 : 0) - given[i]); }
    void gave(size_t i, int32_t count) {
      given[i] += count;
      if (given[i] > share) --larger_left;
    }
  };

  void run_with_racks() {
    std::vector<Shares> topics;
    bool useful = false;
    for (const AssignorInput::Topic& topic : in_.topics) {
      topics.push_back(shares_of(topic));
      useful |= topics.back().racks_useful;
    }
    if (useful) match_racks(topics);
    for (Shares& shares : topics) give_ranges(shares, false);
  }

  void number_in_order_served() {
    for (int32_t m = 0; m < in_.member_count(); ++m) served_.push_back(m);
    std::sort(served_.begin(), served_.end(), [this](int32_t a, int32_t b) {
      return serves_before(*in_.members[static_cast<size_t>(a)].input, *in_.members[static_cast<size_t>(b)].input);
    });
    turn_.resize(served_.size());
    for (size_t i = 0; i < served_.size(); ++i) turn_[static_cast<size_t>(served_[i])] = static_cast<int32_t>(i);
  }

  Shares shares_of(const AssignorInput::Topic& topic) const {
    Shares shares;
    shares.topic = &topic;
    if (topic.subscribers == &in_.all_members()) {
      shares.members = served_;
    } else {
      shares.members = *topic.subscribers;
      std::sort(shares.members.begin(), shares.members.end(), [this](int32_t a, int32_t b) {
        return turn_[static_cast<size_t>(a)] < turn_[static_cast<size_t>(b)];
      });
    }
    auto members = static_cast<int32_t>(shares.members.size());
    shares.given.assign(shares.members.size(), 0);
    shares.share = topic.count / members;
    shares.larger_left = topic.count % members;
    shares.racks_useful = racks_.any() && racks_.useful(topic.first, static_cast<size_t>(topic.count), shares.members);
    return shares;
  }

  // The remaining partitions go to the members in order, to each as many as it may still get.
  void give_ranges(Shares& shares, bool only_matching_racks) {
    std::vector<int32_t> left;
    for (int32_t p = 0; p < shares.topic->count; ++p) {
      if (owner(shares, p) == NO_MEMBER) left.push_back(p);
    }
    for (size_t i = 0; i < shares.members.size() && !left.empty(); ++i) {
      int32_t room = shares.room(i), taken = 0;
      if (room == 0) continue;
      int32_t rack = only_matching_racks ? racks_.of_member(shares.members[i]) : NO_RACK;
      left.erase(std::remove_if(left.begin(), left.end(), [&](int32_t p) {
        if (taken == room || (rack != NO_RACK && !racks_.matches(rack, partition(shares, p)))) return false;
        owner(shares, p) = shares.members[i];
        ++taken;
        return true;
      }), left.end());
      shares.gave(i, taken);
    }
  }

  void match_racks(std::vector<Shares>& topics) {
    std::map<std::pair<std::vector<int32_t>, int32_t>, std::vector<Shares*>> alike;
    for (Shares& shares : topics) alike[{shares.members, shares.topic->count}].push_back(&shares);
    for (auto& [key, group] : alike) {
      if (group.size() > 1) {
        match_racks_of_copartitioned(group);
      } else if (group.front()->racks_useful) {
        give_ranges(*group.front(), true);
      }
    }
  }

  // A partition number goes to the first member with room whose rack has that partition of every topic.
  void match_racks_of_copartitioned(const std::vector<Shares*>& group) {
    Shares& all = *group.front();  // all topics of the group are assigned alike, so the first one represents all
    std::vector<size_t> remaining;
    for (size_t i = 0; i < all.members.size(); ++i) remaining.push_back(i);
    for (int32_t p = 0; p < all.topic->count && !remaining.empty(); ++p) {
      auto found = std::find_if(remaining.begin(), remaining.end(), [&](size_t i) {
        if (all.room(i) == 0) return false;
        int32_t rack = racks_.of_member(all.members[i]);
        return std::all_of(group.begin(), group.end(),
                           [&](Shares* s) { return racks_.matches(rack, partition(*s, p)); });
      });
      if (found == remaining.end()) continue;
      size_t i = *found;
      for (Shares* shares : group) {
        owner(*shares, p) = shares->members[i];
        shares->gave(i, 1);
      }
      if (all.room(i) == 0) remaining.erase(found);
    }
  }

  static size_t partition(const Shares& shares, int32_t p) { return shares.topic->first + static_cast<size_t>(p); }
  int32_t& owner(const Shares& shares, int32_t p) { return result_.owners[partition(shares, p)]; }

  const AssignorInput& in_;
  const RackIndex racks_;
  AssignorResult& result_;
  std::vector<int32_t> served_;  // member numbers in the order of service
  std::vector<int32_t> turn_;    // the inverse of served_
};

}  // namespace kc
