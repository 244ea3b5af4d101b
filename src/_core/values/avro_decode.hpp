// Owns: decoding of one Avro datum into the columns of a Plan, from a writer's schema to the reader's.
// Threads: one at a time (the caller of decode). Never: reads more than 32 bytes past a row's end, allocates for
// skipped data, touches Python.
//
// After an error all functions return nullptr up to row(); the caller then removes the row. A few bytes cannot allocate
// much: each item has a minimum size, empty items are counted, and the cells that items fill have a budget.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>

#include "records/bytes.hpp"
#include "values/avro_program.hpp"
#include "values/builders.hpp"
#include "values/byte_scan.hpp"
#include "values/cell_budget.hpp"
#include "values/number_text.hpp"
#include "values/time_text.hpp"

namespace kc {

class AvroDecoder {
 public:
  static constexpr int64_t kMostEmptyItems = 1 << 16;   // maximum number of empty items in a row

  AvroDecoder(const Plan& plan, Columnar& out) : nodes_(plan.nodes.data()), out_(out), cells_(cells_by_node(plan)) {}

  // Appends one row. False with `failure` (the caller must remove the row) or with the failure of the columns.
  bool row(const AvroProgram& program, const uint8_t* p, const uint8_t* end, RowFailure& failure) {
    program_ = &program;
    ops_ = program.ops.data();
    end_ = end;
    failure_ = &failure;
    empty_items_ = 0;
    constants_ = false;
    budget_.begin_row(end - p);
    p = run(ops_[0], p);
    if (!p) return false;
    return p == end || fail(p < end ? BAD_TRAILING : BAD_CUT_OFF, 0, p) != nullptr;
  }

 private:
  using Bytes = const uint8_t*;

  __attribute__((noinline)) Bytes fail(BadValue reason, int32_t node, Bytes at) {
    if (failure_->reason == BAD_NONE) *failure_ = {reason, node, constants_ ? row_at_ : at > end_ ? end_ : at};
    return nullptr;
  }

  Column& column(int32_t node) { return out_.columns[static_cast<size_t>(node)]; }

  Bytes varint(Bytes p, int32_t node, int64_t& out) {
    if (__builtin_expect(read_varlong(p, end_, out), 1)) return p;
    return fail(end_ - p < 10 ? BAD_CUT_OFF : BAD_VARINT, node, p);
  }

  // Reads a varint that usually has one byte.
  Bytes branch_index(Bytes p, int32_t node, int64_t& out) {
    if (__builtin_expect(p < end_ && *p < 0x80, 1)) {
      out = zigzag(*p);
      return p + 1;
    }
    return varint(p, node, out);
  }

  // Checks that the row has `bytes` more bytes.
  Bytes need(Bytes p, int64_t bytes, int32_t node) {
    if (__builtin_expect(bytes < 0, 0)) return fail(BAD_NEGATIVE, node, p);
    return __builtin_expect(bytes <= end_ - p, 1) ? p : fail(BAD_CUT_OFF, node, end_);
  }

