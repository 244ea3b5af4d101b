// Owns: starting a thread that is never joined, and the reference to its work that keeps the work alive.
// Threads: any. Never: sends the thread a signal.
#pragma once
#include <pthread.h>

#include <memory>
#include <utility>

#include "base/thread.hpp"

namespace kc {

template <class State>
struct DetachedWork {
  void (*work)(State&);
  std::shared_ptr<State> state;

  static void* run(void* started) {
    std::unique_ptr<DetachedWork> own(static_cast<DetachedWork*>(started));
    own->work(*own->state);
    return nullptr;
  }
};

// Runs `work` on `state` in a new thread, which keeps `state` alive until `work` returns. Returns 0 or an errno.
template <class State>
int start_detached(void (*work)(State&), std::shared_ptr<State> state) {
  std::unique_ptr<DetachedWork<State>> started(new DetachedWork<State>{work, std::move(state)});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int rc = create_thread(&thread, &attributes, &DetachedWork<State>::run, started.get());
  pthread_attr_destroy(&attributes);
  if (rc == 0) started.release();
  return rc;
}

}  // namespace kc
