// Owns: the prefix of a value: none, a number of bytes to skip, or Confluent's framing.
// Threads: any (pure functions). Never: fetches a schema.
#pragma once
#include <cstdint>
#include <cstring>

#include "values/program.hpp"

namespace kc {

enum FramingKind : int32_t { FRAMING_NONE = 0, FRAMING_SKIP, FRAMING_CONFLUENT };

struct Framing {
  FramingKind kind = FRAMING_NONE;
  int64_t skip = 0;   // number of bytes to skip

  static constexpr int64_t kConfluentBytes = 5;   // a zero byte, then the schema id in 4 bytes, big-endian

  // Moves `p` after the prefix, and sets `id` to the schema id; 0 if the framing has none.
  BadValue open(const uint8_t*& p, const uint8_t* end, int64_t& id) const {
    id = 0;
    if (__builtin_expect(kind == FRAMING_NONE, 1)) return BAD_NONE;
    if (p == end) return BAD_EMPTY;
    if (kind == FRAMING_SKIP) {
      if (end - p < skip) return BAD_FRAME;
      p += skip;
      return BAD_NONE;
    }
    if (end - p < kConfluentBytes || *p != 0) return BAD_FRAME;
    uint32_t big_endian;
    memcpy(&big_endian, p + 1, 4);
    id = __builtin_bswap32(big_endian);
    p += kConfluentBytes;
    return BAD_NONE;
  }
};

}  // namespace kc
