// Owns: BackgroundEvent, everything except records that the network thread reports to the application, and the queue.
// Threads: add N, take A; shared: the queue's mutex and the `attention` word. Never: carries a Python object.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/counted_mutex.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "base/wakeup_fd.hpp"
#include "events/assignor_call.hpp"
#include "events/rebalance_event.hpp"

namespace kc {

enum BackgroundEventType : int32_t {
  BACKGROUND_ERROR,     // error_cb; poll() returns fatal ones too
  BACKGROUND_THROTTLE,  // throttle_cb
  BACKGROUND_STATS,     // stats_cb
  BACKGROUND_COMMIT,    // on_commit
  BACKGROUND_ASSIGNOR,  // call an assignor of the application; AssignorAnswerEvent carries the result
  BACKGROUND_TOKEN,     // call oauth_cb
};

// Commits without a waiting caller that a newer commit of the same partitions replaced before they were sent. on_commit
// is called for each, with the result of the newer commit. N fills it; A reads it after it is published.
struct MergedCommits {
  std::vector<int64_t> offsets;         // in the partition order of the newer commit; the oldest commit first
  std::vector<int32_t> leader_epochs;
  uint64_t beyond = 0;  // commits whose offsets were not kept: they are reported with the offsets of the newer commit
  size_t told = 0;                      // A: how many commits on_commit was called for
  int64_t deadline_ms = INT64_MAX;      // N: the deadline of the oldest commit
};

struct BackgroundEvent {
  BackgroundEventType type = BACKGROUND_ERROR;
  Status status;
  bool fatal = false;
  std::string text;       // STATS: the JSON; THROTTLE: broker name
  int32_t broker_id = -1;
  int64_t number = 0;     // THROTTLE: ms
  std::vector<PartitionOffset> offsets;  // COMMIT: each with its error
  std::shared_ptr<MergedCommits> merged;  // COMMIT: older commits with the same result; null: none
  bool only_merged = false;               // COMMIT: the newer commit itself has not ended
  // COMMIT: the number of commits with this result, and the offsets of each, the oldest first.
  size_t commits() const { return merged_commits() + (only_merged ? 0 : 1); }
  std::vector<PartitionOffset> commit(size_t index) const {
    std::vector<PartitionOffset> named = offsets;
    const size_t first = index * offsets.size();
    if (index < merged_commits() && first < merged->offsets.size()) {
      for (size_t i = 0; i < named.size(); ++i) {
        named[i].offset = merged->offsets[first + i];
        named[i].leader_epoch = merged->leader_epochs[first + i];
      }
    }
    return named;
  }
  std::shared_ptr<const AssignorCall> assignor_call;  // ASSIGNOR

 private:
  size_t merged_commits() const {
    return merged ? merged->offsets.size() / offsets.size() + merged->beyond : 0;
  }
};

// Why an exclusive call must leave its fast path. One word; poll() reads it once per call.
enum Attention : uint32_t {
  ATTENTION_CONTROL = 1,     // assignment, position or pause changed: check the buffered records again
  ATTENTION_EVENTS = 2,      // background events or log lines are in the queue
  ATTENTION_WAKEUP = 4,      // wakeup() was called, and no call has raised it yet
  ATTENTION_CLOSED = 8,
  ATTENTION_FATAL = 16,      // a fatal error is set
  ATTENTION_REBALANCE = 32,  // rebalance events are in the queue; only an exclusive call takes them
  ATTENTION_COMMIT = 64,     // the interval's commit is due, for records returned before this call
};

class AttentionWord {
 public:
  uint32_t get() const { return word_.load(std::memory_order_acquire); }
  bool quiet() const { return word_.load(std::memory_order_relaxed) == 0; }
  bool quiet_but(uint32_t bits) const { return (word_.load() & ~bits) == 0; }
  void set(uint32_t bits) { word_.fetch_or(bits, std::memory_order_acq_rel); }
  uint32_t clear(uint32_t bits) { return word_.fetch_and(~bits, std::memory_order_acq_rel) & bits; }

 private:
  std::atomic<uint32_t> word_{0};
};

class BackgroundEventQueue {
 public:
  static constexpr size_t kMax = 10000;
  AttentionWord attention;
  LogQueue log;
  WakeupFd wakeup;                       // readable: records, events or a wakeup() for the exclusive call
  std::atomic<bool> waiting{false};      // an exclusive call waits on `wakeup` or will wait now
  WakeupFd events_ready;  // readable while the queue has events: for all other waits, which also serve events
  std::atomic<int64_t> dropped{0};
  std::atomic<int64_t> wakes{0};         // writes to `wakeup`

  void add(BackgroundEvent e) {
    {
      std::lock_guard<CountedMutex> hold(mutex_);
      // Never drop these: a group waits for its assignor, and every connection waits for a token.
      if (events_.size() >= kMax && e.type != BACKGROUND_ASSIGNOR && e.type != BACKGROUND_TOKEN) {
        dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      events_.push_back(std::move(e));
    }
    announce();
  }
  // Put the event back at the front for the next call: a callback raised before the event was finished.
  void put_back(BackgroundEvent e) {
    std::lock_guard<CountedMutex> hold(mutex_);
    events_.push_front(std::move(e));
  }
  bool take(BackgroundEvent& out) {
    std::lock_guard<CountedMutex> hold(mutex_);
    if (events_.empty()) return false;
    out = std::move(events_.front());
    events_.pop_front();
    return true;
  }
  void add_rebalance(RebalanceEvent e) {
    {
      std::lock_guard<CountedMutex> hold(mutex_);
      rebalances_.push_back(std::move(e));
    }
    attention.set(ATTENTION_REBALANCE);
    wake();
  }
  bool take_rebalance(RebalanceEvent& out) {
    std::lock_guard<CountedMutex> hold(mutex_);
    if (rebalances_.empty()) return false;
    out = std::move(rebalances_.front());
    rebalances_.pop_front();
    return true;
  }
  size_t size() {
    std::lock_guard<CountedMutex> hold(mutex_);
    return events_.size();
  }
  // The queue has events or log lines.
  void announce() {
    attention.set(ATTENTION_EVENTS);
    events_ready.signal();
    wake();
  }
  // Ends the wait of the exclusive call, if it waits: one write per change from idle to ready.
  void wake() {
    if (waiting.load(std::memory_order_seq_cst) && waiting.exchange(false)) signal();
  }
  void force_wake() {
    waiting.store(false);
    signal();
  }
  int64_t locks_taken() const { return mutex_.taken(); }

 private:
  CountedMutex mutex_;
  std::deque<BackgroundEvent> events_;
  std::deque<RebalanceEvent> rebalances_;

  void signal() {
    wakes.fetch_add(1, std::memory_order_relaxed);
    wakeup.signal();
  }
};

}  // namespace kc
