// Owns: JSON text from single values of other formats: numbers, texts, bytes, dates and times.
// Threads: one at a time (the caller of decode). Never: knows a format, touches Python.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "values/byte_scan.hpp"

namespace kc {

class JsonWriter {
 public:
  std::string text;   // 16 bytes are readable, however short it is

  JsonWriter() { text.reserve(64); }

  // Starts a text of at most so many bytes.
  void begin(int64_t most) {
    most_ = static_cast<size_t>(most);
    text.clear();
  }

  // False when the text is too large: the names of fields are repeated for each of their values.
  bool fits() const { return text.size() <= most_; }

  void raw(std::string_view part) { text.append(part); }

  void boolean(bool value) { raw(value ? "true" : "false"); }

  template <class Integer>
  void integer(Integer value) {
    char digits[24];
    text.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
  }

  // The shortest text that reads back as the same number. JSON has no other floats than finite ones: those are strings.
  template <class Float>
  void floating(Float value) {
    if (!std::isfinite(value)) return raw(std::isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    char digits[32];
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
    text.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
#else
    const int length = snprintf(digits, sizeof(digits), sizeof(Float) == 4 ? "%.9g" : "%.17g", static_cast<double>(value));
    text.append(digits, static_cast<size_t>(length));
#endif
  }

  // False if the bytes are not UTF-8.
  bool string(const uint8_t* p, size_t length) {
    if (!is_text(p, length)) return false;
    text += '"';
    for (size_t i = 0; i < length; ++i) {
      const uint8_t c = p[i];
      if (c == '"' || c == '\\') {
        text += '\\';
        text += static_cast<char>(c);
      } else if (c < 0x20) {
        static const char kHex[] = "0123456789abcdef";
        raw("\\u00");
        text += kHex[c >> 4];
        text += kHex[c & 15];
      } else {
        text += static_cast<char>(c);
      }
    }
    text += '"';
    return true;
  }

  bool string(const std::string& value) { return string(reinterpret_cast<const uint8_t*>(value.data()), value.size()); }

  void base64(const uint8_t* p, size_t length) {
    static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    text += '"';
    for (size_t i = 0; i < length; i += 3) {
      const size_t left = length - i;
      const uint32_t word = static_cast<uint32_t>(p[i]) << 16 | (left > 1 ? static_cast<uint32_t>(p[i + 1]) << 8 : 0) |
                            (left > 2 ? p[i + 2] : 0u);
      text += kDigits[word >> 18];
      text += kDigits[word >> 12 & 63];
      text += left > 1 ? kDigits[word >> 6 & 63] : '=';
      text += left > 2 ? kDigits[word & 63] : '=';
    }
    text += '"';
  }

  // Two's complement, big-endian; false with more than 32 bytes.
  bool decimal(const uint8_t* p, int64_t length, int32_t scale) {
    if (length > 32) return false;
    uint8_t big[32];
    memcpy(big, p, static_cast<size_t>(length));
    const bool negative = length && (big[0] & 0x80);
    if (negative) {
      bool carry = true;
      for (int64_t i = length; i-- > 0;) {
        big[i] = static_cast<uint8_t>(~big[i] + (carry ? 1 : 0));
        carry = carry && big[i] == 0;
      }
    }
    std::string digits;   // the last one first
    for (bool more = true; more;) {
      uint32_t rest = 0;
      more = false;
      for (int64_t i = 0; i < length; ++i) {
        const uint32_t part = rest << 8 | big[i];
        big[i] = static_cast<uint8_t>(part / 10);
        rest = part % 10;
        more |= big[i] != 0;
      }
      digits += static_cast<char>('0' + rest);
    }
    while (digits.size() <= static_cast<size_t>(scale)) digits += '0';
    if (negative) text += '-';
    for (size_t i = digits.size(); i-- > 0;) {
      text += digits[i];
      if (scale && i == static_cast<size_t>(scale)) text += '.';
    }
    return true;
  }

  // Days since 1970 as YYYY-MM-DD; outside the years 1 to 9999 as the number.
  void date(int64_t days) {
    if (days < kFirstDay || days > kLastDay) return integer(days);
    text += '"';
    calendar(days);
    text += '"';
  }

  // Units since midnight as HH:MM:SS with the digits of the unit: 0, 3, 6 or 9.
  void time_of_day(int64_t count, int32_t unit) {
    text += '"';
    clock(count, unit, unit);
    text += '"';
  }

  // Units since 1970 as YYYY-MM-DDTHH:MM:SS with the unit's digits; outside the years 1 to 9999 as the number.
  void timestamp(int64_t count, int32_t unit, bool has_zone) {
    const int64_t per_day = 86400 * power(unit);
    int64_t days = count / per_day;
    if (count % per_day < 0) --days;
    if (days < kFirstDay || days > kLastDay) return integer(count);
    moment(days, count - days * per_day, unit, unit, has_zone);
  }

  // With as few groups of three digits as the nanoseconds need.
  void instant(int64_t seconds, int32_t nanos) {
    int64_t days = seconds / 86400;
    if (seconds % 86400 < 0) --days;
    moment(days, (seconds - days * 86400) * 1000000000 + nanos, 9, shown_digits(nanos), true);
  }

  void duration(int64_t seconds, int32_t nanos) {
    text += '"';
    if (seconds < 0 || nanos < 0) text += '-';
    integer(seconds < 0 ? -seconds : seconds);
    fraction(nanos < 0 ? -nanos : nanos, 9, shown_digits(nanos));
    raw("s\"");
  }

 private:
  static constexpr int64_t kFirstDay = -719162, kLastDay = 2932896;

  static int64_t power(int32_t unit) {
    int64_t n = 1;
    for (int32_t i = 0; i < unit; ++i) n *= 10;
    return n;
  }

  static int32_t shown_digits(int32_t nanos) { return nanos % 1000 ? 9 : nanos % 1000000 ? 6 : nanos ? 3 : 0; }

  void padded(int64_t value, int32_t digits) {
    const std::string found = std::to_string(value);
    text.append(static_cast<size_t>(digits) > found.size() ? static_cast<size_t>(digits) - found.size() : 0, '0');
    text += found;
  }

  void fraction(int64_t count, int32_t unit, int32_t shown) {
    if (!shown) return;
    text += '.';
    padded(count / power(unit - shown), shown);
  }

  void clock(int64_t count, int32_t unit, int32_t shown) {
    const int64_t second = count / power(unit);
    padded(second / 3600, 2);
    text += ':';
    padded(second / 60 % 60, 2);
    text += ':';
    padded(second % 60, 2);
    fraction(count % power(unit), unit, shown);
  }

  void calendar(int64_t days) {
    const int64_t z = days + 719468;   // days since 0000-03-01
    const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    const int64_t of_era = z - era * 146097;
    const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const int64_t month = (5 * of_year + 2) / 153;
    padded(year + era * 400 + (month >= 10), 4);
    text += '-';
    padded(month < 10 ? month + 3 : month - 9, 2);
    text += '-';
    padded(of_year - (153 * month + 2) / 5 + 1, 2);
  }

  void moment(int64_t days, int64_t count, int32_t unit, int32_t shown, bool has_zone) {
    text += '"';
    calendar(days);
    text += 'T';
    clock(count, unit, shown);
    raw(has_zone ? "Z\"" : "\"");
  }

  size_t most_ = 0;
};

}  // namespace kc
