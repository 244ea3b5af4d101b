// Owns: Ownership, the partitions that this member owns, gives up and takes, its target, and the report of an unanswered
// heartbeat. All lists are sorted. Threads: N. Never: runs a callback, reads the state of the member.
//
// KIP-848: the coordinator treats what a heartbeat does not report as free. It may give it to other members at once, and
// says so in its answer. A heartbeat reports less than the target while a topic's name is looked up, or while an
// earlier target is being taken. Partitions are therefore taken in one place, take(). It takes nothing if an unanswered
// heartbeat did not report all of it (test_a_partition_that_a_heartbeat_gave_away_is_not_taken_before_its_answer).
#pragma once
#include <vector>

#include "events/topic_partition.hpp"

namespace kc {

class Ownership {
 public:
  using Partitions = std::vector<TopicPartition>;

  // ---- what the member has
  const Partitions& owned() const { return owned_; }          // of the application; it has not given them up
  const Partitions& revoking() const { return revoking_; }    // on_revoke runs, or their offsets are being committed
  const Partitions& assigning() const { return assigning_; }  // on_assign runs
  const Partitions& target() const { return target_; }        // the newest one
  Partitions ours() const { return partitions_with(owned_, assigning_); }
  Partitions claimed() const { return partitions_with(ours(), revoking_); }  // no other member may have them

  // ---- the target
  void aim_at(const Partitions& target) {
    target_ = target;
    waits_ = true;
  }
  void drop_target() { waits_ = false; }
  bool waits() const { return waits_; }

  // Begins to reconcile with the target that waits: revoking() comes first. False: none waits, or it must wait longer.
  bool begin() {
    if (!waits_ || !may_take()) return false;
    waits_ = false;
    revoking_ = partitions_without(owned_, target_);
    return true;
  }

  // Gives these up outside of a target (classic, before it joins).
  void give_up(const Partitions& partitions) {
    waits_ = false;
    revoking_ = partitions;
  }
  void given_up() { owned_ = partitions_without(owned_, revoking_); }  // on_revoke has run
  void committed() { revoking_.clear(); }                              // and its offsets are stored

  // Begins to take the rest of the target. False: the coordinator may have given some of it away.
  bool take() {
    if (!may_take()) return false;
    assigning_ = partitions_without(target_, owned_);
    return true;
  }
  void taken(const Partitions& owned) {  // on_assign has run; the application may have left some of them
    owned_ = owned;
    assigning_.clear();
  }

  void untake() { assigning_.clear(); }  // the application has seen nothing of them

  // ---- ends
  void lose() {  // until on_lost has run, they are the application's
    owned_ = ours();
    revoking_.clear();
    assigning_.clear();
    waits_ = false;
  }
  void clear() {
    lose();
    owned_.clear();
  }

  // ---- heartbeats
  void report(const Partitions& reported) {
    reported_ = reported;
    unanswered_ = true;
  }
  void answered() { unanswered_ = false; }
  void begin_session() { unanswered_ = waits_ = false; }

 private:
  bool may_take() const {
    return !unanswered_ || partitions_without(partitions_without(target_, owned_), reported_).empty();
  }

  Partitions owned_, revoking_, assigning_, target_, reported_;
  bool waits_ = false;       // the target has not been begun
  bool unanswered_ = false;  // a heartbeat reported `reported_`
};

}  // namespace kc
