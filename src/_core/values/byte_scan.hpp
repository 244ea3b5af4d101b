// Owns: the search for bytes that end or interrupt a JSON string, 16 at a time, and checks for ASCII and UTF-8.
// Threads: any (pure functions). Never: reads more than 16 bytes after the text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "values/utf8_check.hpp"

#if defined(__SSE2__) && !defined(KC_PORTABLE_SCAN)
#include <emmintrin.h>
#endif

namespace kc {

// The result for 16 bytes: the number of bytes before the first '"', '\\' or control character (16: there is none), and
// whether one of these bytes has its high bit set.
struct StringScan {
  int32_t plain;
  bool high;
};

#if defined(__SSE2__) && !defined(KC_PORTABLE_SCAN)

inline StringScan scan_string(const uint8_t* p, uint8_t* copy) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  if (copy) _mm_storeu_si128(reinterpret_cast<__m128i*>(copy), bytes);
  const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
  const __m128i slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
  const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
  const auto stop = static_cast<uint32_t>(_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), control)));
  const auto high = static_cast<uint32_t>(_mm_movemask_epi8(bytes));
  if (!stop) return {16, high != 0};
  const int32_t n = __builtin_ctz(stop);
  return {n, (high & ((1u << n) - 1)) != 0};
}

#else

inline StringScan scan_string(const uint8_t* p, uint8_t* copy) {
  if (copy) memmove(copy, p, 16);
  bool high = false;
  for (int32_t i = 0; i < 16; ++i) {
    if (p[i] == '"' || p[i] == '\\' || p[i] < 0x20) return {i, high};
    high |= p[i] >= 0x80;
  }
  return {16, high};
}

#endif

// Returns whether all bytes are ASCII. Reads at least 8 bytes from `p`.
inline bool is_ascii(const uint8_t* p, size_t length) {
  uint64_t word, high = 0;
  for (; length >= 8; length -= 8, p += 8) {
    memcpy(&word, p, 8);
    high |= word;
  }
  if (length) {
    memcpy(&word, p, 8);
    high |= word << (64 - 8 * length);
  }
  return !(high & 0x8080808080808080u);
}

// Returns whether up to 16 bytes are ASCII. Reads 16 bytes.
inline bool is_ascii_16(const uint8_t* p, uint32_t length) {
#if defined(__SSE2__) && !defined(KC_PORTABLE_SCAN)
  const auto high = static_cast<uint32_t>(_mm_movemask_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  return !(high & ((1u << length) - 1));
#else
  return is_ascii(p, length);
#endif
}

// Returns whether the bytes are UTF-8. Reads at least 8 bytes from `p`.
inline bool is_text(const uint8_t* p, size_t length) {
  return (length < 16 && is_ascii(p, length)) || valid_utf8(p, length);
}

// Writes the character as UTF-8. Returns the number of bytes, at most 4.
inline size_t put_utf8(uint32_t c, uint8_t* out) {
  if (c < 0x80) {
    out[0] = static_cast<uint8_t>(c);
    return 1;
  }
  if (c < 0x800) {
    out[0] = static_cast<uint8_t>(0xc0 | c >> 6);
    out[1] = static_cast<uint8_t>(0x80 | (c & 0x3f));
    return 2;
  }
  if (c < 0x10000) {
    out[0] = static_cast<uint8_t>(0xe0 | c >> 12);
    out[1] = static_cast<uint8_t>(0x80 | (c >> 6 & 0x3f));
    out[2] = static_cast<uint8_t>(0x80 | (c & 0x3f));
    return 3;
  }
  out[0] = static_cast<uint8_t>(0xf0 | c >> 18);
  out[1] = static_cast<uint8_t>(0x80 | (c >> 12 & 0x3f));
  out[2] = static_cast<uint8_t>(0x80 | (c >> 6 & 0x3f));
  out[3] = static_cast<uint8_t>(0x80 | (c & 0x3f));
  return 4;
}

}  // namespace kc
