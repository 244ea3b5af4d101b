// Owns: SaslWorker, the helper threads (H) for slow steps: Kerberos uses the network, SCRAM derives a key.
// Threads: every method N; run(): H; shared: SaslWorkerState under its mutex.
// Never: makes N wait, has a thread that must be joined: H is detached and owns the state and its step through
// shared_ptrs.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "base/detached_thread.hpp"
#include "network/sasl_mechanism.hpp"
#include "network/selector.hpp"

namespace kc {

struct SaslStep {
  std::shared_ptr<SaslMechanism> mechanism;  // only H uses it until `finished`
  Secret message;
  bool first = false;
  Secret out;
  std::string why;
  SaslOutcome outcome = SASL_FAILED;
  std::atomic<bool> abandoned{false};  // the connection is closed: H need not start the step
  std::atomic<bool> finished{false};

  void run() {
    outcome = mechanism->step(message.data(), message.size(), first, &out, &why);
    message.clear();
  }
};

// shared: mutex. Contains every field that H uses.
struct SaslWorkerState {
  std::mutex mutex;
  std::deque<std::shared_ptr<SaslStep>> waiting;
  Selector* selector = nullptr;  // null after the client's close
  int threads = 0;
};

class SaslWorker {
 public:
  // Further steps wait for a free thread. A KDC that hangs blocks only one thread.
  static constexpr int kMaxThreads = 8;

  SaslWorker() : state_(std::make_shared<SaslWorkerState>()) {}
  void open(Selector* selector) {
    std::lock_guard<std::mutex> hold(state_->mutex);
    state_->selector = selector;
  }
  // Does not wait for running steps; their threads no longer wake the selector.
  void close() {
    std::lock_guard<std::mutex> hold(state_->mutex);
    state_->selector = nullptr;
    state_->waiting.clear();
  }
  // For the child of a fork, where a thread that does not exist can hold the mutex: leaks the state.
  void abandon() { new std::shared_ptr<SaslWorkerState>(state_); }

  // Returns 0 or an errno. The thread wakes the selector after `step`.
  int start(const std::shared_ptr<SaslStep>& step) {
    std::lock_guard<std::mutex> hold(state_->mutex);
    state_->waiting.push_back(step);
    if (state_->threads >= kMaxThreads) return 0;
    const int rc = start_detached(&SaslWorker::run, state_);
    if (rc == 0) {
      state_->threads++;
    } else if (state_->threads == 0) {
      state_->waiting.clear();
      return rc;
    }
    return 0;
  }

 private:
  // thread: H. Works until no step is left.
  static void run(SaslWorkerState& state) {
    std::unique_lock<std::mutex> hold(state.mutex);
    while (!state.waiting.empty()) {
      std::shared_ptr<SaslStep> step = std::move(state.waiting.front());
      state.waiting.pop_front();
      hold.unlock();
      work(*step);
      step.reset();
      hold.lock();
      if (state.selector) state.selector->wakeup();
    }
    state.threads--;
  }

  // thread: H.
  static void work(SaslStep& step) {
    if (step.abandoned.load()) return;
    try {
      step.run();
    } catch (const std::bad_alloc&) {
      step.outcome = SASL_FAILED;  // `why` may be empty: the reporting code adds the context
    }
    step.finished.store(true);
  }

  std::shared_ptr<SaslWorkerState> state_;  // shared: its mutex
};

}  // namespace kc
