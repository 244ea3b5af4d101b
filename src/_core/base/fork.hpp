// Owns: the handler that counts a fork, which must be C.
// Threads: any; the handler runs in the child, where there is one. Never: runs anything but one increment in the child.
#pragma once
#include <pthread.h>

namespace kc {

// Set by watch_forks(), which base/fork.pyx alone calls: the counter itself lies in that module, one for all.
static volatile unsigned long* watched_fork_count = nullptr;

static void note_fork() { *watched_fork_count = *watched_fork_count + 1; }

static int watch_forks(volatile unsigned long* count) {
  watched_fork_count = count;
  return pthread_atfork(nullptr, nullptr, note_fork);
}

}  // namespace kc
