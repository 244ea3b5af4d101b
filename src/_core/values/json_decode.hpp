// Owns: decoding of one JSON text into the columns of a Plan, in one pass, without an intermediate tree.
// Threads: one at a time (the caller of decode). Never: reads more than 32 bytes past a row's end, changes other rows,
// touches Python.
//
// The bytes after a row can be valid JSON too. So every loop compares its position with the row's end, and a row is
// valid only if it ends exactly there. After an error all functions return nullptr up to row(); the caller then removes
// the row.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "values/builders.hpp"
#include "values/byte_scan.hpp"
#include "values/cell_budget.hpp"
#include "values/json_fast.hpp"
#include "values/json_program.hpp"
#include "values/json_reader.hpp"
#include "values/map_keys.hpp"
#include "values/number_text.hpp"
#include "values/time_text.hpp"

namespace kc {

class JsonDecoder : private JsonReader {
 public:
  JsonDecoder(const JsonProgram& program, Columnar& out)
      : program_(program), nodes_(program.plan->nodes.data()), out_(out), follows_(program.plan->nodes.size()),
        cells_(cells_by_node(*program.plan)), place_(program.plan->nodes.size(), -1) {
    for (size_t i = 0; i < follows_.size(); ++i) {
      const size_t count = program.fields[i].keys.size();
      follows_[i].resize(count + 1);   // initially in schema order; entry 0 is the object's first field
      for (size_t f = 0; f <= count; ++f) follows_[i][f] = static_cast<int32_t>(f < count ? f : 0);
    }
  }

  // Appends one row. False with `failure` (the caller must remove the row) or with the failure of the columns.
  bool row(const uint8_t* p, const uint8_t* end, RowFailure& failure) {
    end_ = end;
    failure_ = &failure;
    depth_ = 0;
    forget(0);
    budget_.begin_row(end - p);
    p = space(p);
    if (p >= end) return fail(BAD_EMPTY, 0, p) != nullptr;
    p = value(p, 0);
    if (!p) return first_failure();
    if (p > end) return fail(BAD_CUT_OFF, 0, end) != nullptr;
    p = space(p);
    return p == end || fail(BAD_TRAILING, 0, p) != nullptr;
  }

 private:
  // A value of a key that may come again.
  struct Postponed {
    int32_t child;         // the field's column
    int32_t depth;         // of its object
    int64_t entry;         // of the column, as long as no value was read
    RowFailure failure;
  };

  Column& column(int32_t node) { return out_.columns[static_cast<size_t>(node)]; }

  // ---- values

  Bytes value(Bytes p, int32_t index) {
    const ValueNode& node = nodes_[index];
    if (__builtin_expect(*p == 'n', 0)) return null(p, index);
    if (!out_.reserve(index)) return nullptr;
    switch (node.type) {
      case VALUE_INT: return integer(p, index, node);
      case VALUE_TEXT: return text(p, index);
      case VALUE_FLOAT: return floating(p, index, node);
      case VALUE_STRUCT: return object(p, index);
      case VALUE_LIST: return list(p, index);
      case VALUE_MAP: return map(p, index);
      case VALUE_BOOL: return boolean(p, index);
      case VALUE_TIMESTAMP:
      case VALUE_DATE:
      case VALUE_TIME: return time(p, index, node);
      case VALUE_DURATION: return integer(p, index, node);
      case VALUE_DECIMAL: return decimal(p, index, node);
      case VALUE_BINARY:
      case VALUE_FIXED: return binary(p, index, node);
      case VALUE_RAW_JSON: return raw(p, index);
      default: return fail(BAD_TYPE, index, p);
    }
  }

  __attribute__((noinline)) Bytes null(Bytes p, int32_t index) {
    if (!is(p, "null")) return fail(BAD_SYNTAX, index, p);
    if (!nodes_[index].nullable && index != 0) return fail(BAD_NULL, index, p);
    return out_.append_null(index) ? p + 4 : nullptr;
  }

  Bytes boolean(Bytes p, int32_t index) {
    Column& c = column(index);
    const auto bit = static_cast<uint8_t>(1u << (c.length & 7));
    if (is(p, "true")) {
      c.values[c.length >> 3] |= bit;
      p += 4;
    } else if (is(p, "fals") && p[4] == 'e') {
      c.values[c.length >> 3] &= static_cast<uint8_t>(~bit);
      p += 5;
    } else {
      return fail(wrong(p), index, p);
    }
    ++c.length;
    return p;
  }

