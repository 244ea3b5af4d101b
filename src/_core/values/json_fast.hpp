// Owns: the values of JSON objects in their usual form, read without a call: short numbers and short plain text.
// Threads: any (a column is its caller's). Never: fails a row: it leaves other forms to JsonDecoder; reads more
// than 32 bytes from the position it is given.
#pragma once
#include <cstdint>
#include <cstring>

#include "values/builders.hpp"
#include "values/byte_scan.hpp"
#include "values/json_program.hpp"
#include "values/number_text.hpp"

namespace kc {

constexpr ptrdiff_t kMostDigits = 19;   // of a mantissa that fits uint64

// p is after the digits before the point.
__attribute__((always_inline)) inline const uint8_t* fast_float(Column& c, const uint8_t* p, const uint8_t* first, uint64_t n,
                                                                bool negative, int64_t entry) {
  static const double kPowers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
                                   1e17, 1e18, 1e19};
  const uint8_t* point = p;
  if (*p == '.') {
    uint8_t digit;
    ++p;
    uint64_t eight;
    while (p - first <= kMostDigits + 1 - 8 && eight_digits(p, eight)) {
      n = n * 100000000 + eight;
      p += 8;
    }
    while ((digit = static_cast<uint8_t>(*p - '0')) <= 9) {
      if (p - first > kMostDigits) return nullptr;   // the point is among the bytes
      n = n * 10 + digit;
      ++p;
    }
    if (p == point + 1) return nullptr;
    ++point;
  }
  if (*p != ',' && *p != '}') return nullptr;
  const auto places = static_cast<int32_t>(p - point);
  double value;
  if (__builtin_expect(n <= uint64_t(1) << 53, 1)) {
    value = static_cast<double>(n) / kPowers[places];   // both are exact
  } else if (places == 0) {
    value = static_cast<double>(n);
  } else if (!quotient_float(n, places, value)) {
    return nullptr;
  }
  if (negative) value = -value;
  memcpy(c.values + entry * 8, &value, 8);
  c.length = entry + 1;
  return p;
}

// The first value of a field in the usual case: a number of a few digits or text of a few bytes, with room in its column.
// nullptr otherwise, with nothing changed. It may read into the bytes after the row; the caller notices that.
__attribute__((always_inline)) inline const uint8_t* fast_value(JsonFast fast, Column& c, const uint8_t* p, int64_t entry) {
  if (__builtin_expect(c.length != entry || entry >= c.capacity, 0)) return nullptr;
  if (fast == JSON_FAST_TEXT) {
    if (*p != '"' || c.data.size + 16 + kWriteAhead > c.data.capacity) return nullptr;
    const StringScan scan = scan_string(p + 1, c.data.data + c.data.size);
    p += 1 + scan.plain;
    if (scan.plain == 16 || scan.high || *p != '"') return nullptr;
    c.data.size += static_cast<size_t>(scan.plain);
    c.put_offset(entry + 1, static_cast<int64_t>(c.data.size));
    c.length = entry + 1;
    return p + 1;
  }
  const bool negative = *p == '-';
  p += negative;
  const uint8_t* first = p;
  uint64_t n = 0;
  uint8_t digit;
  while ((digit = static_cast<uint8_t>(*p - '0')) <= 9) {
    n = n * 10 + digit;
    ++p;
    if (p - first > 18) return nullptr;   // fits int64, and the double nearest to it is that of the conversion
  }
  if (p == first || (*first == '0' && p - first > 1)) return nullptr;
  if (fast == JSON_FAST_FLOAT64) return fast_float(c, p, first, n, negative, entry);
  if (*p != ',' && *p != '}') return nullptr;
  const auto value = negative ? -static_cast<int64_t>(n) : static_cast<int64_t>(n);
  if (fast == JSON_FAST_INT64) {
    memcpy(c.values + entry * 8, &value, 8);
  } else {
    const auto narrow = static_cast<int32_t>(value);
    if (narrow != value) return nullptr;
    memcpy(c.values + entry * 4, &narrow, 4);
  }
  c.length = entry + 1;
  return p;
}

}  // namespace kc
