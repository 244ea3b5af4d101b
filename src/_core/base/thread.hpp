// Owns: starting and joining a native thread, and the entry function that turns a failed allocation into a flag.
// Threads: start/join on A, the body on the new thread. Never: knows Python; the body must not take the GIL.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <new>

namespace kc {

// Returns 0 or an errno. The new thread blocks all signals, so that Ctrl-C reaches a thread of the application.
inline int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  const int rc = pthread_create(thread, attributes, run, argument);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return rc;
}

class NativeThread {
 public:
  using Body = void (*)(void*);
  // Called on the new thread when the body ended with std::bad_alloc; must not allocate.
  using OutOfMemory = void (*)(void*);

  // Returns 0 or an errno.
  int start(Body body, OutOfMemory oom, void* arg, const char* name) {
    body_ = body;
    oom_ = oom;
    arg_ = arg;
    name_ = name;
    const int rc = create_thread(&handle_, nullptr, &NativeThread::entry, this);
    running_ = rc == 0;
    return rc;
  }
  void join() {
    if (running_) {
      pthread_join(handle_, nullptr);
      running_ = false;
    }
  }
  // For the child of a fork, where the thread does not exist: join() then does nothing.
  void forget() { running_ = false; }
  bool running() const { return running_; }

 private:
  static void* entry(void* self_) {
    auto* self = static_cast<NativeThread*>(self_);
#ifdef __linux__
    pthread_setname_np(pthread_self(), self->name_);
#endif
    try {
      self->body_(self->arg_);
    } catch (const std::bad_alloc&) {
      self->oom_(self->arg_);
    }
    return nullptr;
  }
  pthread_t handle_{};
  bool running_ = false;
  Body body_ = nullptr;
  OutOfMemory oom_ = nullptr;
  void* arg_ = nullptr;
  const char* name_ = "";
};

}  // namespace kc
