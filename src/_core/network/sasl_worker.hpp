// Owns: SaslWorker, the helper threads (H) on which slow steps of mechanisms run: Kerberos asks the network, SCRAM counts.
// Threads: every method N; run(): H; shared: SaslWorkerState under its mutex.
// Never: makes N wait; outlives a close with a thread that needs a join: H is detached and owns the state and the
// step it works on through shared_ptrs.
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
  std::shared_ptr<SaslMechanism> mechanism;  // H's alone until `finished`
  Secret message;
  bool first = false;
  Secret out;
  std::string why;
  SaslOutcome outcome = SASL_FAILED;
  std::atomic<bool> abandoned{false};  // the connection is gone: need not begin
  std::atomic<bool> finished{false};

  void run() {
    outcome = mechanism->step(message.data(), message.size(), first, &out, &why);
    message.clear();
  }
};

// shared: mutex. Every field that H touches is here.
struct SaslWorkerState {
  std::mutex mutex;
  std::deque<std::shared_ptr<SaslStep>> waiting;
  Selector* selector = nullptr;  // null once the client has closed
  int threads = 0;
};

class SaslWorker {
 public:
  // A KDC that hangs holds one thread; more steps than this wait their turn.
  static constexpr int kMaxThreads = 8;

  SaslWorker() : state_(std::make_shared<SaslWorkerState>()) {}
  void open(Selector* selector) {
    std::lock_guard<std::mutex> hold(state_->mutex);
    state_->selector = selector;
  }
  // Running steps are left alone; their threads no longer wake the selector.
  void close() {
    std::lock_guard<std::mutex> hold(state_->mutex);
    state_->selector = nullptr;
    state_->waiting.clear();
  }
  // In the child of a fork the mutex may be held by a thread that does not exist: it is not touched again.
  void abandon() { new std::shared_ptr<SaslWorkerState>(state_); }

  // Returns 0 or an errno; the selector is woken when `step` is finished.
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
