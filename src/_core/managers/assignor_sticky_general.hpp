// Owns: the sticky algorithm for members with different subscriptions. Owned partitions stay. Free partitions go to the
// member with the fewest. Then partitions move while a move makes the assignment more balanced.
// Threads: any (a pure function); in a consumer N. Never: gives a partition to a member that has not subscribed its
// topic.
//
// Every move goes from a member to one with at least two partitions fewer. So the sum of the squared counts falls and
// the search ends, whatever the members claim.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "managers/assignor_claims.hpp"
#include "managers/assignor_input.hpp"
#include "managers/assignor_racks.hpp"

namespace kc {

// The moves so far. A topic must not have partitions that move from one member to a second and others that move in the
// opposite direction. To avoid that, a partition that moved earlier goes back instead.
class PartitionMoves {
 public:
  explicit PartitionMoves(size_t partition_count) : from_(partition_count, NO_MEMBER) {}

  // The member that had the partition before its first move; `NO_MEMBER` if it has not moved.
  int32_t origin(size_t partition) const { return from_[partition]; }
  // A partition of the topic that moved from the member `from` to the member `to`, or `otherwise`.
  size_t find(int32_t topic, int32_t from, int32_t to, size_t otherwise) const {
    auto found = moved_.find({topic, from, to});
    return found == moved_.end() ? otherwise : *found->second.begin();
  }
  void move(int32_t topic, size_t partition, int32_t from, int32_t to) {
    int32_t origin = from_[partition];
    if (origin != NO_MEMBER) {
      auto record = moved_.find({topic, origin, from});
      record->second.erase(partition);
      if (record->second.empty()) moved_.erase(record);
    } else {
      origin = from;
    }
    from_[partition] = origin == to ? NO_MEMBER : origin;
    if (origin != to) moved_[{topic, origin, to}].insert(partition);
  }

 private:
  std::vector<int32_t> from_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::set<size_t>> moved_;  // by topic, origin and owner
};

class StickyGeneralAssignor {
 public:
  // `racks` is null if racks make no difference. With `leave_far` no member keeps a partition of another rack.
  StickyGeneralAssignor(const AssignorInput& in, const Claims& claims, const RackIndex* racks, bool leave_far,
                        AssignorResult& result)
      : in_(in), claims_(claims), racks_(racks), leave_far_(leave_far), owners_(result.owners),
        counts_(in.members.size(), 0), moves_(in.partition_count), least_loaded_(in.topics.size()) {}

  void run() {
    bool revocation_required = keep_owned();
    order_partitions();
    std::vector<Place> free;
    for (const Place& place : ordered_) {
      if (owners_[place.partition] == NO_MEMBER) free.push_back(place);
    }
    bool initializing = free.size() == ordered_.size();
    if (racks_) give_to_least_loaded(free, true);
    give_to_least_loaded(free, false);
    balance(free, initializing, revocation_required);
    while (return_to_owner()) {
    }
  }

 private:
  struct Place {
    int32_t topic;
    size_t partition;
  };
  struct LeastLoaded {
    int32_t member = NO_MEMBER;
    uint64_t version = 0;  // of counts_, at the time of the search
  };

  // True if a member loses a partition that it still owns, because of its subscription or its rack.
  bool keep_owned() {
    bool lost = false;
    for (int32_t t = 0; t < in_.topic_count(); ++t) {
      const AssignorInput::Topic& topic = topic_at(t);
      for (size_t p = topic.first; p < topic.first + static_cast<size_t>(topic.count); ++p) {
        int32_t owner = claims_.owner(p);
        if (owner == NO_MEMBER) continue;
        if (in_.is_subscribed(owner, t) && (!leave_far_ || in_rack(owner, p))) {
          give(p, owner);
        } else {
          lost = true;
        }
      }
    }
    return lost;
  }
  // Partitions with few subscribers come first.
  void order_partitions() {
    std::vector<int32_t> topics;
    for (int32_t t = 0; t < in_.topic_count(); ++t) topics.push_back(t);
    std::stable_sort(topics.begin(), topics.end(), [this](int32_t a, int32_t b) {
      return subscribers(a).size() < subscribers(b).size();
    });
    ordered_.reserve(in_.partition_count);
    for (int32_t t : topics) {
      const AssignorInput::Topic& topic = topic_at(t);
      for (int32_t p = 0; p < topic.count; ++p) ordered_.push_back({t, topic.first + static_cast<size_t>(p)});
    }
  }

