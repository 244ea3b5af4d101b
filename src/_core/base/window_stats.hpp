// Owns: WindowStats, the statistics of the values in a window of time: count, sum, minimum, maximum, deviation and
// percentiles. thread: one (its owner's). Never: allocates more than once in a window, or before its first value.
//
// The percentiles come from a histogram with 16 buckets for each power of two: they are at most 7 % too high. The
// histogram takes 2 kB and is allocated with the first value: a Metadata response can list thousands of brokers to
// which the consumer never connects.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace kc {

class WindowStats {
 public:
  static constexpr int kMaxBits = 37;   // larger values are out of range: in microseconds, more than 38 hours
  static constexpr size_t kBuckets = static_cast<size_t>(kMaxBits - 3) * 16;
  int64_t count = 0, sum = 0, min = 0, max = 0, out_of_range = 0;

  void add(int64_t value) {
    if (value < 0 || value >> kMaxBits != 0) {
      out_of_range += 1;
      return;
    }
    min = count == 0 ? value : std::min(min, value);
    max = std::max(max, value);
    sum += value;
    squares_ += static_cast<double>(value) * static_cast<double>(value);
    count += 1;
    if (!buckets_) buckets_.reset(new uint32_t[kBuckets]());
    buckets_[bucket_of(value)] += 1;
  }
  // Returns the window so far and starts a new one.
  WindowStats take() {
    WindowStats taken = std::move(*this);
    *this = WindowStats();
    return taken;
  }
  int64_t average() const { return count > 0 ? sum / count : 0; }
  int64_t deviation() const {
    if (count == 0) return 0;
    double mean = static_cast<double>(sum) / static_cast<double>(count);
    return static_cast<int64_t>(std::sqrt(std::max(0.0, squares_ / static_cast<double>(count) - mean * mean)));
  }
  // Returns the least value that at least `percent` of all values do not exceed.
  int64_t percentile(double percent) const {
    int64_t wanted = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(percent / 100 * static_cast<double>(count))));
    int64_t seen = 0;
    for (size_t i = 0; i < kBuckets && count > 0; i++) {
      seen += buckets_[i];
      if (seen >= wanted) return std::min(last_of(i), max);
    }
    return 0;
  }
  static constexpr size_t histogram_bytes() { return kBuckets * sizeof(uint32_t); }

 private:
  std::unique_ptr<uint32_t[]> buckets_;  // null before the first value
  double squares_ = 0;

  // Each value below 32 has a separate bucket. For larger values the exponent selects 16 buckets, and the next four
  // bits select one of them.
  static size_t bucket_of(int64_t value) {
    if (value < 16) return static_cast<size_t>(value);
    int exponent = 63 - __builtin_clzll(static_cast<unsigned long long>(value));
    return static_cast<size_t>(exponent - 3) * 16 + static_cast<size_t>(value >> (exponent - 4) & 15);
  }
  static int64_t last_of(size_t bucket) {
    if (bucket < 16) return static_cast<int64_t>(bucket);
    int shift = static_cast<int>(bucket / 16) - 1;
    return ((static_cast<int64_t>(bucket % 16) + 17) << shift) - 1;
  }
};

}  // namespace kc