  template <class T>
  void put(int32_t node, T value) {
    Column& c = column(node);
    memcpy(c.values + c.length * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
    ++c.length;
  }

  Bytes run(const AvroOp& op, Bytes p) {
    const int32_t at = op.column;
    int64_t n;
    if (op.null_branch >= 0) {
      if (!(p = branch_index(p, at, n))) return nullptr;
      if (__builtin_expect(static_cast<uint64_t>(n) > 1, 0)) return fail(BAD_BRANCH, at, p);
      if (n == op.null_branch) return op.kind >= AVRO_SKIP_VARINT || out_.append_null(at) ? p : nullptr;
    }
    switch (op.kind) {
      case AVRO_INT:
        if (!out_.reserve(at) || !(p = varint(p, at, n))) return nullptr;
        if (__builtin_expect(n != static_cast<int32_t>(n), 0)) return fail(BAD_RANGE, at, p);
        put(at, static_cast<int32_t>(n));
        return p;
      case AVRO_LONG:
        if (!out_.reserve(at) || !(p = varint(p, at, n))) return nullptr;
        if (__builtin_expect(op.number != 1, 0) && __builtin_mul_overflow(n, op.number, &n))
          return fail(BAD_RANGE, at, p);
        put(at, n);
        return p;
      case AVRO_TEXT: return text(at, p, true);
      case AVRO_BYTES: return text(at, p, false);
      case AVRO_DOUBLE:
        if (!out_.reserve(at) || !need(p, 8, at)) return nullptr;
        put(at, load<double>(p));
        return p + 8;
      case AVRO_UNION:
      case AVRO_SKIP_UNION:
        if (!(p = branch_index(p, at, n))) return nullptr;
        if (__builtin_expect(static_cast<uint64_t>(n) >= op.children.size(), 0)) return fail(BAD_BRANCH, at, p);
        return run(ops_[op.children[static_cast<size_t>(n)]], p);
      case AVRO_SKIP_VARINT: return varint(p, at, n);
      case AVRO_SKIP_FIXED: return need(p, op.number, at) ? p + op.number : nullptr;
      case AVRO_SKIP_BYTES:
        if (!(p = varint(p, at, n))) return nullptr;
        return need(p, n, at) ? p + n : nullptr;
      case AVRO_RECORD:
        if (!out_.reserve(at)) return nullptr;
        for (int32_t child : op.children) {
          const AvroOp& field = ops_[child];
          Bytes after = p < end_ ? fast(field, p) : nullptr;
          if (__builtin_expect(!after, 0) && !(after = run(field, p))) return nullptr;
          p = after;
        }
        ++column(at).length;
        return p;
      case AVRO_NULL: return out_.append_null(at) ? p : nullptr;
      case AVRO_BOOL: return boolean(at, p);
      default: return rarer(op, p);
    }
  }

  // Reads a field in the usual case: not null, its column has capacity, text of up to 16 bytes. Otherwise it returns
  // nullptr and changes nothing. `p` is before the row's end; the function can read up to 27 bytes after the end, and
  // the next field or row() detects this.
  __attribute__((always_inline)) Bytes fast(const AvroOp& op, Bytes p) {
    if (op.fast == AVRO_SLOW) return nullptr;
    if (op.null_branch >= 0) {
      if (*p != 2 - 2 * op.null_branch) return nullptr;
      ++p;
    }
    if (op.fast >= AVRO_FAST_SKIP_VARINT) return fast_skip(op, p);
    Column& c = column(op.column);
    const int64_t entry = c.length;
    if (__builtin_expect(entry >= c.capacity, 0)) return nullptr;
    uint64_t n = *p++;
    switch (op.fast) {
      case AVRO_FAST_DOUBLE:
        memcpy(c.values + entry * 8, p - 1, 8);
        c.length = entry + 1;
        return p + 7;
      case AVRO_FAST_TEXT:
      case AVRO_FAST_BYTES: {
        n >>= 1;   // an odd byte means a negative length; a byte from 0x80 on is not the last byte of the length
        if (p[-1] & 0x81 || n > 16 || static_cast<int64_t>(n) > end_ - p) return nullptr;
        if (op.fast == AVRO_FAST_TEXT && !is_ascii_16(p, static_cast<uint32_t>(n))) return nullptr;
        if (c.data.size + n + kWriteAhead > c.data.capacity) return nullptr;
        memcpy(c.data.data + c.data.size, p, 16);
        c.data.size += n;
        c.put_offset(entry + 1, static_cast<int64_t>(c.data.size));
        c.length = entry + 1;
        return p + n;
      }
      case AVRO_FAST_BOOL: {
        if (n > 1) return nullptr;
        const auto shift = static_cast<int32_t>(entry & 7);
        uint8_t& byte = c.values[entry >> 3];
        byte = static_cast<uint8_t>((byte & ~(1u << shift)) | static_cast<uint32_t>(n) << shift);
        c.length = entry + 1;
        return p;
      }
      default: break;
    }
    if (n >= 0x80) {
      n = (n & 0x7f) | static_cast<uint64_t>(*p++) << 7;
      if (n >= 0x4000) {
        n = (n & 0x3fff) | static_cast<uint64_t>(*p++) << 14;
        if (n >= 0x200000) return nullptr;
      }
    }
    const int64_t value = zigzag(n);
    if (op.fast == AVRO_FAST_INT) {
      const auto narrow = static_cast<int32_t>(value);
      memcpy(c.values + entry * 4, &narrow, 4);
    } else {
      memcpy(c.values + entry * 8, &value, 8);
    }
    c.length = entry + 1;
    return p;
  }

  Bytes fast_skip(const AvroOp& op, Bytes p) const {
    if (op.fast == AVRO_FAST_SKIP_VARINT) {
      if (*p < 0x80) return p + 1;
      if (p[1] < 0x80) return p + 2;
      return p[2] < 0x80 ? p + 3 : nullptr;
    }
    if (op.fast == AVRO_FAST_SKIP_FIXED) return op.number <= end_ - p ? p + op.number : nullptr;
    const int64_t n = *p >> 1;
    return !(*p & 0x81) && n < end_ - p ? p + 1 + n : nullptr;
  }

  __attribute__((noinline)) Bytes rarer(const AvroOp& op, Bytes p) {
    const int32_t at = op.column;
    int64_t n;
    switch (op.kind) {
      case AVRO_LONG_FLOAT:
        if (!out_.reserve(at) || !(p = varint(p, at, n))) return nullptr;
        put(at, static_cast<float>(n));
        return p;
      case AVRO_LONG_DOUBLE:
        if (!out_.reserve(at) || !(p = varint(p, at, n))) return nullptr;
        put(at, static_cast<double>(n));
        return p;
      case AVRO_FLOAT:
        if (!out_.reserve(at) || !need(p, 4, at)) return nullptr;
        put(at, load<float>(p));
        return p + 4;
      case AVRO_FLOAT_DOUBLE:
        if (!out_.reserve(at) || !need(p, 4, at)) return nullptr;
        put(at, static_cast<double>(load<float>(p)));
        return p + 4;
      case AVRO_FIXED: return fixed(op, p);
      case AVRO_ENUM: return symbol(op, p);
      case AVRO_ARRAY: return items(op, p, false);
      case AVRO_MAP: return items(op, p, true);
      case AVRO_BRANCH: return branch(op, p);
      case AVRO_DEFAULT: return constant(op, p);
      case AVRO_DECIMAL_BYTES:
        if (!(p = varint(p, at, n))) return nullptr;
        return need(p, n, at) ? decimal(at, p, n) : nullptr;
      case AVRO_DECIMAL_FIXED: return need(p, op.number, at) ? decimal(at, p, op.number) : nullptr;
      case AVRO_DURATION: return duration(at, p);
      case AVRO_TIME: return time(op, p);
      case AVRO_ERROR: return fail(op.number ? BAD_WRITER : BAD_BRANCH, at, p);
      default: return skip(op, p);
    }
  }

  template <class T>
  static T load(Bytes p) {
    T value;
    memcpy(&value, p, sizeof(T));
    return value;
  }

  Bytes boolean(int32_t at, Bytes p) {
    if (!out_.reserve(at) || !need(p, 1, at)) return nullptr;
    if (*p > 1) return fail(BAD_BOOL, at, p);
    Column& c = column(at);
    const auto bit = static_cast<uint8_t>(1u << (c.length & 7));
    if (*p) {
      c.values[c.length >> 3] |= bit;
    } else {
      c.values[c.length >> 3] &= static_cast<uint8_t>(~bit);
    }
    ++c.length;
    return p + 1;
  }

  Bytes text(int32_t at, Bytes p, bool checked) {
    int64_t n;
    if (!out_.reserve(at) || !(p = varint(p, at, n)) || !need(p, n, at)) return nullptr;
    const auto length = static_cast<size_t>(n);
    if (checked && __builtin_expect(!is_text(p, length), 0)) return fail(BAD_UTF8, at, p);
    return out_.append_bytes(at, p, length) ? p + n : nullptr;
  }

  Bytes fixed(const AvroOp& op, Bytes p) {
    if (!out_.reserve(op.column) || !need(p, op.number, op.column)) return nullptr;
    Column& c = column(op.column);
    memcpy(c.values + c.length * op.number, p, static_cast<size_t>(op.number));
    ++c.length;
    return p + op.number;
  }

  Bytes symbol(const AvroOp& op, Bytes p) {
    int64_t n;
    if (!out_.reserve(op.column) || !(p = varint(p, op.column, n))) return nullptr;
    if (static_cast<uint64_t>(n) >= op.table.size() || op.table[static_cast<size_t>(n)] < 0)
      return fail(BAD_SYMBOL, op.column, p);
    put(op.column, op.table[static_cast<size_t>(n)]);
    return p;
  }

  // Reads the header of a block: the count of its items, and their size in `bytes`, or -1 if the header has no size.
  Bytes block(const AvroOp& op, Bytes p, int64_t& count, int64_t& bytes) {
    bytes = -1;
    if (!(p = varint(p, op.column, count))) return nullptr;
    if (count < 0) {
      if (count == INT64_MIN) return fail(BAD_COUNT, op.column, p);
      count = -count;
      if (!(p = varint(p, op.column, bytes)) || !need(p, bytes, op.column)) return nullptr;
    }
    if (op.least > 0) {
      if (count > (end_ - p) / op.least) return fail(BAD_COUNT, op.column, p);
    } else {
      if (count > kMostEmptyItems - empty_items_) return fail(BAD_COUNT, op.column, p);
      empty_items_ += count;
    }
    // An item may take a byte and fill many columns, whose defaults the reader has or which are null.
    const bool is_skipped = op.kind >= AVRO_SKIP_VARINT;
    const int64_t cells = is_skipped ? op.least == 0 : cells_[static_cast<size_t>(nodes_[op.column].children[0])];
    return budget_.take(count * cells) ? p : fail(BAD_COUNT, op.column, p);
  }

  Bytes items(const AvroOp& op, Bytes p, bool is_map) {
    const int32_t at = op.column;
    const int32_t below = nodes_[at].children[0];
    const AvroOp& item = ops_[op.children[0]];
    int64_t count, bytes;
    if (!out_.reserve(at)) return nullptr;
    for (;;) {
      if (!(p = block(op, p, count, bytes))) return nullptr;
      if (count == 0) break;
      Bytes first = p;
      for (int64_t i = 0; i < count; ++i) {
        if (is_map && !(p = key(below, p))) return nullptr;
        if (!(p = run(item, p))) return nullptr;
        if (is_map) ++column(below).length;
      }
      if (bytes >= 0 && p - first != bytes) return fail(BAD_BLOCK, at, p);
    }
    Column& c = column(at);
    c.put_offset(c.length + 1, column(below).length);
    ++c.length;
    return p;
  }

  Bytes key(int32_t entries, Bytes p) {
    return out_.reserve(entries) ? text(nodes_[entries].children[0], p, true) : nullptr;
  }

  // Reads one branch of a union, which is a struct in the columns: the other fields are null.
  Bytes branch(const AvroOp& op, Bytes p) {
    if (!out_.reserve(op.column) || !(p = run(ops_[op.children[0]], p))) return nullptr;
    const std::vector<int32_t>& fields = nodes_[op.column].children;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (static_cast<int64_t>(i) != op.number && !out_.append_null(fields[i])) return nullptr;
    }
    ++column(op.column).length;
    return p;
  }

