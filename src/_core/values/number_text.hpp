// Owns: JSON's numbers as text: their grammar, and their exact value as an integer, a decimal or the nearest float.
// Threads: any (pure functions). Never: rounds an integer or a decimal, reads more than one byte past the end.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#if !defined(__cpp_lib_to_chars) || __cpp_lib_to_chars < 201611L
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

#include "values/program.hpp"

namespace kc {

// A number's parts, as they stand in the text.
struct NumberText {
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;
  bool negative = false;
  bool is_whole = true;         // neither fraction nor exponent
  int32_t digits = 0;           // in `mantissa`; at most 19, further ones are left out
  int32_t dropped = 0;          // digits left out of the mantissa
  uint64_t mantissa = 0;
  int64_t exponent = 0;         // of ten, of the mantissa (with what was left out counted in)
};

inline bool is_digit(uint8_t c) { return static_cast<uint8_t>(c - '0') <= 9; }

// Reads a number of JSON's grammar. nullptr where there is none; `n.end` is then where it goes wrong.
inline const uint8_t* read_number(const uint8_t* p, const uint8_t* end, NumberText& n) {
  n.begin = p;
  if (p < end && *p == '-') {
    n.negative = true;
    ++p;
  }
  const uint8_t* first = p;
  auto take = [&n](uint8_t c) {
    if (n.digits < 19) {
      n.mantissa = n.mantissa * 10 + (c - '0');
      if (n.mantissa) ++n.digits;
      return true;
    }
    ++n.dropped;
    return false;
  };
  while (p < end && is_digit(*p)) {
    if (!take(*p++)) ++n.exponent;
  }
  n.end = p;
  if (p == first || (*first == '0' && p - first > 1)) return nullptr;
  if (p < end && *p == '.') {
    n.is_whole = false;
    const uint8_t* fraction = ++p;
    while (p < end && is_digit(*p)) {
      if (take(*p++)) --n.exponent;
    }
    n.end = p;
    if (p == fraction) return nullptr;
  }
  if (p < end && (*p | 0x20) == 'e') {
    n.is_whole = false;
    ++p;
    bool minus = false;
    if (p < end && (*p == '+' || *p == '-')) minus = *p++ == '-';
    const uint8_t* digits = p;
    int64_t e = 0;
    while (p < end && is_digit(*p)) {
      if (e < 1000000000) e = e * 10 + (*p - '0');
      ++p;
    }
    n.end = p;
    if (p == digits) return nullptr;
    n.exponent += minus ? -e : e;
  }
  n.end = p;
  return p;
}

// 256 bits, the lowest word first; two's complement once signed.
struct Wide {
  uint64_t word[4] = {0, 0, 0, 0};

  void times_ten_plus(uint32_t digit) {
    unsigned __int128 carry = digit;
    for (uint64_t& w : word) {
      carry += static_cast<unsigned __int128>(w) * 10;
      w = static_cast<uint64_t>(carry);
      carry >>= 64;
    }
  }
  void negate() {
    uint64_t carry = 1;
    for (uint64_t& w : word) {
      w = ~w + carry;
      carry = carry && w == 0;
    }
  }
};

// The number times ten to the power of `scale`, when it is whole and has up to `precision` digits.
inline BadValue exact_number(const NumberText& n, int32_t scale, int32_t precision, Wide& out) {
  if (n.mantissa == 0) return BAD_NONE;
  // Digits of the text that are kept: those whose place is at least 10 to the power of -scale.
  int64_t point = 0;  // digits before the point, counted from the first one that is not zero
  bool seen = false, after = false;
  const uint8_t* p = n.begin + n.negative;
  for (; p < n.end && (*p | 0x20) != 'e'; ++p) {
    if (*p == '.') {
      after = true;
      continue;
    }
    seen |= *p != '0';
    if (seen && !after) ++point;
    if (!seen && after) --point;
  }
  int64_t e = 0;
  if (p < n.end) {
    ++p;
    bool minus = *p == '-';
    if (*p == '+' || *p == '-') ++p;
    for (; p < n.end; ++p) {
      if (e < 1000000000) e = e * 10 + (*p - '0');
    }
    if (minus) e = -e;
  }
  const int64_t kept = point + e + scale;
  int64_t taken = 0;
  seen = false;
  for (p = n.begin + n.negative; p < n.end && (*p | 0x20) != 'e'; ++p) {
    if (*p == '.') continue;
    seen |= *p != '0';
    if (!seen) continue;
    if (taken < kept) {
      if (taken < precision) out.times_ten_plus(static_cast<uint32_t>(*p - '0'));
      ++taken;
    } else if (*p != '0') {
      return BAD_INEXACT;
    }
  }
  if (kept > precision) return BAD_RANGE;
  for (; taken < kept; ++taken) out.times_ten_plus(0);
  if (n.negative) out.negate();
  return BAD_NONE;
}

template <class F>
inline bool nearest_float(const char* begin, const char* end, F& out) {
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
  const auto result = std::from_chars(begin, end, out);
  return result.ptr == end && result.ec == std::errc();
#else
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string text(begin, end);
  char* stop = nullptr;
  out = sizeof(F) == 4 ? static_cast<F>(strtof_l(text.c_str(), &stop, plain))
                       : static_cast<F>(strtod_l(text.c_str(), &stop, plain));
  return *stop == 0;
#endif
}

// 2 to the power of 63 + bits, divided by 5 to the power of k and rounded down, where `bits` are those of the divisor. It
// has 64 bits.
struct InverseFives {
  static constexpr int32_t kMost = 27;   // 5 to the power of 27 has 63 bits
  uint64_t inverse[kMost + 1] = {};
  int32_t bits[kMost + 1] = {};

