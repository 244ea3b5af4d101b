// Owns: GroupConfig, Membership, GroupShared and Liveness: the state that the managers of a consumer group and the
// application share. Threads: each struct names its own. Never: decides anything.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "events/topic_partition.hpp"
#include "state/member_state.hpp"
#include "state/session.hpp"
#include "state/timing.hpp"

namespace kc {

// Written on A before N starts.
struct GroupConfig {
  std::string group_id;                  // empty: no group; the group managers do nothing
  std::string group_instance_id;         // empty: dynamic member
  bool consumer_protocol = false;        // group.protocol=consumer (KIP-848)
  bool cooperative = false;              // classic: all strategies are cooperative
  std::string remote_assignor;           // empty: the broker's choice
  std::vector<std::string> strategies;   // classic, by preference: of the core (assignors.hpp) and of the application
  bool assignors_have_user_data = false;  // an assignor of the application sends user data with each subscription
  std::string client_id;
  std::string rack;
  int32_t session_timeout_ms = 45000;    // consumer protocol: consumer.session.timeout.ms
  int32_t heartbeat_interval_ms = 3000;
  int32_t max_poll_interval_ms = 300000;
  int32_t application_wait_ms = 86400000;  // how long a revocation waits for the application's next call
  bool auto_commit = true;
  int32_t auto_commit_interval_ms = 5000;
  bool auto_offset_store = true;
  bool exclude_internal_topics = true;
};

// thread: N. The current membership of this consumer. MembershipManager writes it, the other managers read it.
struct Membership {
  bool subscribed = false;      // subscribe() is in force; otherwise commits are sent without a membership
  bool joined = false;          // a member with a valid epoch: commits may be sent
  bool leaving = false;         // a leave has begun, and no subscribe() followed: later commits are not a member's
  std::string member_id;
  int32_t epoch = -1;           // generation (classic) or member epoch (consumer protocol)
  bool joining = false;         // a JoinGroup was sent: the coordinator may be one generation ahead (set by
                                // ClassicGroupManager)
  Status fatal;                 // why this consumer can never be a member again; later commits fail with ERR_FATAL
  const std::vector<TopicPartition>* owned = nullptr;  // MembershipManager.owned: this member owns a partition until
                                                       // its revocation is acknowledged
  bool owns(const std::string& topic, int32_t partition) const {
    return owned != nullptr && holds_partition(*owned, topic, partition);
  }
};

// Written on N, read on A.
struct GroupShared {
  std::atomic<int32_t> state{MEMBER_UNSUBSCRIBED};
  Session session;
  std::atomic<uint64_t> lost_rebalance_id{0};   // REVOKE and ASSIGN events up to this id are obsolete
  Timing rebalances;                            // reconciliations that have ended
  std::atomic<int64_t> rebalanced_ms{-1};       // when the latest one ended
  Timing heartbeats;                            // answered heartbeats
  Timing commits;                               // answered OffsetCommit requests
  std::atomic<uint64_t> assignor_call{0};  // the call that waits for an answer; answers to other calls are obsolete

  // For memberid() and consumer_group_metadata().
  void publish(const std::string& member_id, int32_t epoch) {
    std::lock_guard<std::mutex> hold(mutex_);
    member_id_ = member_id;
    epoch_ = epoch;
  }
  void read(std::string& member_id, int32_t& epoch) {
    std::lock_guard<std::mutex> hold(mutex_);
    member_id = member_id_;
    epoch = epoch_;
  }

 private:
  std::mutex mutex_;
  std::string member_id_;
  int32_t epoch_ = -1;
};

// Written on A, sampled on N: whether the application still takes records (max.poll.interval.ms).
struct Liveness {
  std::atomic<uint64_t> polls{0};       // calls of poll, consume or consume_batch; one writer at a time
  std::atomic<bool> in_poll{false};     // a call waits, outside of callbacks
  std::atomic<bool> on_loop{false};     // the call waits on an event loop, which may be blocked
  void count() { polls.store(polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
};

}  // namespace kc
