// Owns: the process's fork generation, so that a consumer notices that it is in a child without asking getpid() per call.
// Threads: any. Never: runs anything but one increment in the child.
//
// Each extension module that includes this has a copy of its own; only consumer_core uses it.
#pragma once
#include <pthread.h>

namespace kc {

inline volatile unsigned long fork_count = 0;

inline void note_fork() { fork_count = fork_count + 1; }

inline void watch_forks() {
  static const int once = pthread_atfork(nullptr, nullptr, note_fork);
  (void)once;
}

inline unsigned long fork_generation() { return fork_count; }

}  // namespace kc