  Bytes integer(Bytes p, int32_t index, const ValueNode& node) {
    Bytes first = p;
    const bool negative = *p == '-';
    p += negative;
    Bytes digits = p;
    uint64_t n = 0;
    uint8_t d;
    while ((d = static_cast<uint8_t>(*p - '0')) <= 9 && p - digits < 19) {
      n = n * 10 + d;
      ++p;
    }
    const auto count = p - digits;
    if (__builtin_expect(count == 0 || is_digit(*p) || *p == '.' || (*p | 0x20) == 'e' ||
                         (*digits == '0' && count > 1), 0))
      return odd_integer(first, index, node);
    return put_integer(p, index, node, negative, n, first);
  }

  Bytes put_integer(Bytes p, int32_t index, const ValueNode& node, bool negative, uint64_t n, Bytes first) {
    Column& c = column(index);
    const int32_t bits = node.width * 8 - (node.is_signed ? 1 : 0);
    const uint64_t most = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
    const uint64_t least = node.is_signed ? most + 1 : 0;
    if (__builtin_expect(n > (negative ? least : most), 0)) return fail(BAD_RANGE, index, first);
    const uint64_t stored = negative ? 0 - n : n;
    uint8_t* to = c.values + c.length * node.width;
    if (node.width == 8) {
      memcpy(to, &stored, 8);
    } else if (node.width == 4) {
      memcpy(to, &stored, 4);
    } else if (node.width == 2) {
      memcpy(to, &stored, 2);
    } else {
      *to = static_cast<uint8_t>(stored);
    }
    ++c.length;
    return p;
  }

  // Reads an integer with many digits, a fraction or an exponent. Fails if the number is not whole.
  __attribute__((noinline)) Bytes odd_integer(Bytes p, int32_t index, const ValueNode& node) {
    NumberText n;
    Bytes after = number(p, index, n);
    if (!after) return nullptr;
    Wide wide;
    NumberText magnitude = n;
    const BadValue bad = exact_number(magnitude, 0, 20, wide);
    if (bad != BAD_NONE) return fail(bad, index, p);
    if (n.negative) wide.negate();
    if (wide.word[1] | wide.word[2] | wide.word[3]) return fail(BAD_RANGE, index, p);
    return put_integer(after, index, node, n.negative, wide.word[0], p);
  }

  Bytes floating(Bytes p, int32_t index, const ValueNode& node) {
    NumberText n;
    Bytes after = number(p, index, n);
    if (!after) return nullptr;
    Column& c = column(index);
    bool fits;
    if (node.width == 8) {
      double d = 0;
      fits = float_number(n, d);
      memcpy(c.values + c.length * 8, &d, 8);
    } else {
      float f = 0;
      fits = float_number(n, f);
      memcpy(c.values + c.length * 4, &f, 4);
    }
    if (!fits) return fail(BAD_RANGE, index, p);
    ++c.length;
    return after;
  }

  // Reads a decimal: a number, or a string that contains a number.
  Bytes decimal(Bytes p, int32_t index, const ValueNode& node) {
    NumberText n;
    Bytes after;
    if (*p == '"') {
      Bytes begin;
      size_t length;
      after = short_text(p + 1, index, begin, length);
      if (!after) return nullptr;
      if (read_number(begin, begin + length, n) != begin + length || length == 0) {
        failure_->found = 1;
        return fail(BAD_TYPE, index, p);
      }
    } else {
      after = number(p, index, n);
      if (!after) return nullptr;
    }
    Wide wide;
    const BadValue bad = exact_number(n, node.scale, node.precision, wide);
    if (bad != BAD_NONE) return fail(bad, index, p);
    Column& c = column(index);
    memcpy(c.values + c.length * node.width, wide.word, static_cast<size_t>(node.width));
    ++c.length;
    return after;
  }

