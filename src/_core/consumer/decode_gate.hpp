// Owns: DecodeGate, which lets either the network thread or a waiting application decode, one at a time.
// Threads: shared: the decoding side holds `decoding_`, `mutex_` guards queue and failures; the rest is atomics.
// Never: chooses which side decodes (ConsumerNetworkThread and FetchDecoder do), makes one side wait for the other: if
// the other side has the gate, a side does other work.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <vector>

#include "managers/fetch_session.hpp"

namespace kc {

enum GateResult : int32_t { GATE_TAKEN, GATE_PASSED, GATE_OUT_OF_MEMORY };

class DecodeGate {
 public:
  using Body = void (*)(void*);

  ~DecodeGate() {
    for (auto& f : failures_) f.partition->release();
  }

  // Runs the body unless the other side decodes. std::bad_alloc unwinds on N, whose thread handles it.
  GateResult pass(Body body, void* arg) {
    std::unique_lock<std::mutex> hold(decoding_, std::try_to_lock);
    if (!hold.owns_lock()) return GATE_TAKEN;
    body(arg);
    return GATE_PASSED;
  }
  // As pass(), for the application, whose thread does not handle std::bad_alloc.
  GateResult pass_caught(Body body, void* arg) {
    try {
      return pass(body, arg);
    } catch (const std::bad_alloc&) {
      return GATE_OUT_OF_MEMORY;
    }
  }

  void give(std::deque<FetchedItem*>& items) {
    std::lock_guard<std::mutex> hold(mutex_);
    queue_.insert(queue_.end(), items.begin(), items.end());
    items.clear();
  }
  void take(std::deque<FetchedItem*>& out) {
    std::lock_guard<std::mutex> hold(mutex_);
    out.insert(out.end(), queue_.begin(), queue_.end());
    queue_.clear();
  }
  void add_failure(const BatchFailure& failure) {
    std::lock_guard<std::mutex> hold(mutex_);
    failures_.push_back(failure);
    failed_.store(true);
  }
  void take_failures(std::vector<BatchFailure>& out) {
    if (!failed_.load(std::memory_order_acquire)) return;
    std::lock_guard<std::mutex> hold(mutex_);
    out.swap(failures_);
    failed_.store(false);
  }
  bool has_failures() const { return failed_.load(); }

  std::atomic<bool> waits{false};                 // written on A: A is in its wait, and decodes received data
  std::atomic<int64_t> left_us{INT64_MIN / 2};    // written on A: time of the last end of its wait
  std::atomic<bool> left_to_application{false};   // written on N: it may sleep although data is undecoded

 private:
  std::mutex decoding_;
  std::mutex mutex_;
  std::deque<FetchedItem*> queue_;
  std::vector<BatchFailure> failures_;
  std::atomic<bool> failed_{false};
};

}  // namespace kc
