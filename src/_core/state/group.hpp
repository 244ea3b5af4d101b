// Owns: GroupConfig, Membership, GroupShared and Liveness: what a consumer group's managers and the application know of
// each other. Threads: said per struct. Never: decides anything.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "events/topic_partition.hpp"
#include "state/member_state.hpp"

namespace kc {

// Written on A before N starts.
struct GroupConfig {
  std::string group_id;                  // empty: no group; nothing of the group managers acts then
  std::string group_instance_id;         // empty: dynamic member
  bool consumer_protocol = false;        // group.protocol=consumer (KIP-848)
  bool cooperative = false;              // classic: all strategies are cooperative
  std::string remote_assignor;           // empty: the broker's choice
  std::vector<std::string> strategies;   // classic, by preference: the core's (assignors.hpp) and the application's own
  bool assignors_have_user_data = false;  // one of the application's own has something to say with each subscription
  std::string client_id;
  std::string rack;
  int32_t session_timeout_ms = 45000;
  int32_t heartbeat_interval_ms = 3000;
  int32_t max_poll_interval_ms = 300000;
  bool auto_commit = true;
  int32_t auto_commit_interval_ms = 5000;
  bool auto_offset_store = true;
  bool exclude_internal_topics = true;
};

// thread: N. Who this consumer is in its group at the moment; MembershipManager writes it, the others read it.
struct Membership {
  bool subscribed = false;      // subscribe() is in force; otherwise commits are those of a consumer without group
  bool joined = false;          // a member with a valid epoch: commits may be sent
  std::string member_id;
  int32_t epoch = -1;           // generation (classic) or member epoch (consumer protocol)
  bool joining = false;         // a JoinGroup has been sent: the coordinator may be a generation further (set by
                                // ClassicGroupManager)
  const std::vector<TopicPartition>* owned = nullptr;  // MembershipManager.owned: a partition is ours until its
                                                       // revocation has been acknowledged
  bool owns(const std::string& topic, int32_t partition) const {
    return owned != nullptr && holds_partition(*owned, topic, partition);
  }
};

// How long something that happens again and again takes. Written on N, read anywhere.
struct Timing {
  std::atomic<int64_t> count{0};
  std::atomic<int64_t> latest_us{-1};
  std::atomic<int64_t> longest_us{-1};
  std::atomic<int64_t> total_us{0};
  void add(int64_t us) {
    latest_us.store(us, std::memory_order_relaxed);
    if (us > longest_us.load(std::memory_order_relaxed)) longest_us.store(us, std::memory_order_relaxed);
    total_us.store(total_us.load(std::memory_order_relaxed) + us, std::memory_order_relaxed);
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
};

// Written on N, read on A.
struct GroupShared {
  std::atomic<int32_t> state{MEMBER_UNSUBSCRIBED};
  std::atomic<uint64_t> lost_rebalance_id{0};   // REVOKE and ASSIGN events up to this id mean nothing any more
  Timing rebalances;                            // reconciliations that ended
  std::atomic<int64_t> rebalanced_ms{-1};       // when the latest one ended
  Timing heartbeats;                            // that were answered
  Timing commits;                               // OffsetCommit requests that were answered
  std::atomic<uint64_t> assignor_call{0};       // the one whose answer is awaited; any other means nothing any more

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
  std::atomic<uint64_t> polls{0};       // entries into poll, consume or consume_batch; one writer at a time
  std::atomic<bool> in_poll{false};     // such a call waits, outside of callbacks
  std::atomic<bool> on_loop{false};     // it waits on an event loop, which may be blocked
  void count() { polls.store(polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
};

}  // namespace kc
