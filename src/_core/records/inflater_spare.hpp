// Owns: the spare Inflater that each thread keeps between decode jobs.
// Threads: each thread has its own spare, which is freed when the thread ends. Never: shared between threads.
#pragma once
#include <new>

#include "records/compression.hpp"

namespace kc {

// A zstd context never shrinks its window; a context with a large window is freed.
constexpr size_t kLargestSpareContext = 12u << 20;

struct SpareInflater {
  Inflater* inflater = nullptr;
  ~SpareInflater() { delete inflater; }
};

inline thread_local SpareInflater spare_inflater;

// Returns the calling thread's spare or a new Inflater; nullptr if memory is out.
inline Inflater* take_inflater() {
  Inflater* inflater = spare_inflater.inflater;
  spare_inflater.inflater = nullptr;
  return inflater ? inflater : new (std::nothrow) Inflater();
}

// Releases the block of the inflater, and keeps the inflater as the calling thread's spare if it has none.
inline void give_inflater(Inflater* inflater) {
  if (inflater->block) BlockPool::release(inflater->block);
  inflater->block = nullptr;
  inflater->pool = nullptr;
  if (spare_inflater.inflater || (inflater->zstd && ZSTD_sizeof_DCtx(inflater->zstd) > kLargestSpareContext)) {
    delete inflater;
  } else {
    spare_inflater.inflater = inflater;
  }
}

}  // namespace kc