  // A field that the writer does not have: reads the reader's default from an encoded datum.
  Bytes constant(const AvroOp& op, Bytes p) {
    Bytes end = end_;
    const bool inside = constants_;
    if (!inside) row_at_ = p;
    const auto* first = reinterpret_cast<Bytes>(op.constant.data());
    constants_ = true;
    end_ = first + op.constant.size() - kConstantPadding;
    Bytes after = run(ops_[op.children[0]], first);
    end_ = end;
    constants_ = inside;
    return after ? p : nullptr;
  }

  // Reads two's complement of any length, big-endian.
  Bytes decimal(int32_t at, Bytes p, int64_t bytes) {
    const ValueNode& node = nodes_[at];
    if (!out_.reserve(at)) return nullptr;
    const uint8_t sign = bytes && (*p & 0x80) ? 0xff : 0;
    uint8_t little[32];
    memset(little, sign, sizeof(little));
    for (int64_t i = 0; i < bytes; ++i) {
      const uint8_t byte = p[bytes - 1 - i];
      if (i < 32) {
        little[i] = byte;
      } else if (byte != sign) {
        return fail(BAD_RANGE, at, p);
      }
    }
    if ((little[31] & 0x80) != (sign & 0x80)) return fail(BAD_RANGE, at, p);
    Wide wide;
    memcpy(wide.word, little, 32);
    if (sign) wide.negate();
    if (!fits(wide, node.precision)) return fail(BAD_RANGE, at, p);
    Column& c = column(at);
    memcpy(c.values + c.length * node.width, little, static_cast<size_t>(node.width));
    ++c.length;
    return p + bytes;
  }

