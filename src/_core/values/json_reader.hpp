// Owns: the reading of JSON's grammar within one row: white space, numbers, escapes, and values that are skipped.
// Threads: one at a time (the caller of decode). Never: writes into a column, reads more than 32 bytes past a row's end.
#pragma once
#include <cstdint>
#include <cstring>

#include "values/builders.hpp"
#include "values/byte_scan.hpp"
#include "values/number_text.hpp"

namespace kc {

class JsonReader {
 public:
  static constexpr int32_t kMostNested = 512;   // maximum depth of nested containers, in skipped fields too

 protected:
  using Bytes = const uint8_t*;

  const uint8_t* end_ = nullptr;
  RowFailure* failure_ = nullptr;
  int32_t depth_ = 0;                           // number of open containers
  uint8_t closes_[kMostNested] = {};

  __attribute__((noinline)) Bytes fail(BadValue reason, int32_t node, Bytes at) {
    if (failure_->reason == BAD_NONE) *failure_ = {at >= end_ && reason == BAD_SYNTAX ? BAD_CUT_OFF : reason, node,
                                                   at > end_ ? end_ : at, failure_->found};
    return nullptr;
  }

  Bytes space(Bytes p) const {
    if (__builtin_expect(*p > ' ', 1)) return p;
    while (p < end_ && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
    return p;
  }

  static bool is(Bytes p, const char (&word)[5]) { return memcmp(p, word, 4) == 0; }

  // Returns the error for an unexpected value at p: a value of another type, or invalid JSON.
  BadValue wrong(Bytes p) const {
    if (p >= end_) return BAD_CUT_OFF;
    const bool begins = *p == '"' || *p == '{' || *p == '[' || *p == '-' || is_digit(*p) || is(p, "true") ||
                        (is(p, "fals") && p[4] == 'e') || is(p, "null");
    return begins ? BAD_TYPE : BAD_SYNTAX;
  }

  Bytes number(Bytes p, int32_t index, NumberText& n) {
    if (*p != '-' && !is_digit(*p)) return fail(wrong(p), index, p);
    Bytes after = read_number(p, end_, n);
    return after ? after : fail(BAD_SYNTAX, index, n.end);
  }

  // Decodes an escape sequence; p is at the backslash.
  __attribute__((noinline)) Bytes escape(Bytes p, int32_t index, uint8_t* data, size_t& at) {
    if (end_ - p < 2) return fail(BAD_CUT_OFF, index, end_);
    uint8_t c;
    switch (p[1]) {
      case '"': c = '"'; break;
      case '\\': c = '\\'; break;
      case '/': c = '/'; break;
      case 'b': c = '\b'; break;
      case 'f': c = '\f'; break;
      case 'n': c = '\n'; break;
      case 'r': c = '\r'; break;
      case 't': c = '\t'; break;
      case 'u': {
        uint32_t code, low;
        if (!hex(p + 2, code)) return fail(BAD_ESCAPE, index, p);
        Bytes after = p + 6;
        if (code >= 0xd800 && code < 0xe000) {  // one half of a surrogate pair: the other half must follow
          if (code >= 0xdc00 || end_ - after < 6 || after[0] != '\\' || after[1] != 'u' || !hex(after + 2, low) ||
              low < 0xdc00 || low >= 0xe000)
            return fail(BAD_ESCAPE, index, p);
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          after += 6;
        }
        at += put_utf8(code, data + at);
        return after;
      }
      default: return fail(BAD_ESCAPE, index, p);
    }
    data[at++] = c;
    return p + 2;
  }

  bool hex(Bytes p, uint32_t& out) const {
    out = 0;
    if (end_ - p < 4) return false;
    for (int32_t i = 0; i < 4; ++i) {
      const uint8_t c = p[i], lower = p[i] | 0x20;
      if (is_digit(c)) {
        out = out << 4 | static_cast<uint32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        out = out << 4 | static_cast<uint32_t>(lower - 'a' + 10);
      } else {
        return false;
      }
    }
    return true;
  }

  // Called after a value in a container. Moves `p` after a comma and returns true. Returns false with `p` after the
  // closing byte, or with p == nullptr after an error.
  bool next(Bytes& p, uint8_t close, int32_t index) {
    p = space(p);
    if (__builtin_expect(p >= end_, 0)) {
      p = fail(BAD_CUT_OFF, index, end_);
      return false;
    }
    if (__builtin_expect(*p == ',', 1)) {
      p = space(p + 1);
      return true;
    }
    p = *p == close ? p + 1 : fail(BAD_SYNTAX, index, p);
    return false;
  }

  Bytes colon(Bytes p, int32_t index) {
    p = space(p);
    if (__builtin_expect(p >= end_ || *p != ':', 0)) return fail(BAD_SYNTAX, index, p);
    return space(p + 1);
  }

  // ---- values without a column, which are checked and skipped

  Bytes skip_string(Bytes p, int32_t index) {
    Bytes first = p;
    bool high = false;
    for (;;) {
      const StringScan scan = scan_string(p, nullptr);
      p += scan.plain;
      high |= scan.high;
      if (p >= end_) return fail(BAD_CUT_OFF, index, end_);
      if (scan.plain == 16) continue;
      if (*p == '"') break;
      if (*p != '\\') return fail(BAD_SYNTAX, index, p);
      uint8_t unused[8];
      size_t at = 0;
      p = escape(p, index, unused, at);
      if (!p) return nullptr;
    }
    if (high && !valid_utf8(first, static_cast<size_t>(p - first))) return fail(BAD_UTF8, index, first);
    return p + 1;
  }

  // Skips any value, without recursion for nested containers.
  Bytes skip(Bytes p, int32_t index) {
    const int32_t before = depth_;
    for (;;) {
      if (p >= end_) return fail(BAD_CUT_OFF, index, end_);
      if (*p == '"') {
        p = skip_string(p + 1, index);
      } else if (*p == '{' || *p == '[') {
        const bool is_object = *p == '{';
        if (depth_ >= kMostNested) return fail(BAD_DEPTH, index, p);
        closes_[depth_++] = is_object ? '}' : ']';
        p = space(p + 1);
        if (p < end_ && *p == closes_[depth_ - 1]) {
          ++p;
          --depth_;
        } else if (is_object) {
          p = skip_key(p, index);
          if (!p) return nullptr;
          continue;
        } else {
          continue;
        }
      } else if (is(p, "true") || is(p, "null")) {
        p += 4;
      } else if (is(p, "fals") && p[4] == 'e') {
        p += 5;
      } else {
        NumberText n;
        p = number(p, index, n);
      }
      if (!p) return nullptr;
      // After a value: leave all containers that end here.
      for (;;) {
        if (depth_ == before) return p;
        if (next(p, closes_[depth_ - 1], index)) break;
        if (!p) return nullptr;
        --depth_;
      }
      if (closes_[depth_ - 1] == '}') {
        p = skip_key(p, index);
        if (!p) return nullptr;
      }
    }
  }

  Bytes skip_key(Bytes p, int32_t index) {
    if (p >= end_ || *p != '"') return fail(BAD_SYNTAX, index, p);
    p = skip_string(p + 1, index);
    return p ? colon(p, index) : nullptr;
  }
};

}  // namespace kc
