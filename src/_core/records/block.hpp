// Owns: the memory of fetched bytes: reference-counted blocks, and the pool that recycles them and counts live bytes.
// Threads: shared: atomics and the pool's mutex (taken once per block, never per record).
// Never: trusts a length from the wire (a block grows only as bytes arrive), touches Python.
//
// The pool is also reference-counted, because a RecordBatch of the application can outlive its consumer.
#pragma once
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

namespace kc {

class BlockPool;

struct Block {
  std::atomic<int32_t> refs{1};
  uint8_t* data = nullptr;
  size_t capacity = 0;
  size_t size = 0;  // bytes written
  BlockPool* pool = nullptr;
};

class BlockPool {
 public:
  // The pool keeps freed blocks up to this total for the next response.
  static constexpr size_t kCacheBytes = 24u << 20;
  static constexpr size_t kSmallest = 4096;
  // From this size on a block is a separate mapping. Its freed memory goes back to the system at once, which malloc
  // does not guarantee, and a large block can use huge pages.
  static constexpr size_t kMapped = 1u << 20;
  static constexpr size_t kHugePage = 2u << 20;
  static constexpr size_t kMoved = 4u << 20;

  BlockPool() = default;
  static BlockPool* create() { return new (std::nothrow) BlockPool(); }
  void ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void unref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // Returns a block with at least `capacity` bytes and refs == 1; nullptr if memory is out.
  Block* take(size_t capacity) {
    size_t want = size_class(capacity);
    {
      std::lock_guard<std::mutex> hold(mutex_);
      for (size_t i = cache_.size(); i-- > 0;) {
        Block* b = cache_[i];
        // A slightly larger block is better than new memory without page table entries. All of its bytes count as live.
        if (b->capacity >= want && b->capacity <= want + want / 2) {
          cache_.erase(cache_.begin() + i);
          cached_bytes_ -= b->capacity;
          adopt(b);
          return b;
        }
      }
    }
    auto* b = new (std::nothrow) Block();
    if (!b) return nullptr;
    b->data = allocate(want);
    if (!b->data) {
      delete b;
      return nullptr;
    }
    b->capacity = want;
    b->pool = this;
    adopt(b);
    return b;
  }

  // Grows a block with only one reference and keeps its bytes. False if memory is out (the block is then unchanged).
  bool grow(Block* b, size_t capacity) {
    size_t want = size_class(capacity);
    if (want <= b->capacity) return true;
    uint8_t* p = want < kMapped ? static_cast<uint8_t*>(realloc(b->data, want)) : allocate(want);
    if (!p) return false;
    if (want >= kMapped) move(p, b->data, b->capacity);
    live_bytes_.fetch_add(static_cast<int64_t>(want - b->capacity), std::memory_order_relaxed);
    b->data = p;
    b->capacity = want;
    return true;
  }

  static void retain(Block* b) { b->refs.fetch_add(1, std::memory_order_relaxed); }
  static void release(Block* b) {
    if (b->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) b->pool->recycle(b);
  }

  // The bytes in referenced blocks: responses being received, undelivered or inflated data, batches of the application.
  int64_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }
  // The network thread sets it when the fetcher stops because the buffer is full; the next release then calls on_room.
  std::atomic<bool> starved{false};
  using OnRoom = void (*)(void*);
  // The callback runs under the pool's mutex, so that no call happens after its removal (nullptr).
  // Blocks outlive their consumer in batches (test_messages_and_batches_outlive_the_consumer).
  void set_on_room(OnRoom callback, void* arg) {
    std::lock_guard<std::mutex> hold(mutex_);
    on_room_ = callback;
    on_room_arg_ = arg;
  }

  // The consumer is closed: no response will need a freed block.
  void stop_caching() {
    std::deque<Block*> dropped;
    {
      std::lock_guard<std::mutex> hold(mutex_);
      caches_ = false;
      dropped.swap(cache_);
      cached_bytes_ = 0;
    }
    for (Block* b : dropped) destroy(b);
  }

  // Rounds up to a quarter step between two powers of two, so that at most 25 % of a block is unused.
  static size_t size_class(size_t n) {
    if (n <= kSmallest) return kSmallest;
    size_t p = kSmallest;
    while (p * 2 < n) p *= 2;
    size_t step = p / 4;
    return (n + step - 1) / step * step;
  }

 private:
  ~BlockPool() {
    for (Block* b : cache_) destroy(b);
  }
  static uint8_t* allocate(size_t n) {
    if (n < kMapped) return static_cast<uint8_t*>(malloc(n));
    void* p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
    if (n >= kHugePage) (void)madvise(p, n, MADV_HUGEPAGE);
#endif
    return static_cast<uint8_t*>(p);
  }
  static void deallocate(uint8_t* data, size_t n) {
    if (n < kMapped) {
      free(data);
    } else {
      munmap(data, n);
    }
  }
  // Copies in parts and frees each copied part, so that a large block that grows never needs twice its memory.
  static void move(uint8_t* to, uint8_t* from, size_t n) {
    if (n < kMapped) {
      memcpy(to, from, n);
      free(from);
      return;
    }
    for (size_t at = 0; at < n; at += kMoved) {
      size_t part = n - at < kMoved ? n - at : kMoved;
      memcpy(to + at, from + at, part);
      munmap(from + at, part);
    }
  }
  static void destroy(Block* b) {
    deallocate(b->data, b->capacity);
    delete b;
  }
  void adopt(Block* b) {
    b->refs.store(1, std::memory_order_relaxed);
    b->size = 0;
    live_bytes_.fetch_add(static_cast<int64_t>(b->capacity), std::memory_order_relaxed);
    ref();
  }
  void recycle(Block* b) {
    // In the child of a fork, a thread that does not exist there can hold the mutex. Leak the block instead
    // (tests/embedded/test_fork.py).
    if (getpid() != pid_) return;
    live_bytes_.fetch_sub(static_cast<int64_t>(b->capacity), std::memory_order_relaxed);
    std::vector<Block*> dropped;
    {
      std::lock_guard<std::mutex> hold(mutex_);
      if (caches_ && b->capacity >= 65536 && b->capacity <= kCacheBytes) {
        cache_.push_back(b);
        cached_bytes_ += b->capacity;
      } else {
        dropped.push_back(b);
      }
      // Drop the oldest block, so that the cache does not fill with sizes that are no longer requested.
      while (cached_bytes_ > kCacheBytes) {
        cached_bytes_ -= cache_.front()->capacity;
        dropped.push_back(cache_.front());
        cache_.pop_front();
      }
      if (starved.load(std::memory_order_relaxed) && starved.exchange(false) && on_room_) on_room_(on_room_arg_);
    }
    for (Block* old : dropped) destroy(old);
    unref();
  }

  std::atomic<int64_t> refs_{1};
  std::atomic<int64_t> live_bytes_{0};
  std::mutex mutex_;
  std::deque<Block*> cache_;  // oldest first
  size_t cached_bytes_ = 0;
  bool caches_ = true;
  OnRoom on_room_ = nullptr;
  void* on_room_arg_ = nullptr;
  const pid_t pid_ = getpid();
};

}  // namespace kc