  void give_to_least_loaded(const std::vector<Place>& free, bool within_racks) {
    for (const Place& place : free) {
      if (owners_[place.partition] != NO_MEMBER) continue;
      int32_t chosen = NO_MEMBER;
      for (int32_t m : subscribers(place.topic)) {
        if (within_racks && !in_rack(m, place.partition)) continue;
        if (chosen == NO_MEMBER || count(m) < count(chosen)) chosen = m;
      }
      if (chosen != NO_MEMBER) give(place.partition, chosen);
    }
  }

  void balance(std::vector<Place>& free, bool initializing, bool revocation_required) {
    auto fixed = [this](const Place& place) { return subscribers(place.topic).size() < 2; };
    free.erase(std::remove_if(free.begin(), free.end(), fixed), free.end());
    ordered_.erase(std::remove_if(ordered_.begin(), ordered_.end(), fixed), ordered_.end());
    std::vector<int32_t> movable = movable_members();

    std::vector<int32_t> owners_before = owners_;
    std::vector<int64_t> counts_before = counts_;
    if (!revocation_required) move_to_least_loaded(free);
    bool moved = move_to_least_loaded(ordered_);
    if (moved && !initializing && imbalance_of(movable, counts_) >= imbalance_of(movable, counts_before)) {
      owners_ = owners_before;
      counts_ = counts_before;
    }
  }
  // Members that could have more partitions, or have a partition that other members also want.
  std::vector<int32_t> movable_members() const {
    std::vector<bool> shares(in_.members.size(), false);
    for (const Place& place : ordered_) shares[static_cast<size_t>(owners_[place.partition])] = true;
    std::vector<int32_t> movable;
    for (int32_t m = 0; m < in_.member_count(); ++m) {
      int64_t wanted = 0;
      for (int32_t t : *in_.members[static_cast<size_t>(m)].topics) wanted += topic_at(t).count;
      if (count(m) < wanted || shares[static_cast<size_t>(m)]) movable.push_back(m);
    }
    return movable;
  }
  static int64_t imbalance_of(const std::vector<int32_t>& members, const std::vector<int64_t>& counts) {
    std::vector<int64_t> theirs;
    for (int32_t m : members) theirs.push_back(counts[static_cast<size_t>(m)]);
    return imbalance(std::move(theirs));
  }

  // Repeats over the partitions until none can move. A partition goes to its former owner if that member has too few
  // partitions, else to the subscriber of its topic with the fewest.
  bool move_to_least_loaded(const std::vector<Place>& places) {
    bool moved = false;
    for (bool again = true; again;) {
      again = false;
      for (const Place& place : places) {
        int32_t former = claims_.former_owner(place.partition);
        int32_t next = former != NO_MEMBER && helps(place.partition, former) ? former : least_loaded(place.topic);
        if (!helps(place.partition, next)) continue;
        move(place, next);
        again = moved = true;
      }
    }
    return moved;
  }
  bool helps(size_t partition, int32_t next) const { return count(owners_[partition]) > count(next) + 1; }

