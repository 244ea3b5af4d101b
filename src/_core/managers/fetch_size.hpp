// Owns: FetchSize: how many bytes the next Fetch of a broker asks for.
// thread: N. Never: knows the memory that is free, or the limits that the user set.
//
// One request costs a broker as much as sending most of a MiB, and a distant one a round trip, so a Fetch normally asks
// for as much as it may. Large records are the exception, if the application takes longer to read a response than the
// next one needs to arrive. Then no thread waits for the broker, and the time goes into copying: a response of 8 MiB has
// left the processor's caches before it is read, one of 1 MiB has not. The other exception: no memory for a response.
#pragma once
#include <algorithm>
#include <cstdint>

namespace kc {

class FetchSize {
 public:
  // With the data around the records it is 8 MiB, and fits into a block of that size.
  static constexpr int64_t kMost = (8 << 20) - 4096;
  static constexpr int64_t kLeast = 1 << 20;
  static constexpr int64_t kLeastWithoutMemory = 64 << 10;
  static constexpr int kForget = 32;             // responses after which the limit doubles
  static constexpr int64_t kLargeRecord = 4096;  // bytes of a record, as sent
  static constexpr int kPatience = 3;            // responses in a row for which the application was late

  // Call for a response: taken() for each partition with records, then answer_ended().
  // `largest_batch` is the size of the largest whole batch of the partition.
  void taken(int64_t bytes, int64_t records, int64_t largest_batch) {
    bytes_ += bytes;
    records_ += records;
    largest_ = std::max(largest_, largest_batch);
  }
  // `late`: when the response arrived, the application still had records of an earlier one.
  void answer_ended(bool late) {
    if (bytes_ == 0) return;
    if (limit_ < kMost && ++since_no_memory_ % kForget == 0) limit_ = std::min(2 * limit_, kMost);
    if (!late) {
      most_ = std::min(2 * most_, limit_);
      late_ = 0;
    } else if (bytes_ < records_ * kLargeRecord) {
      most_ = limit_;
      late_ = 0;
    } else if (++late_ >= kPatience) {
      most_ = std::max(most_ / 2, std::min(kLeast, limit_));
      late_ = 0;
    }
    whole_ = largest_;
    bytes_ = records_ = largest_ = 0;
  }
  // There was no memory for a response, and its connection is lost. So the size falls fast, and grows slowly again.
  void no_memory() {
    limit_ = most_ = std::max(most_ / 4, kLeastWithoutMemory);
    whole_ = late_ = since_no_memory_ = 0;
  }
  // The bytes to ask for. A broker cuts off the last batch at this limit, so it is a multiple of the last response's
  // largest batch where it is smaller than it may be.
  int64_t bytes() const {
    if (most_ == kMost || whole_ <= 0) return most_;
    return std::min(std::max((most_ + whole_ / 2) / whole_, int64_t{1}) * whole_, kMost);
  }

 private:
  int64_t most_ = kMost;
  int64_t limit_ = kMost;     // of most_
  int since_no_memory_ = 0;   // responses with records
  int64_t whole_ = 0;   // the largest whole batch of the last response with records
  int late_ = 0;
  // of the current response
  int64_t bytes_ = 0;
  int64_t records_ = 0;
  int64_t largest_ = 0;
};

}  // namespace kc
