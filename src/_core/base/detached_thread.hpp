// Owns: starting a thread that nobody joins. Threads: any. Never: gives it a signal; keeps what it works on alive (the
// argument does, a shared_ptr on the heap as a rule).
#pragma once
#include <pthread.h>
#include <signal.h>

namespace kc {

// Returns 0 or an errno; then `argument` is still the caller's.
inline int start_detached(void* (*run)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  const int rc = pthread_create(&thread, &attributes, run, argument);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  pthread_attr_destroy(&attributes);
  return rc;
}

}  // namespace kc
