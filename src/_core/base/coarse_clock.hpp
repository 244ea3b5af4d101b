// Owns: coarse_ms(), monotonic time by the kernel's tick (1 to 10 ms): it shows in a few nanoseconds that time has passed.
// Threads: any. Never: used to measure a span.
#pragma once
#include <time.h>

#include <cstdint>

namespace kc {

inline int64_t coarse_ms() {
#ifdef CLOCK_MONOTONIC_COARSE
  constexpr clockid_t kClock = CLOCK_MONOTONIC_COARSE;
#else
  constexpr clockid_t kClock = CLOCK_MONOTONIC;
#endif
  timespec t;
  clock_gettime(kClock, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}

}  // namespace kc
