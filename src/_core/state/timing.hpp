// Owns: Timing, count and duration of a repeated operation. Threads: written on N, read anywhere.
// Never: reads a clock.
#pragma once
#include <atomic>
#include <cstdint>

namespace kc {

struct Timing {
  // Bucket i counts durations of at most 2^i ms that are in no earlier bucket; the last one counts longer durations.
  static constexpr int32_t kBuckets = 19;

  std::atomic<int64_t> count{0};
  std::atomic<int64_t> latest_us{-1};
  std::atomic<int64_t> longest_us{-1};
  std::atomic<int64_t> total_us{0};
  std::atomic<int64_t> buckets[kBuckets]{};

  static int32_t bucket_of(int64_t us) {
    const int64_t ms = (us + 999) / 1000;
    if (ms <= 1) return 0;
    const int32_t place = 64 - __builtin_clzll(static_cast<uint64_t>(ms - 1));
    return place < kBuckets ? place : kBuckets - 1;
  }
  void add(int64_t us) {
    latest_us.store(us, std::memory_order_relaxed);
    if (us > longest_us.load(std::memory_order_relaxed)) longest_us.store(us, std::memory_order_relaxed);
    total_us.store(total_us.load(std::memory_order_relaxed) + us, std::memory_order_relaxed);
    std::atomic<int64_t>& bucket = buckets[bucket_of(us)];
    bucket.store(bucket.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
};

}  // namespace kc
