// Owns: the handler that counts forks; pthread_atfork() needs a C function.
// Threads: any; the handler runs in the child, on its only thread. Never: does more than one increment in the child.
#pragma once
#include <pthread.h>

namespace kc {

// watch_forks() sets it. Only base/fork.pxi calls watch_forks(): that module has the counter that all modules share.
static volatile unsigned long* watched_fork_count = nullptr;

static void note_fork() { *watched_fork_count = *watched_fork_count + 1; }

static int watch_forks(volatile unsigned long* count) {
  watched_fork_count = count;
  return pthread_atfork(nullptr, nullptr, note_fork);
}

}  // namespace kc
