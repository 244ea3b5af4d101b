// Owns: the one Inflater that each thread keeps warm between decode jobs.
// Threads: the spare is its thread's own, freed when the thread ends. Never: shared between threads.
#pragma once
#include <new>

#include "records/compression.hpp"

namespace kc {

// A context that once met a large window keeps it; such a one is not kept.
constexpr size_t kLargestSpareContext = 12u << 20;

struct SpareInflater {
  Inflater* inflater = nullptr;
  ~SpareInflater() { delete inflater; }
};

inline thread_local SpareInflater spare_inflater;

// The calling thread's spare, or a new one; nullptr when memory is out.
inline Inflater* take_inflater() {
  Inflater* inflater = spare_inflater.inflater;
  spare_inflater.inflater = nullptr;
  return inflater ? inflater : new (std::nothrow) Inflater();
}

// Gives up its block and keeps it for the calling thread's next job, if that has none.
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