  constexpr InverseFives() {
    uint64_t five = 1;
    for (int32_t k = 1; k <= kMost; ++k) {
      five *= 5;
      for (uint64_t n = five; n; n >>= 1) ++bits[k];
      inverse[k] = static_cast<uint64_t>((static_cast<unsigned __int128>(1) << (63 + bits[k])) / five);
    }
  }
};

// The double nearest to n / 10 to the power of k, for k from 1 to 27. False in a few of a thousand cases, in which 64 bits
// of the quotient do not tell the nearest one.
//
// 1. n is shifted so that it has 64 bits, and multiplied by the inverse. Of the product the upper 64 bits are kept.
// 2. The inverse is too small by less than 1, and less than 1 is cut off: the true quotient is in [kept, kept + 2).
// 3. The quotient is rounded to 53 bits if no number in that range is half of the last one, or on the other side of it.
inline bool quotient_float(uint64_t n, int32_t k, double& out) {
  static constexpr InverseFives kFives;
  if (n == 0) return false;
  const int32_t shift = __builtin_clzll(n);
  const auto kept = static_cast<uint64_t>((static_cast<unsigned __int128>(n << shift) * kFives.inverse[k]) >> 64);
  const int32_t cut = 10 + static_cast<int32_t>(kept >> 63);   // bits beyond 53
  const uint64_t half = uint64_t(1) << (cut - 1), tail = kept & (2 * half - 1);
  if (__builtin_expect(tail - (half - 2) <= 2, 0)) return false;
  const uint64_t mantissa = (kept >> cut) + (tail > half);
  const int32_t exponent = cut + 1 - shift - kFives.bits[k] - k;   // of two, of the mantissa
  // A mantissa of 2 to the power of 53 carries into the exponent.
  const uint64_t word = (static_cast<uint64_t>(exponent + 52 + 1023) << 52) + (mantissa - (uint64_t(1) << 52));
  memcpy(&out, &word, 8);
  return true;
}

// Whether eight digits stand at p, and their value.
inline bool eight_digits(const uint8_t* p, uint64_t& value) {
  uint64_t word;
  memcpy(&word, p, 8);
  if (((word & 0xf0f0f0f0f0f0f0f0u) | (((word + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) >> 4)) != 0x3333333333333333u)
    return false;
  word -= 0x3030303030303030u;
  word = word * 10 + (word >> 8);
  value = ((word & 0x000000ff000000ffu) * 0x000f424000000064u + ((word >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >>
          32;
  return true;
}

// The nearest float. False when the number is too large for the type.
template <class F>
inline bool float_number(const NumberText& n, F& out) {
  static const double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr int32_t kExact = sizeof(F) == 4 ? 10 : 22;  // the largest exact power of ten, and mantissa, of the type
  constexpr uint64_t kMantissa = sizeof(F) == 4 ? uint64_t(1) << 24 : uint64_t(1) << 53;
  if (n.mantissa <= kMantissa && !n.dropped && n.exponent >= -kExact && n.exponent <= kExact) {
    const auto power = static_cast<F>(kPowers[n.exponent < 0 ? -n.exponent : n.exponent]);
    const auto whole = static_cast<F>(n.mantissa);
    out = n.exponent < 0 ? whole / power : whole * power;
    if (n.negative) out = -out;
    return true;
  }
  if (n.mantissa == 0) {
    out = n.negative ? -F(0) : F(0);
    return true;
  }
  if constexpr (sizeof(F) == 8) {
    if (!n.dropped && n.exponent < 0 && n.exponent >= -InverseFives::kMost &&
        quotient_float(n.mantissa, static_cast<int32_t>(-n.exponent), out)) {
      if (n.negative) out = -out;
      return true;
    }
  }
  const int64_t magnitude = n.exponent + n.digits;
  if (magnitude < -400) {
    out = n.negative ? -F(0) : F(0);
    return true;
  }
  if (magnitude > 400) return false;
  if (nearest_float(reinterpret_cast<const char*>(n.begin), reinterpret_cast<const char*>(n.end), out))
    return !std::isinf(out);
  // Out of range: below the smallest float it is zero, or the smallest; above the largest it does not fit.
  if (magnitude > 0) return false;
  out = n.negative ? -F(0) : F(0);
  return true;
}

}  // namespace kc
