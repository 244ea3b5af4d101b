// Owns: InflateAhead, the batches of one decode job that an idle thread inflates before the decoder reaches them.
// Threads: shared: `mutex_` guards everything except the reference count; N and A call claim() and put(), the decoding
// thread calls reach().
// Never: inflates (inflate_ahead.pxi does), waits, trusts a header without a check against its bytes, checks a CRC (the
// decoder does before it takes a batch).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "records/block.hpp"
#include "records/bytes.hpp"

namespace kc {

enum AheadState : int32_t {
  AHEAD_NONE,   // no thread has claimed it
  AHEAD_BUSY,   // a thread is inflating it
  AHEAD_READY,
};

struct AheadBatch {
  size_t begin = 0;               // position in the job's data
  size_t body = 0;                // start of its compressed records
  size_t end = 0;
  int32_t codec = 0;
  AheadState state = AHEAD_NONE;
  Block* block = nullptr;         // READY: a reference; the records are at [records_begin, records_end)
  size_t records_begin = 0;
  size_t records_end = 0;
};

class InflateAhead {
 public:
  // The creator has one reference. `inflated_bytes` counts the inflated bytes of the READY batches of all jobs.
  InflateAhead(Block* block, const uint8_t* data, size_t length, size_t limit, std::atomic<int64_t>* inflated_bytes)
      : data(data), length(length), limit(limit), block_(block), inflated_bytes_(inflated_bytes) {
    BlockPool::retain(block_);
  }
  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // Returns whether a job's data begins with a compressed batch. A message set of v0 or v1 does not count.
  static bool is_wanted(const uint8_t* data, size_t length) {
    AheadBatch batch;
    return parse(data, length, 0, &batch) && batch.codec != 0;
  }

  // Claims the next compressed batch for the caller to inflate; false if no batch is left.
  bool claim(AheadBatch* out) {
    std::lock_guard<std::mutex> hold(mutex_);
    AheadBatch batch;
    while (!over_ && parse(data, length, next_, &batch)) {
      next_ = batch.end;
      if (batch.codec == 0) continue;
      batch.state = AHEAD_BUSY;
      batches_.push_back(batch);
      busy_ += 1;
      *out = batch;
      return true;
    }
    next_ = length;
    return false;
  }
  // Takes the result of a claimed batch, with the reference to its block. Without a block the batch is not inflated.
  void put(const AheadBatch& done) {
    std::lock_guard<std::mutex> hold(mutex_);
    busy_ -= 1;
    AheadBatch* batch = over_ ? nullptr : find(done.begin);
    if (batch && done.block) {
      *batch = done;
      batch->state = AHEAD_READY;
      inflated_bytes_->fetch_add(size_of(done));
    } else {
      if (batch) batch->state = AHEAD_NONE;
      if (done.block) BlockPool::release(done.block);
    }
    drop_data();
  }
  // The decoder calls it when it reaches a batch. It drops earlier batches and prevents a later claim of this one.
  // For READY, *out is the batch with its reference.
  AheadState reach(size_t begin, size_t end, AheadBatch* out) {
    std::lock_guard<std::mutex> hold(mutex_);
    while (!batches_.empty() && batches_.front().begin < begin) drop_front();
    if (next_ < end) next_ = end;
    if (batches_.empty() || batches_.front().begin != begin) return AHEAD_NONE;
    const AheadState state = batches_.front().state;
    if (state == AHEAD_BUSY) return state;
    *out = batches_.front();
    if (state == AHEAD_READY) inflated_bytes_->fetch_sub(size_of(*out));
    batches_.pop_front();
    return state;
  }
  // Ends the job and frees its batches; other threads may still hold references to this object.
  void end() {
    std::lock_guard<std::mutex> hold(mutex_);
    over_ = true;
    while (!batches_.empty()) drop_front();
    drop_data();
  }
  bool may_be_claimed() {
    std::lock_guard<std::mutex> hold(mutex_);
    return !over_ && next_ < length;
  }

  const uint8_t* const data;
  const size_t length;
  const size_t limit;  // maximum size of one inflated batch

 private:
  static constexpr size_t kHeader = 61, kOverhead = 12, kAtMagic = 16, kAtAttributes = 21;

  ~InflateAhead() { end(); }

  static int64_t size_of(const AheadBatch& batch) {
    return static_cast<int64_t>(batch.records_end - batch.records_begin);
  }

  // Reads bounds and codec of the batch at `at`; false if its magic is not 2 or it is cut off.
  static bool parse(const uint8_t* data, size_t length, size_t at, AheadBatch* out) {
    if (length - at < kHeader) return false;
    const uint8_t* p = data + at;
    const auto size = static_cast<int32_t>(load_be32(p + 8));
    if (size < static_cast<int32_t>(kHeader - kOverhead) || static_cast<size_t>(size) > length - at - kOverhead ||
        p[kAtMagic] != 2) {
      return false;
    }
    out->begin = at;
    out->body = at + kHeader;
    out->end = at + kOverhead + static_cast<size_t>(size);
    out->codec = load_be16(p + kAtAttributes) & 7;
    return true;
  }
  AheadBatch* find(size_t begin) {
    for (AheadBatch& batch : batches_)
      if (batch.begin == begin) return &batch;
    return nullptr;
  }
  void drop_front() {
    AheadBatch& batch = batches_.front();
    if (batch.state == AHEAD_READY) {
      inflated_bytes_->fetch_sub(size_of(batch));
      BlockPool::release(batch.block);
    }
    batches_.pop_front();
  }
  void drop_data() {
    if (!over_ || busy_ > 0 || !block_) return;
    BlockPool::release(block_);
    block_ = nullptr;
  }

  std::atomic<int32_t> refs_{1};
  std::mutex mutex_;
  std::deque<AheadBatch> batches_;  // the claimed batches, in order
  size_t next_ = 0;                 // all batches before it are claimed, or the decoder has reached them
  int32_t busy_ = 0;
  bool over_ = false;
  Block* block_;                    // a reference that keeps `data` valid while a thread can read it
  std::atomic<int64_t>* inflated_bytes_;
};

}  // namespace kc
