// Owns: what stands before a value's own bytes: nothing, a number of bytes to leave out, or Confluent's prefix.
// Threads: any (pure functions). Never: asks for a schema.
#pragma once
#include <cstdint>
#include <cstring>

#include "values/program.hpp"

namespace kc {

enum FramingKind : int32_t { FRAMING_NONE = 0, FRAMING_SKIP, FRAMING_CONFLUENT };

struct Framing {
  FramingKind kind = FRAMING_NONE;
  int64_t skip = 0;   // bytes

  static constexpr int64_t kConfluentBytes = 5;   // 0, then the schema's id as four bytes, the highest first

  // Moves p to the value's own bytes; `id` is the schema's, or 0 where the framing has none.
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