  Bytes time(Bytes p, int32_t index, const ValueNode& node) {
    if (*p != '"') {
      if (node.type != VALUE_TIMESTAMP || program_.epoch_unit < 0) return fail(wrong(p), index, p);
      return epoch(p, index, node);
    }
    Bytes begin;
    size_t length;
    Bytes after = short_text(p + 1, index, begin, length);
    if (!after) return nullptr;
    TimeText source(begin, length, program_.truncates);
    int64_t n = 0;
    BadValue bad = BAD_NONE;
    if (node.type == VALUE_TIMESTAMP) {
      bad = source.timestamp(node.unit, node.has_zone, n);
    } else if (node.type == VALUE_DATE) {
      bad = source.date(n) ? BAD_NONE : BAD_TIME;
      if (node.width == 8) n *= 86400000;
    } else {
      bad = source.time(node.unit, n);
    }
    if (bad == BAD_NONE && !source.ended()) bad = BAD_TIME;
    if (bad != BAD_NONE) return fail(bad, index, p);
    put_count(index, node, n);
    return after;
  }

  void put_count(int32_t index, const ValueNode& node, int64_t n) {
    Column& c = column(index);
    if (node.width == 4) {
      const auto narrow = static_cast<int32_t>(n);
      memcpy(c.values + c.length * 4, &narrow, 4);
    } else {
      memcpy(c.values + c.length * 8, &n, 8);
    }
    ++c.length;
  }

  // Reads a timestamp as a number in the epoch unit. Fails if the column's unit cannot hold the exact value.
  Bytes epoch(Bytes p, int32_t index, const ValueNode& node) {
    NumberText n;
    Bytes after = number(p, index, n);
    if (!after) return nullptr;
    Wide wide;
    const NumberText magnitude = n;
    const BadValue bad = exact_number(magnitude, node.unit - program_.epoch_unit, 20, wide);
    if (bad != BAD_NONE) return fail(bad, index, p);
    if (n.negative) wide.negate();
    const uint64_t most = n.negative ? uint64_t(1) << 63 : INT64_MAX;
    if (wide.word[1] | wide.word[2] | wide.word[3] || wide.word[0] > most) return fail(BAD_RANGE, index, p);
    put_count(index, node, static_cast<int64_t>(n.negative ? 0 - wide.word[0] : wide.word[0]));
    return after;
  }

  // ---- strings

  Bytes text(Bytes p, int32_t index) {
    if (__builtin_expect(*p != '"', 0)) return fail(wrong(p), index, p);
    Column& c = column(index);
    Bytes after = unescape(p + 1, index, c.data, index);
    if (!after) return nullptr;
    c.put_offset(c.length + 1, static_cast<int64_t>(c.data.size));
    ++c.length;
    return after;
  }

  bool room(GrowingBytes& to, size_t bytes, int32_t column_index) {
    if (__builtin_expect(bytes + kWriteAhead <= to.capacity, 1)) return true;
    if (column_index >= 0) return out_.enlarge_data(column_index, bytes);
    return to.reserve(bytes) || out_.fail(0, BUILD_MEMORY);
  }

  // Appends the text of the string whose first byte is at p, as UTF-8. After an error `to` is unchanged. `column_index`
  // is the column that owns `to`; -1: none.
  Bytes unescape(Bytes p, int32_t index, GrowingBytes& to, int32_t column_index) {
    size_t at = to.size;
    bool high = false;
    for (;;) {
      if (!room(to, at + 16, column_index)) return nullptr;
      const StringScan scan = scan_string(p, to.data + at);
      at += static_cast<size_t>(scan.plain);
      p += scan.plain;
      high |= scan.high;
      if (__builtin_expect(scan.plain == 16, 0)) {
        if (p >= end_) return fail(BAD_CUT_OFF, index, end_);
        continue;
      }
      if (__builtin_expect(p >= end_, 0)) return fail(BAD_CUT_OFF, index, end_);
      if (__builtin_expect(*p == '"', 1)) break;
      if (*p != '\\') return fail(BAD_SYNTAX, index, p);
      p = escape(p, index, to.data, at);
      if (!p) return nullptr;
    }
    if (high && !valid_utf8(to.data + to.size, at - to.size)) return fail(BAD_UTF8, index, p);
    to.size = at;
    return p + 1;
  }

