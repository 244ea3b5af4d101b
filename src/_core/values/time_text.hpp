// Owns: ISO 8601 dates, times and timestamps as text, and their exact number of units.
// Threads: any (pure functions). Never: rounds; nonzero digits that the unit cannot hold are cut off on request, else an
// error.
#pragma once
#include <cstddef>
#include <cstdint>

#include "values/program.hpp"

namespace kc {

// Returns the days since 1970-01-01 in the proleptic Gregorian calendar.
inline int64_t days_from_civil(int64_t y, int32_t m, int32_t d) {
  y -= m <= 2;
  const int64_t era = (y >= 0 ? y : y - 399) / 400;
  const int64_t of_era = y - era * 400;
  const int64_t of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

class TimeText {
 public:
  TimeText(const uint8_t* p, size_t length, bool truncates) : p_(p), end_(p + length), truncates_(truncates) {}

  // YYYY-MM-DD
  bool date(int64_t& days) {
    int32_t year, month, day;
    if (!number(4, year) || !skip('-') || !number(2, month) || !skip('-') || !number(2, day)) return false;
    static const uint8_t kDays[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (month < 1 || month > 12 || day < 1 || day > kDays[month - 1]) return false;
    if (month == 2 && day == 29 && !(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))) return false;
    days = days_from_civil(year, month, day);
    return true;
  }

  // HH:MM[:SS[.fraction]] as the number of units since midnight.
  BadValue time(int32_t unit, int64_t& count) {
    int32_t hour, minute, second = 0;
    int64_t fraction = 0;
    int32_t digits = 0;
    bool lost = false;
    if (!number(2, hour) || !skip(':') || !number(2, minute)) return BAD_TIME;
    if (skip(':')) {
      if (!number(2, second)) return BAD_TIME;
      if (p_ < end_ && (*p_ == '.' || *p_ == ',')) {
        ++p_;
        const uint8_t* first = p_;
        for (; p_ < end_ && static_cast<uint8_t>(*p_ - '0') <= 9; ++p_) {
          if (digits < unit) {
            fraction = fraction * 10 + (*p_ - '0');
            ++digits;
          } else {
            lost |= *p_ != '0';
          }
        }
        if (p_ == first) return BAD_TIME;
      }
    }
    if (hour > 23 || minute > 59 || second > 59) return BAD_TIME;
    for (; digits < unit; ++digits) fraction *= 10;
    count = (hour * int64_t(3600) + minute * 60 + second) * power(unit) + fraction;
    return lost && !truncates_ ? BAD_INEXACT : BAD_NONE;
  }

  // A date, then optionally 'T' or a space and a time, then optionally 'Z' or an offset. If the column has a zone, the
  // result is in UTC, and a text without an offset is UTC. Otherwise an offset is an error, because it would be lost.
  BadValue timestamp(int32_t unit, bool has_zone, int64_t& out) {
    int64_t days, count = 0, shift = 0;
    if (!date(days)) return BAD_TIME;
    if (!ended()) {
      if (!skip('T') && !skip('t') && !skip(' ')) return BAD_TIME;
      const BadValue bad = time(unit, count);
      if (bad != BAD_NONE) return bad;
      if (!ended()) {
        if (!offset(shift)) return BAD_TIME;
        if (!has_zone) return BAD_TIME;
      }
    }
    const __int128 whole = static_cast<__int128>(days * 86400 - shift) * power(unit) + count;
    out = static_cast<int64_t>(whole);
    return out == whole ? BAD_NONE : BAD_RANGE;
  }

  bool ended() const { return p_ == end_; }

  static int64_t power(int32_t unit) {
    return unit == 0 ? 1 : unit == 3 ? 1000 : unit == 6 ? 1000000 : 1000000000;
  }

 private:
  bool skip(char c) {
    if (p_ == end_ || *p_ != static_cast<uint8_t>(c)) return false;
    ++p_;
    return true;
  }

  bool number(int32_t digits, int32_t& out) {
    out = 0;
    if (end_ - p_ < digits) return false;
    for (int32_t i = 0; i < digits; ++i) {
      const auto d = static_cast<uint8_t>(*p_++ - '0');
      if (d > 9) return false;
      out = out * 10 + d;
    }
    return true;
  }

  // Z, ±HH, ±HHMM or ±HH:MM, in seconds.
  bool offset(int64_t& seconds) {
    seconds = 0;
    if (skip('Z') || skip('z')) return ended();
    const bool minus = p_ < end_ && *p_ == '-';
    if (!skip('+') && !skip('-')) return false;
    int32_t hours, minutes = 0;
    if (!number(2, hours)) return false;
    if (!ended()) {
      skip(':');
      if (!number(2, minutes)) return false;
    }
    if (hours > 23 || minutes > 59 || !ended()) return false;
    seconds = (hours * 60 + minutes) * int64_t(60);
    if (minus) seconds = -seconds;
    return true;
  }

  const uint8_t* p_;
  const uint8_t* end_;
  const bool truncates_;
};

}  // namespace kc