  // Returns whether a magnitude has at most `digits` digits.
  static bool fits(const Wide& magnitude, int32_t digits) {
    Wide limit;
    limit.word[0] = 1;
    for (int32_t i = 0; i < digits; ++i) limit.times_ten_plus(0);
    for (int32_t i = 3; i >= 0; --i) {
      if (magnitude.word[i] != limit.word[i]) return magnitude.word[i] < limit.word[i];
    }
    return false;
  }

  // Converts unsigned months, days and milliseconds to Arrow's months, days and nanoseconds.
  Bytes duration(int32_t at, Bytes p) {
    if (!out_.reserve(at) || !need(p, 12, at)) return nullptr;
    const auto months = load<uint32_t>(p), days = load<uint32_t>(p + 4);
    if (months > INT32_MAX || days > INT32_MAX) return fail(BAD_RANGE, at, p);
    Column& c = column(at);
    uint8_t* to = c.values + c.length * 16;
    const int64_t nanoseconds = static_cast<int64_t>(load<uint32_t>(p + 8)) * 1000000;
    memcpy(to, p, 8);
    memcpy(to + 8, &nanoseconds, 8);
    ++c.length;
    return p + 12;
  }

  // Refuses times of day that are negative or at least 24 hours: Arrow does not allow them.
  Bytes time(const AvroOp& op, Bytes p) {
    const int32_t at = op.column;
    const ValueNode& node = nodes_[at];
    int64_t n;
    if (!out_.reserve(at) || !(p = varint(p, at, n))) return nullptr;
    if (__builtin_mul_overflow(n, op.number, &n) || n < 0 || n >= 86400 * TimeText::power(node.unit))
      return fail(BAD_RANGE, at, p);
    if (node.width == 4) {
      put(at, static_cast<int32_t>(n));
    } else {
      put(at, n);
    }
    return p;
  }