  // Undoes needless moves: a partition returns to its owner if the counts of the two members only change places, or in
  // exchange for another partition without a reason to stay. Racks have priority. True if any partition returned.
  bool return_to_owner() {
    std::vector<std::vector<Place>> not_owned_before(in_.members.size());  // by member: those it did not own
    for (const Place& place : ordered_) {
      int32_t owner = owners_[place.partition];
      if (home(place) != owner) not_owned_before[static_cast<size_t>(owner)].push_back(place);
    }
    bool moved = false;
    for (const Place& place : ordered_) {
      int32_t owner = owners_[place.partition], to = home(place);
      if (to == NO_MEMBER || to == owner || !as_near(to, place, owner)) continue;
      std::vector<Place>& candidates = not_owned_before[static_cast<size_t>(to)];
      auto exchanged = candidates.end();
      if (count(owner) != count(to) + 1) {
        exchanged = std::find_if(candidates.begin(), candidates.end(), [&](const Place& other) {
          return owners_[other.partition] == to && in_.is_subscribed(owner, other.topic) && as_near(owner, other, to);
        });
        if (exchanged == candidates.end()) continue;
        hand_over(*exchanged, owner);
        candidates.erase(exchanged);
      }
      hand_over(place, to);
      moved = true;
    }
    return moved;
  }
  // The member that owned the partition and still subscribes its topic, or `NO_MEMBER`.
  int32_t home(const Place& place) const {
    int32_t owner = claims_.owner(place.partition);
    return owner != NO_MEMBER && in_.is_subscribed(owner, place.topic) ? owner : NO_MEMBER;
  }
  bool as_near(int32_t next, const Place& place, int32_t owner) const {
    return in_rack(next, place.partition) || !in_rack(owner, place.partition);
  }
  void hand_over(const Place& place, int32_t next) {
    --counts_[static_cast<size_t>(owners_[place.partition])];
    give(place.partition, next);
  }

  // Give `next` one more partition of this topic: this partition, or one that goes back to it.
  void move(const Place& place, int32_t next) {
    int32_t owner = owners_[place.partition], origin = moves_.origin(place.partition);
    int32_t start = origin == NO_MEMBER ? owner : origin;
    size_t returning = moves_.find(place.topic, next, start, place.partition);
    if (returning == place.partition) return transfer(place, next);
    bool start_can_spare = helps(returning, next);
    transfer({place.topic, returning}, next);
    if (!start_can_spare) transfer(place, start);  // both return to their owners: `start` keeps its count
  }
  void transfer(const Place& place, int32_t next) {
    int32_t owner = owners_[place.partition];
    moves_.move(place.topic, place.partition, owner, next);
    hand_over(place, next);
  }
  int32_t least_loaded(int32_t topic) {
    LeastLoaded& least = least_loaded_[static_cast<size_t>(topic)];
    if (least.version == version_) return least.member;
    least.version = version_;
    least.member = NO_MEMBER;
    for (int32_t m : subscribers(topic)) {
      if (least.member == NO_MEMBER || count(m) < count(least.member)) least.member = m;
    }
    return least.member;
  }

  void give(size_t partition, int32_t member) {
    owners_[partition] = member;
    ++counts_[static_cast<size_t>(member)];
    ++version_;
  }
  bool in_rack(int32_t member, size_t partition) const {
    return !racks_ || racks_->matches(racks_->of_member(member), partition);
  }
  int64_t count(int32_t member) const { return counts_[static_cast<size_t>(member)]; }
  const AssignorInput::Topic& topic_at(int32_t topic) const { return in_.topics[static_cast<size_t>(topic)]; }
  const std::vector<int32_t>& subscribers(int32_t topic) const { return *topic_at(topic).subscribers; }

  const AssignorInput& in_;
  const Claims& claims_;
  const RackIndex* const racks_;
  const bool leave_far_;
  std::vector<int32_t>& owners_;  // the result
  std::vector<int64_t> counts_;   // by member
  uint64_t version_ = 1;          // of counts_
  PartitionMoves moves_;
  std::vector<LeastLoaded> least_loaded_;  // by topic
  std::vector<Place> ordered_;    // all partitions; during balancing, only partitions that several members want
};

}  // namespace kc
