// Owns: the check that bytes are UTF-8 (RFC 3629): 16 bytes at a time if the CPU has SSSE3, otherwise one by one.
// Threads: any (pure functions over constant tables). Never: reads past the bytes, needs compile flags beyond the
// baseline.
//
// Three half-bytes of two neighbouring bytes determine each kind of error: the first byte's high and low half, and the
// second byte's high half. Three tables with 16 entries, with one bit for each kind of error, therefore find all errors
// (Keiser and Lemire, 2020).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && !defined(KC_PORTABLE_SCAN)
#include <tmmintrin.h>
#define KC_UTF8_TARGET __attribute__((target("ssse3")))
#endif

namespace kc {
namespace utf8_detail {

inline bool valid_bytewise(const uint8_t* p, size_t length) {
  const uint8_t* end = p + length;
  while (p < end) {
    if (end - p >= 8) {
      uint64_t eight;
      memcpy(&eight, p, 8);
      if (!(eight & 0x8080808080808080u)) {
        p += 8;
        continue;
      }
    }
    const uint8_t a = *p;
    if (a < 0x80) {
      ++p;
    } else if (a < 0xc2) {
      return false;
    } else if (a < 0xe0) {
      if (end - p < 2 || (p[1] & 0xc0) != 0x80) return false;
      p += 2;
    } else if (a < 0xf0) {
      if (end - p < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80) return false;
      if ((a == 0xe0 && p[1] < 0xa0) || (a == 0xed && p[1] >= 0xa0)) return false;
      p += 3;
    } else if (a < 0xf5) {
      if (end - p < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80) return false;
      if ((a == 0xf0 && p[1] < 0x90) || (a == 0xf4 && p[1] >= 0x90)) return false;
      p += 4;
    } else {
      return false;
    }
  }
  return true;
}

#ifdef KC_UTF8_TARGET

struct Tables {
  alignas(16) uint8_t first_high[16] = {};
  alignas(16) uint8_t first_low[16] = {};
  alignas(16) uint8_t second_high[16] = {};

  Tables() {
    constexpr uint16_t kAny = 0xffff, kAscii = 0x00ff, kContinuation = 0x0f00, kLead = 0xf000;
    uint8_t bit = 1;
    add(bit, kLead, kAny, kAscii | kLead);                   // too short
    add(bit, kAscii, kAny, kContinuation);                   // too long
    add(bit, 1 << 12, 0x0003, kContinuation);                // two bytes for a character that needs one
    add(bit, 1 << 14, 0x0001, 0x0300);                       // three bytes for a character that needs two
    add(bit, 1 << 14, 0x2000, 0x0c00);                       // a surrogate
    add(bit, 1 << 15, 0xfff0, 0x0e00);                       // beyond U+10FFFF
    add(bit, 1 << 15, 0xffe1, 0x0100);                       // beyond U+10FFFF, or four bytes instead of three
    add(bit, kContinuation, kAny, kContinuation);            // the highest bit: correct in a third or fourth byte
  }

 private:
  void add(uint8_t& bit, uint16_t highs, uint16_t lows, uint16_t seconds) {
    for (int32_t i = 0; i < 16; ++i) {
      if (highs >> i & 1) first_high[i] |= bit;
      if (lows >> i & 1) first_low[i] |= bit;
      if (seconds >> i & 1) second_high[i] |= bit;
    }
    bit = static_cast<uint8_t>(bit << 1);
  }
};

inline const Tables kTables;

KC_UTF8_TARGET inline __m128i faults(__m128i now, __m128i before) {
  const __m128i half = _mm_set1_epi8(0x0f);
  const __m128i one = _mm_alignr_epi8(now, before, 15);     // for each byte, the byte before it
  const __m128i two = _mm_alignr_epi8(now, before, 14);
  const __m128i three = _mm_alignr_epi8(now, before, 13);
  auto table = [](const uint8_t* t) { return *reinterpret_cast<const __m128i*>(t); };
  const __m128i pairs = _mm_and_si128(
      _mm_and_si128(_mm_shuffle_epi8(table(kTables.first_high), _mm_and_si128(_mm_srli_epi16(one, 4), half)),
                    _mm_shuffle_epi8(table(kTables.first_low), _mm_and_si128(one, half))),
      _mm_shuffle_epi8(table(kTables.second_high), _mm_and_si128(_mm_srli_epi16(now, 4), half)));
  // The third byte after 0xe0 and above and the fourth byte after 0xf0 and above: two continuation bytes are required.
  const __m128i expected = _mm_or_si128(_mm_subs_epu8(two, _mm_set1_epi8(0x60)), _mm_subs_epu8(three, _mm_set1_epi8(0x70)));
  return _mm_xor_si128(pairs, _mm_and_si128(expected, _mm_set1_epi8(static_cast<char>(0x80))));
}

KC_UTF8_TARGET inline bool valid_by_16(const uint8_t* p, size_t length) {
  __m128i before = _mm_setzero_si128(), found = _mm_setzero_si128();
  for (; length >= 16; p += 16, length -= 16) {
    const __m128i now = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    if (_mm_movemask_epi8(_mm_or_si128(now, before))) found = _mm_or_si128(found, faults(now, before));
    before = now;
  }
  alignas(16) uint8_t rest[16] = {};   // zeros after the text, so that an incomplete last character is too short
  if (length) memcpy(rest, p, length);
  found = _mm_or_si128(found, faults(*reinterpret_cast<const __m128i*>(rest), before));
  return _mm_movemask_epi8(_mm_cmpeq_epi8(found, _mm_setzero_si128())) == 0xffff;
}

inline const bool kHasSsse3 = __builtin_cpu_supports("ssse3");

#endif

}  // namespace utf8_detail

// Returns whether the bytes are UTF-8, without overlong forms, surrogates and characters beyond U+10FFFF.
inline bool valid_utf8(const uint8_t* p, size_t length) {
#ifdef KC_UTF8_TARGET
  if (length >= 16 && utf8_detail::kHasSsse3) return utf8_detail::valid_by_16(p, length);
#endif
  return utf8_detail::valid_bytewise(p, length);
}

}  // namespace kc
