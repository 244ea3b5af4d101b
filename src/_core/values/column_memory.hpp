// Owns: the memory of columns under construction, and a few freed pieces of it, which the next batch takes again.
// Threads: any. Never: keeps more than kMostKept bytes; waits for another thread.
//
// A batch takes megabytes and gives them back when its reader drops it. malloc returns them to the kernel, and the next
// batch pays a page fault for every 4 KiB: half of the time of decoding Avro. Pieces are malloc's own, so that any may be
// given to realloc or free. The lock is only ever tried: a child of a fork may find it held for ever.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <type_traits>

namespace kc {

// Pieces that are kept would hide from AddressSanitizer what reads or writes them after their end. tools/fuzz may say 1.
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
  static constexpr size_t kLeast = size_t{1} << 15;      // smaller pieces are malloc's
  static constexpr size_t kMost = size_t{1} << 23;       // larger ones too
  static constexpr size_t kMostKept = size_t{1} << 25;   // in all

  // `bytes` of memory in place of `p` (nullptr, or of the fewer `old_bytes`), with all that it held: a scanner may have
  // written beyond what counts yet. nullptr, and `p` as it was, when memory is out.
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

  // The end of a piece that grow() gave for `bytes`.
  static void give_back(void* p, size_t bytes) {
    if (p && !(is_kept(bytes) && keep(p, order_of(bytes)))) free(p);
  }

 private:
  static constexpr size_t kOrders = 24;

  struct Kept {
    std::mutex lock;
    void* first[kOrders] = {};   // of a list, whose next piece is named in the first bytes of each
    size_t bytes = 0;
  };

  // Its destructor does nothing: columns may live longer than what is static.
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
