// Owns: CountedMutex, a mutex that counts how often it was locked, so that a test can prove that a path takes no lock.
// Threads: any. Never: costs more than one increment, which the holder does under the lock.
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
  std::atomic<int64_t> taken_{0};  // only the holder of the lock writes it

  void count() { taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
};

}  // namespace kc