  // Sets `begin` and `length` to the text of a string: in the row, or in a copy that is valid until the next call.
  Bytes short_text(Bytes p, int32_t index, Bytes& begin, size_t& length) {
    begin = nullptr;
    length = 0;
    Bytes at = p;
    bool high = false;
    for (;;) {
      const StringScan scan = scan_string(at, nullptr);
      at += scan.plain;
      high |= scan.high;
      if (at >= end_) return fail(BAD_CUT_OFF, index, end_);
      if (scan.plain < 16) break;
    }
    if (*at == '"' && !high) {
      begin = p;
      length = static_cast<size_t>(at - p);
      return at + 1;
    }
    scratch_.size = 0;
    Bytes after = unescape(p, index, scratch_, -1);
    begin = scratch_.data;
    length = scratch_.size;
    return after;
  }

  static int32_t sextet(uint8_t c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  }

  // Reads base64 with padding (RFC 4648).
  Bytes binary(Bytes p, int32_t index, const ValueNode& node) {
    if (*p != '"') return fail(wrong(p), index, p);
    Bytes text;
    size_t length;
    Bytes after = short_text(p + 1, index, text, length);
    if (!after) return nullptr;
    if (length % 4) return fail(BAD_BASE64, index, p);
    size_t padding = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=') ++padding;
    const size_t bytes = length / 4 * 3 - padding;
    Column& c = column(index);
    uint8_t* to;
    if (node.type == VALUE_FIXED) {
      if (bytes != static_cast<size_t>(node.width)) {
        failure_->found = static_cast<int64_t>(bytes);
        return fail(BAD_LENGTH, index, p);
      }
      to = c.values + c.length * node.width;
    } else {
      if (!out_.reserve_data(index, bytes)) return nullptr;
      to = c.data.data + c.data.size;
    }
    uint32_t bits = 0;
    int32_t have = 0;
    for (size_t i = 0; i < length - padding; ++i) {
      const int32_t six = sextet(text[i]);
      if (six < 0) return fail(BAD_BASE64, index, p);
      bits = bits << 6 | static_cast<uint32_t>(six);
      have += 6;
      if (have >= 8) {
        have -= 8;
        *to++ = static_cast<uint8_t>(bits >> have);
        bits &= (1u << have) - 1;
      }
    }
    if (bits) return fail(BAD_BASE64, index, p);  // nonzero bits after the last byte
    if (node.type == VALUE_BINARY) {
      c.data.size += bytes;
      c.put_offset(c.length + 1, static_cast<int64_t>(c.data.size));
    }
    ++c.length;
    return after;
  }

  Bytes raw(Bytes p, int32_t index) {
    Bytes after = skip(p, index);
    if (!after) return nullptr;
    if (after > end_) return fail(BAD_CUT_OFF, index, end_);
    const auto bytes = static_cast<size_t>(after - p);
    if (!out_.reserve_data(index, bytes)) return nullptr;
    Column& c = column(index);
    memcpy(c.data.data + c.data.size, p, bytes);
    c.data.size += bytes;
    c.put_offset(c.length + 1, static_cast<int64_t>(c.data.size));
    ++c.length;
    return after;
  }

  // ---- containers