  __attribute__((noinline)) Bytes json(const AvroOp& op, Bytes p) {
    if (!json_) json_ = std::make_unique<AvroJson>();
    Bytes after = json_->run(program_->json, static_cast<int32_t>(op.number), p, end_, budget_.left());
    if (!after) return fail(json_->reason, op.column, json_->at);
    const std::string& made = json_->out.text;
    if (!budget_.take(static_cast<int64_t>(made.size() / 8))) return fail(BAD_COUNT, op.column, p);
    if (op.kind == AVRO_SKIP_JSON) return after;
    if (!out_.reserve(op.column)) return nullptr;
    return out_.append_bytes(op.column, reinterpret_cast<Bytes>(made.data()), made.size()) ? after : nullptr;
  }

  Bytes skip(const AvroOp& op, Bytes p) {
    const int32_t at = op.column;
    int64_t n, bytes;
    switch (op.kind) {
      case AVRO_SKIP_RECORD:
        for (int32_t child : op.children) {
          if (!(p = run(ops_[child], p))) return nullptr;
        }
        return p;
      case AVRO_SKIP_ARRAY:
      case AVRO_SKIP_MAP:
        for (;;) {
          if (!(p = block(op, p, n, bytes))) return nullptr;
          if (n == 0) return p;
          if (bytes >= 0) {
            p += bytes;
            continue;
          }
          for (int64_t i = 0; i < n; ++i) {
            if (op.kind == AVRO_SKIP_MAP) {
              int64_t length;
              if (!(p = varint(p, at, length)) || !need(p, length, at)) return nullptr;
              p += length;
            }
            if (!(p = run(ops_[op.children[0]], p))) return nullptr;
          }
        }
      case AVRO_SKIP_JSON:
      case AVRO_JSON: return json(op, p);
      default: return fail(BAD_WRITER, at, p);
    }
  }

 public:
  static constexpr size_t kConstantPadding = 64;   // bytes at the end of AvroOp::constant

 private:
  const ValueNode* nodes_;
  Columnar& out_;
  const AvroOp* ops_ = nullptr;
  const uint8_t* end_ = nullptr;
  const uint8_t* row_at_ = nullptr;    // the position in the row while constant() reads a default
  bool constants_ = false;
  RowFailure* failure_ = nullptr;
  int64_t empty_items_ = 0;
  CellBudget budget_;
  const std::vector<int64_t> cells_;   // by node
  const AvroProgram* program_ = nullptr;
  std::unique_ptr<AvroJson> json_;     // made for the first recursive type
};

}  // namespace kc
