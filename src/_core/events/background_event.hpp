// Owns: BackgroundEvent, everything except records that the network thread reports to the application, and the queue.
// Threads: add N, take A; shared: the queue's mutex and the `attention` word. Never: carries a Python object.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "base/counted_mutex.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "base/wakeup_fd.hpp"
#include "events/assignor_call.hpp"
#include "events/merged_commits.hpp"
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

// The status of a commit: the error of its last failed partition.
inline Status commit_status(const std::vector<PartitionOffset>& offsets) {
  for (auto o = offsets.rbegin(); o != offsets.rend(); ++o) {
    if (o->error != 0) {
      return Status(o->error, o->topic + " [" + std::to_string(o->partition) + "]: cannot commit offset " +
                                  std::to_string(o->offset) +
                                  (o->error == ERR_ASSIGNMENT_LOST ? ": the partition was given up in a rebalance"
                                                                   : ""));
    }
  }
  return Status();
}

struct BackgroundEvent {
  BackgroundEventType type = BACKGROUND_ERROR;
  Status status;
  bool fatal = false;
  std::string text;       // STATS: the JSON; THROTTLE: broker name
  int32_t broker_id = -1;
  int64_t number = 0;     // THROTTLE: ms
  std::vector<PartitionOffset> offsets;   // COMMIT: each with its error
  bool whole = false;                     // COMMIT: `status` is that of every offset
  std::shared_ptr<MergedCommits> merged;  // COMMIT: the commits with this result; null: only the one of `offsets`
  std::shared_ptr<const AssignorCall> assignor_call;  // ASSIGNOR

  // COMMIT: the number of commits for which on_commit is called.
  size_t commits() const { return merged ? merged->size() : 1; }
  // COMMIT: takes out the oldest commit: returns its offsets, and its status in `result`.
  std::vector<PartitionOffset> take_commit(Status& result) {
    std::vector<PartitionOffset> named = merged ? merged->take(offsets) : offsets;
    result = whole || !merged ? status : commit_status(named);
    return named;
  }
  // COMMIT: whether the same partitions ended with the same result, so that both can be one event.
  bool ended_as(const BackgroundEvent& other) const {
    if (type != BACKGROUND_COMMIT || whole != other.whole || status.code != other.status.code ||
        offsets.size() != other.offsets.size()) return false;
    for (size_t i = 0; i < offsets.size(); ++i) {
      const PartitionOffset &a = offsets[i], &b = other.offsets[i];
      if (a.partition != b.partition || a.error != b.error || a.topic != b.topic) return false;
    }
    return true;
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
  bool no_bits_except(uint32_t bits) const { return (word_.load() & ~bits) == 0; }
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
  WakeupFd events_ready;                 // readable while events wait: for all other waits, which serve events
  const CommitMemory commit_memory = std::make_shared<std::atomic<int64_t>>(0);
  std::atomic<int64_t> wakes{0};         // writes to `wakeup`

  // A full queue drops news that later news replaces, but no fatal error: nothing follows it. A group waits for its
  // assignor until the rebalance timeout, and every connection waits for a token. on_commit is called for every commit:
  // results of the same partitions become one event then.
  void add(BackgroundEvent e) {
    {
      std::lock_guard<CountedMutex> hold(mutex_);
      const bool full = events_.size() >= kMax;
      if (full && e.type <= BACKGROUND_STATS && !e.fatal) return;
      if (full && events_.back().ended_as(e)) {
        join(events_.back(), e);
      } else {
        events_.push_back(std::move(e));
      }
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
  // Takes back an event that no call has taken. False: a call has taken it, and its callback may be running.
  bool withdraw_rebalance(uint64_t id) {
    std::lock_guard<CountedMutex> hold(mutex_);
    for (auto e = rebalances_.begin(); e != rebalances_.end(); ++e) {
      if (e->id == id) {
        rebalances_.erase(e);
        return true;
      }
    }
    return false;
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

  // `later` becomes part of `first`.
  void join(BackgroundEvent& first, BackgroundEvent& later) {
    for (BackgroundEvent* e : {&first, &later}) {
      if (e->merged) continue;
      std::vector<uint32_t> places(e->offsets.size());
      std::iota(places.begin(), places.end(), 0u);
      e->merged = std::make_shared<MergedCommits>(commit_memory);
      e->merged->add(e->offsets, places, INT64_MAX);
    }
    first.merged->append(*later.merged);
    first.offsets = std::move(later.offsets);
  }

  void signal() {
    wakes.fetch_add(1, std::memory_order_relaxed);
    wakeup.signal();
  }
};

}  // namespace kc
