// Owns: StickyAssignor, the sticky and cooperative-sticky assignors: it selects one of the two algorithms, decides
// whether racks justify a move, and withholds partitions in a cooperative group.
// Threads: any (a pure function); in a consumer N. Never: keeps state between two rebalances.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "managers/assignment.hpp"
#include "managers/assignor_claims.hpp"
#include "managers/assignor_input.hpp"
#include "managers/assignor_racks.hpp"
#include "managers/assignor_sticky_equal.hpp"
#include "managers/assignor_sticky_general.hpp"

namespace kc {

class StickyAssignor {
 public:
  StickyAssignor(AssignorKind kind, const AssignorInput& in, AssignorResult& result)
      : in_(in), result_(result), claims_(kind, in), racks_(in), cooperative_(kind == ASSIGNOR_COOPERATIVE_STICKY) {
    racks_useful_ = racks_.any() && racks_.useful(0, in.partition_count, in.all_members());
  }

  void run() {
    choose(claims_, false, result_);
    if (racks_useful_ && (!cooperative_ || claims_.complete())) prefer_nearer();
    if (cooperative_) withhold(claims_, result_);
  }

 private:
  // With `leave_far` members lose partitions that they read from another rack, and may get nearer ones.
  void choose(const Claims& claims, bool leave_far, AssignorResult& result) const {
    const RackIndex* racks = racks_useful_ ? &racks_ : nullptr;
    if (in_.subscriptions_equal) {
      StickyEqualAssignor(in_, claims, racks, leave_far, result).run();
    } else {
      StickyGeneralAssignor(in_, claims, racks, leave_far, result).run();
    }
  }

  // A partition that changes its owner is withheld. Its owner learns that it lost the partition, gives it up and joins
  // again; the second rebalance assigns the partition. True if there is any.
  static bool withhold(const Claims& claims, AssignorResult& result) {
    bool any = false;
    for (size_t p = 0; p < result.owners.size(); ++p) {
      if (!claims.held_by_another(p, result.owners[p])) continue;
      result.owners[p] = NO_MEMBER;
      any = true;
    }
    return any;
  }

  // Moves towards nearer racks are made only if they lead to a better assignment. A cooperative group reaches the
  // result only after the next rebalances. Those begin with partitions without an owner, and make no such moves:
  // balancing could put a partition into another rack, the next rebalance would take it away again, and this would
  // never end. (Groups of the Java client can enter such a loop.)
  void prefer_nearer() {
    AssignorResult nearer(in_);
    choose(claims_, true, nearer);
    if (badness(settled(nearer)) < badness(settled(result_))) result_ = std::move(nearer);
  }
  // The final assignment of a group that starts with `result` and makes no further moves towards nearer racks.
  AssignorResult settled(AssignorResult result) const {
    if (!cooperative_ || !withhold(claims_, result)) return result;
    for (int round = 0; round < MAX_ROUNDS; ++round) {
      const Claims claims(result.owners);
      AssignorResult next(in_);
      choose(claims, false, next);
      result = next;
      if (!withhold(claims, result)) break;
    }
    return result;
  }
  // Lower is better: first the imbalance, then the number of partitions without a replica in the rack of their member.
  std::pair<int64_t, size_t> badness(const AssignorResult& result) const {
    std::vector<int64_t> counts(in_.members.size(), 0);
    size_t far = 0;
    for (size_t p = 0; p < result.owners.size(); ++p) {
      int32_t owner = result.owners[p];
      if (owner != NO_MEMBER) ++counts[static_cast<size_t>(owner)];
      if (owner == NO_MEMBER || !racks_.matches(racks_.of_member(owner), p)) ++far;
    }
    return {imbalance(std::move(counts)), far};
  }

  static constexpr int MAX_ROUNDS = 8;  // two are already rare

  const AssignorInput& in_;
  AssignorResult& result_;
  const Claims claims_;
  const RackIndex racks_;
  const bool cooperative_;
  bool racks_useful_ = false;
};

}  // namespace kc
