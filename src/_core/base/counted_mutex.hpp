// Owns: CountedMutex, a mutex that knows how often it was taken, so that a test can show where no lock is.
// Threads: any. Never: costs more than an increment of what the holder owns at that moment.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

namespace kc {

class CountedMutex {
 public:
  void lock() {
    mutex_.lock();
    count();
  }
  void unlock() { mutex_.unlock(); }
  bool try_lock() {
    bool taken = mutex_.try_lock();
    if (taken) count();
    return taken;
  }
  int64_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::atomic<int64_t> taken_{0};  // written by the holder

  void count() { taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
};

}  // namespace kc