  Bytes object(Bytes p, int32_t index) {
    if (__builtin_expect(*p != '{', 0)) return fail(wrong(p), index, p);
    const JsonFields& fields = program_.fields[static_cast<size_t>(index)];
    const int32_t* children = nodes_[index].children.data();
    int32_t* follows = follows_[static_cast<size_t>(index)].data();
    const int64_t entry = column(index).length;
    const size_t count = fields.keys.size();
    size_t found = 0;
    int32_t last = 0;   // 1 + the field before
    const int32_t depth = ++depth_;
    p = space(p + 1);
    if (*p == '}') {
      ++p;
    } else {
      bool more = true;
      while (more) {
        if (__builtin_expect(p >= end_ || *p != '"', 0)) return fail(BAD_SYNTAX, index, p);
        ++p;
        int32_t field = count ? follows[last] : -1;
        if (__builtin_expect(count && fields.keys[static_cast<size_t>(field)].at_colon(p), 1)) {
          p = space(p + fields.keys[static_cast<size_t>(field)].length + 1);
        } else {
          p = key(p, index, fields, field);
          if (!p) return nullptr;
          if (field >= 0) follows[last] = field;
        }
        if (field < 0) {
          p = skip(p, index);
        } else {
          const int32_t child = children[field];
          const JsonFast kind = fields.keys[static_cast<size_t>(field)].fast;
          last = field + 1;
          Bytes after = kind == JSON_SLOW ? nullptr : fast_value(kind, column(child), p, entry);
          if (__builtin_expect(after != nullptr, 1)) {
            p = after;
            ++found;
            if (__builtin_expect(*p == ',' && p[1] == '"', 1)) {
              ++p;
              continue;
            }
          } else {
            if (__builtin_expect(column(child).length != entry, 0)) {  // a repeated key: the last value counts
              if (!take(child, p)) return nullptr;
              out_.truncate(child, entry);
              --found;
            }
            after = value(p, child);
            if (__builtin_expect(after != nullptr, 1)) {
              ++found;
            } else {
              after = postpone(p, child, index, entry, depth);
            }
            p = after;
          }
        }
        if (__builtin_expect(!p, 0)) return nullptr;
        more = next(p, '}', index);
      }
      if (!p) return nullptr;
    }
    --depth_;
    if (found != count && !fill(index, entry, p, depth)) return nullptr;
    if (__builtin_expect(!postponed_.empty(), 0)) forget(depth);
    ++column(index).length;
    return p;
  }

  // Nulls for the fields that the object lacks.
  __attribute__((noinline)) bool fill(int32_t index, int64_t entry, Bytes p, int32_t depth) {
    size_t own = postponed_.size();  // those of this object are the last ones
    while (own > 0 && postponed_[own - 1].depth >= depth) --own;
    if (const Postponed* bad = first_postponed(own)) return again(bad->failure) != nullptr;
    for (int32_t child : nodes_[index].children) {
      if (column(child).length != entry) continue;
      if (!nodes_[child].nullable) return fail(BAD_MISSING, child, p) != nullptr;
      if (!out_.append_null(child)) return false;
    }
    return true;
  }

  // A value that does not fit its column: it counts only if its key does not come again. Moves p after it; nullptr where it is
  // not JSON at all. `depth` is that of the object.
  __attribute__((noinline)) Bytes postpone(Bytes p, int32_t child, int32_t index, int64_t entry, int32_t depth) {
    if (out_.failure != BUILD_OK) return nullptr;
    const Postponed one{child, depth, entry, *failure_};
    forget(depth + 1);
    depth_ = depth;
    *failure_ = RowFailure();
    if (!budget_.take(cells_[static_cast<size_t>(child)])) return again(one.failure);
    out_.truncate(child, entry);
    p = skip(p, index);
    if (!p) return again(one.failure);
    int32_t& place = place_[static_cast<size_t>(child)];
    if (place >= 0) {
      postponed_[static_cast<size_t>(place)] = one;  // the key has come again
    } else {
      place = static_cast<int32_t>(postponed_.size());
      postponed_.push_back(one);
    }
    return p;
  }

  // Drops what was postponed in objects at this depth and below it.
  void forget(int32_t depth) {
    while (!postponed_.empty() && postponed_.back().depth >= depth) forget_last();
  }

  void forget_last() {
    place_[static_cast<size_t>(postponed_.back().child)] = -1;
    postponed_.pop_back();
  }

  // Counts an entry of a column, written or taken out. False when the row's bytes do not earn so many.
  bool take(int32_t index, Bytes p) {
    return __builtin_expect(budget_.take(cells_[static_cast<size_t>(index)]), 1) || fail(BAD_COUNT, index, p) != nullptr;
  }

  Bytes again(const RowFailure& failure) {
    *failure_ = failure;
    return nullptr;
  }

  // From there on, the first value in the row that still counts.
  const Postponed* first_postponed(size_t from) {
    const Postponed* first = nullptr;
    for (size_t i = from; i < postponed_.size(); ++i) {
      const Postponed& one = postponed_[i];
      if (column(one.child).length == one.entry && (!first || one.failure.at < first->failure.at)) first = &one;
    }
    return first;
  }

  // Of a row that fails: false, with the first failure that still counts.
  __attribute__((noinline)) bool first_failure() {
    const Postponed* bad = out_.failure == BUILD_OK ? first_postponed(0) : nullptr;
    return bad && again(bad->failure) != nullptr;
  }

