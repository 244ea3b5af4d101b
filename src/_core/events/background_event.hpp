// Owns: BackgroundEvent, the network thread's news to the application besides records, and their queue.
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
  BACKGROUND_ERROR,     // error_cb; fatal ones also reach poll()
  BACKGROUND_THROTTLE,  // throttle_cb
  BACKGROUND_STATS,     // stats_cb
  BACKGROUND_COMMIT,    // on_commit
  BACKGROUND_ASSIGNOR,  // call an assignor of the application; answered by an AssignorAnswerEvent
  BACKGROUND_TOKEN,     // call oauth_cb
};

// Commits of the application without a waiting caller, superseded by a newer commit of the same partitions before they
// were sent. on_commit is called for each with the result of the newer one. N fills it; A reads it once it is published.
struct MergedCommits {
  std::vector<int64_t> offsets;         // partition by partition as in the newer commit; the oldest commit first
  std::vector<int32_t> leader_epochs;
  uint64_t beyond = 0;                  // commits whose own offsets were not kept: reported with those of the newer one
  size_t told = 0;                      // A: how many commits on_commit was called for
  int64_t deadline_ms = INT64_MAX;      // N: of the oldest
};

struct BackgroundEvent {
  BackgroundEventType type = BACKGROUND_ERROR;
  Status status;
  bool fatal = false;
  std::string text;       // STATS: the JSON; THROTTLE: broker name
  int32_t broker_id = -1;
  int64_t number = 0;     // THROTTLE: ms
  std::vector<PartitionOffset> offsets;  // COMMIT: with the error of each
  std::shared_ptr<MergedCommits> merged;  // COMMIT: older commits with the same result; null: none
  bool only_merged = false;               // COMMIT: the newer commit itself has not ended
  // COMMIT: how many commits this is the result of, and what each of them named, the oldest first.
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

// Why an exclusive call must leave its fast path. One word, read once per poll().
enum Attention : uint32_t {
  ATTENTION_CONTROL = 1,     // assignment, position or pause changed: re-validate what is in hand
  ATTENTION_EVENTS = 2,      // background events or log lines wait
  ATTENTION_WAKEUP = 4,      // wakeup() was called and has not been raised yet
  ATTENTION_CLOSED = 8,
  ATTENTION_FATAL = 16,      // a fatal error is set
  ATTENTION_REBALANCE = 32,  // rebalance events wait; only an exclusive call takes them
  ATTENTION_COMMIT = 64,     // the interval's commit is due: of what was returned before this entry
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
  std::atomic<bool> waiting{false};      // an exclusive call is about to wait or waits on `wakeup`
  WakeupFd events_ready;                 // readable while events wait: for the other waits, which serve them too
  std::atomic<int64_t> dropped{0};
  std::atomic<int64_t> wakes{0};         // writes to `wakeup`

  void add(BackgroundEvent e) {
    {
      std::lock_guard<CountedMutex> hold(mutex_);
      // A group waits for its assignor, and every connection for a token.
      if (events_.size() >= kMax && e.type != BACKGROUND_ASSIGNOR && e.type != BACKGROUND_TOKEN) {
        dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      events_.push_back(std::move(e));
    }
    announce();
  }
  // Back to the front, for the next call: a callback raised and something of the event is left.
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
  // Events or log lines are there.
  void announce() {
    attention.set(ATTENTION_EVENTS);
    events_ready.signal();
    wake();
  }
  // Ends the wait of the exclusive call, if it waits: one write per idle → ready edge.
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
