// Owns: the memory of columns under construction, and a cache of freed pieces for the next batch.
// Threads: any. Never: keeps more than kMostKept bytes, waits for another thread.
//
// A batch takes megabytes and frees them when its reader drops it. malloc returns them to the kernel, and the next
// batch pays a page fault for every 4 KiB: half of the time of decoding Avro. All pieces come from malloc, so realloc
// and free accept them. The code only tries the lock: in the child of a fork a thread that does not exist there can
// hold it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <type_traits>

namespace kc {

// AddressSanitizer cannot detect a use of a cached piece, so builds with it have no cache. tools/fuzz can set 1.
#if defined(KC_KEEPS_COLUMN_MEMORY)
#elif defined(__SANITIZE_ADDRESS__)
#define KC_KEEPS_COLUMN_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KC_KEEPS_COLUMN_MEMORY 0
#endif
#endif
#ifndef KC_KEEPS_COLUMN_MEMORY
#define KC_KEEPS_COLUMN_MEMORY 1
#endif

class ColumnMemory {
 public:
  static constexpr size_t kLeast = size_t{1} << 15;      // smaller pieces are not cached
  static constexpr size_t kMost = size_t{1} << 23;       // larger pieces are not cached
  static constexpr size_t kMostKept = size_t{1} << 25;   // maximum size of the cache in bytes

  // Grows `p` (nullptr, or a piece of `old_bytes`) to `bytes`. It keeps all bytes of `p`, because a scanner may have
  // written after the valid ones. If memory is out it returns nullptr and does not change `p`.
  static void* grow(void* p, size_t old_bytes, size_t bytes) {
    if (!is_kept(bytes)) return realloc(p, bytes);
    const size_t order = order_of(bytes);
    if (p && is_kept(old_bytes) && order_of(old_bytes) == order) return p;
    void* taken = take(order);
    if (!taken) return realloc(p, size_t{1} << order);
    if (p) memcpy(taken, p, old_bytes);
    give_back(p, old_bytes);
    return taken;
  }

  // Frees a piece that grow() returned for `bytes`.
  static void give_back(void* p, size_t bytes) {
    if (p && !(is_kept(bytes) && keep(p, order_of(bytes)))) free(p);
  }

 private:
  static constexpr size_t kOrders = 24;

  struct Kept {
    std::mutex lock;
    void* first[kOrders] = {};   // heads of linked lists; the first bytes of each piece point to the next piece
    size_t bytes = 0;
  };

  // Has a trivial destructor, because columns can outlive static objects.
  static Kept& kept() {
    static Kept all;
    static_assert(std::is_trivially_destructible<Kept>::value, "columns are freed at exit too");
    return all;
  }

  static bool is_kept(size_t bytes) { return KC_KEEPS_COLUMN_MEMORY && bytes >= kLeast && bytes <= kMost; }

  static size_t order_of(size_t bytes) { return 64 - static_cast<size_t>(__builtin_clzll(bytes - 1)); }

  static void* take(size_t order) {
    Kept& all = kept();
    if (!all.lock.try_lock()) return nullptr;
    void* p = all.first[order];
    if (p) {
      memcpy(&all.first[order], p, sizeof(void*));
      all.bytes -= size_t{1} << order;
    }
    all.lock.unlock();
    return p;
  }

  static bool keep(void* p, size_t order) {
    Kept& all = kept();
    if (!all.lock.try_lock()) return false;
    const bool fits = all.bytes + (size_t{1} << order) <= kMostKept;
    if (fits) {
      memcpy(p, &all.first[order], sizeof(void*));
      all.first[order] = p;
      all.bytes += size_t{1} << order;
    }
    all.lock.unlock();
    return fits;
  }
};

}  // namespace kc