  // A key that is not the expected one, or is long, or has a space after it; p is after its first quote. Its colon is read
  // too.
  __attribute__((noinline)) Bytes key(Bytes p, int32_t index, const JsonFields& fields, int32_t& field) {
    if (field >= 0 && fields.keys[static_cast<size_t>(field)].at(p, end_))
      return colon(p + fields.keys[static_cast<size_t>(field)].length, index);
    Bytes name;
    size_t length;
    Bytes after = short_text(p, index, name, length);
    if (!after) return nullptr;
    field = fields.find(name, length);
    return colon(after, index);
  }

  Bytes list(Bytes p, int32_t index) {
    if (*p != '[') return fail(wrong(p), index, p);
    const int32_t child = nodes_[index].children[0];
    ++depth_;
    p = space(p + 1);
    if (*p == ']') {
      ++p;
    } else {
      bool more = true;
      while (more) {
        if (p >= end_) return fail(BAD_CUT_OFF, index, end_);
        if (!take(child, p)) return nullptr;
        p = value(p, child);
        if (!p) return nullptr;
        more = next(p, ']', index);
      }
      if (!p) return nullptr;
    }
    --depth_;
    Column& c = column(index);
    c.put_offset(c.length + 1, column(child).length);
    ++c.length;
    return p;
  }

  // An object whose keys are data. Of equal keys the last counts: the entries of those before it are taken out.
  Bytes map(Bytes p, int32_t index) {
    if (*p != '{') return fail(wrong(p), index, p);
    const int32_t entries = nodes_[index].children[0];
    const int64_t first = column(entries).length;
    std::vector<Postponed> bad;
    p = map_entries(p, index, bad);
    if (!p) return nullptr;
    const Column& keys = column(nodes_[entries].children[0]);
    const std::vector<bool> kept = last_of_keys(first, keys.length, [&keys](int64_t i) { return keys.text_at(i); });
    if (!kept.empty()) {
      for (const Postponed& one : bad) {
        if (kept[static_cast<size_t>(one.entry - first)]) return again(one.failure);
      }
      out_.keep_only(entries, first, kept);
    } else if (!bad.empty()) {
      return again(bad[0].failure);
    }
    Column& c = column(index);
    c.put_offset(c.length + 1, column(entries).length);
    ++c.length;
    return p;
  }

  // `bad`: values that do not fit, with a null in their place.
  Bytes map_entries(Bytes p, int32_t index, std::vector<Postponed>& bad) {
    const int32_t entries = nodes_[index].children[0];
    const int32_t keys = nodes_[entries].children[0];
    const int32_t items = nodes_[entries].children[1];
    const int32_t depth = ++depth_;
    p = space(p + 1);
    if (*p == '}') {
      --depth_;
      return p + 1;
    }
    bool more = true;
    while (more) {
      if (p >= end_ || *p != '"') return fail(BAD_SYNTAX, index, p);
      if (!take(entries, p)) return nullptr;
      if (!out_.reserve(entries) || !out_.reserve(keys)) return nullptr;
      p = text(p, keys);
      if (!p) return nullptr;
      p = colon(p, index);
      if (!p) return nullptr;
      Bytes after = value(p, items);
      if (__builtin_expect(!after, 0)) {
        const int64_t entry = column(entries).length;
        after = postpone(p, items, index, entry, depth);
        if (!after) return bad.empty() ? nullptr : again(bad[0].failure);
        bad.push_back(postponed_.back());
        forget_last();
        if (!out_.append_null(items)) return nullptr;
      }
      p = after;
      ++column(entries).length;
      more = next(p, '}', index);
    }
    --depth_;
    return p;
  }

  const JsonProgram& program_;
  const ValueNode* nodes_;
  Columnar& out_;
  std::vector<Postponed> postponed_;           // of the open objects
  std::vector<std::vector<int32_t>> follows_;  // by struct: which field comes after which
  GrowingBytes scratch_;
  const std::vector<int64_t> cells_;           // by node
  std::vector<int32_t> place_;                 // by node: in postponed_; -1: not there
  CellBudget budget_;
};

}  // namespace kc
