// Owns: Columns, the arena to which the decoder writes records; all later code only slices it.
// Threads: one decoder (N or A) writes it until it is published, then it is immutable; shared: the reference count.
// Never: owns record bytes (keys and values are views into the Blocks that it pins), touches Python.
//
// One arena has the records of one decode slice, of one or more partitions, in runs. Keys and values are Arrow
// binary_view entries: `buffer_index` is an index into `buffers`.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "records/block.hpp"

namespace kc {

struct BinaryView {  // Arrow's 16-byte view
  int32_t length;
  union {
    uint8_t inlined[12];  // length <= 12, zero padded
    struct {
      uint8_t prefix[4];
      int32_t buffer_index;
      int32_t offset;
    } ref;
  };
};
static_assert(sizeof(BinaryView) == 16, "Arrow's layout");

struct HeadersRef {  // raw v2 headers of one record: `count` headers, `length` bytes from `offset` in the buffer
  int32_t buffer_index;
  int32_t offset;
  int32_t length;
  int32_t count;
};

// Consecutive records in the arena with the same partition, leader epoch and timestamp type.
struct Run {
  int32_t row_start = 0;
  int32_t row_end = 0;
  void* partition = nullptr;   // the caller's tag (a PartitionState*); this layer does not use it
  int32_t leader_epoch = -1;
  int8_t timestamp_type = 0;   // 0 CreateTime, 1 LogAppendTime, -1 none (v0)
};

struct Columns {
  std::atomic<int32_t> refs{1};
  int32_t rows = 0;
  int32_t capacity = 0;
  int64_t* offsets = nullptr;
  int64_t* timestamps = nullptr;     // ms since epoch, -1 none
  BinaryView* keys = nullptr;
  BinaryView* values = nullptr;
  uint8_t* key_validity = nullptr;   // bitmap, bit 1 = present; meaningful only while key_nulls > 0
  uint8_t* value_validity = nullptr;
  int32_t key_nulls = 0;
  int32_t value_nulls = 0;
  HeadersRef* headers = nullptr;     // nullptr while no record of the arena has headers
  Block* memory = nullptr;           // the memory of the arrays above (the pool counts it)
  Block* headers_memory = nullptr;
  std::vector<Block*> buffers;       // the pinned blocks into which the views point
  std::vector<size_t> buffer_bytes;  // the end of the records in each block; a thread can still write after it
  std::vector<Run> runs;

  static constexpr int32_t kLine = 64;            // bytes of a cache line
  static constexpr int32_t kKeyBefore = 24;       // a record's key is usually short and precedes its value
  static constexpr int32_t kMostPrefetched = 512;

  bool key_is_null(int32_t row) const { return key_nulls && !(key_validity[row >> 3] >> (row & 7) & 1); }
  bool value_is_null(int32_t row) const { return value_nulls && !(value_validity[row >> 3] >> (row & 7) & 1); }
  const uint8_t* view_data(const BinaryView& v) const {
    return v.length <= 12 ? v.inlined : buffers[v.ref.buffer_index]->data + v.ref.offset;
  }

  // Prefetches the key and value of a row into the CPU's cache. Ignores a row beyond the end.
  void prefetch(int32_t row) const {
    if (row >= rows || values[row].length <= 12) return;
    const uint8_t* p = buffers[values[row].ref.buffer_index]->data + values[row].ref.offset;
    __builtin_prefetch(p - kKeyBefore);
    for (int32_t at = kLine - kKeyBefore; at < values[row].length && at < kMostPrefetched; at += kLine)
      __builtin_prefetch(p + at);
  }

  // Returns nullptr if memory is out. All bits of both validity bitmaps are set at first.
  static Columns* create(BlockPool* pool, int32_t capacity);
  // Returns the shared arena for batches without rows. Its pointers are valid: some readers of Arrow ignore the length,
  // and crash on null pointers (tests/unit/consumer/test_empty_batch.py).
  static Columns* none();
  bool want_headers();  // allocates `headers` (zero counts for the rows so far); false when memory is out
  // Returns the index of `b` in `buffers`. If `b` is not the last buffer, adds and retains it; views end at `bytes`.
  int32_t pin(Block* b, size_t bytes);
  void retain() { refs.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

 private:
  void destroy();
};

inline Columns* Columns::create(BlockPool* pool, int32_t capacity) {
  if (capacity < 64) capacity = 64;
  capacity = (capacity + 63) & ~63;
  size_t n = static_cast<size_t>(capacity);
  size_t bytes = n * (8 + 8 + 16 + 16) + 2 * (n / 8) + 64;
  auto* c = new (std::nothrow) Columns();
  if (!c) return nullptr;
  c->memory = pool->take(bytes);
  if (!c->memory) {
    delete c;
    return nullptr;
  }
  uint8_t* p = c->memory->data;
  p = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(p) + 63) & ~uintptr_t(63));
  c->keys = reinterpret_cast<BinaryView*>(p);
  c->values = c->keys + n;
  c->offsets = reinterpret_cast<int64_t*>(c->values + n);
  c->timestamps = c->offsets + n;
  c->key_validity = reinterpret_cast<uint8_t*>(c->timestamps + n);
  c->value_validity = c->key_validity + n / 8;
  memset(c->key_validity, 0xff, 2 * (n / 8));
  c->capacity = capacity;
  return c;
}

inline Columns* Columns::none() {
  alignas(kLine) static uint8_t nothing[kLine];
  static Columns* const shared = [] {
    auto* c = new Columns();
    c->keys = c->values = reinterpret_cast<BinaryView*>(nothing);
    c->offsets = c->timestamps = reinterpret_cast<int64_t*>(nothing);
    c->key_validity = c->value_validity = nothing;
    return c;
  }();
  return shared;
}

inline bool Columns::want_headers() {
  if (headers) return true;
  headers_memory = memory->pool->take(sizeof(HeadersRef) * static_cast<size_t>(capacity));
  if (!headers_memory) return false;
  headers = reinterpret_cast<HeadersRef*>(headers_memory->data);
  memset(headers, 0, sizeof(HeadersRef) * static_cast<size_t>(rows));
  return true;
}

inline int32_t Columns::pin(Block* b, size_t bytes) {
  if (buffers.empty() || buffers.back() != b) {
    buffer_bytes.push_back(0);
    buffers.push_back(b);
    BlockPool::retain(b);
  }
  if (buffer_bytes.back() < bytes) buffer_bytes.back() = bytes;
  return static_cast<int32_t>(buffers.size()) - 1;
}

inline void Columns::destroy() {
  for (Block* b : buffers) BlockPool::release(b);
  if (headers_memory) BlockPool::release(headers_memory);
  BlockPool::release(memory);
  delete this;
}

}  // namespace kc
