// Owns: a datum of a recursive Avro type as JSON text: the operations, which may lead back to themselves, and their run.
// Threads: one at a time (the caller of decode). Never: writes to a column.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "records/bytes.hpp"
#include "values/json_write.hpp"
#include "values/program.hpp"

namespace kc {

// kconsumer/decoding/avro_json.py has the same order.
enum AvroJsonKind : int32_t {
  AVRO_JSON_NULL = 0,
  AVRO_JSON_BOOL,
  AVRO_JSON_INTEGER,     // int and long
  AVRO_JSON_FLOAT,
  AVRO_JSON_DOUBLE,
  AVRO_JSON_TEXT,
  AVRO_JSON_BYTES,       // base64
  AVRO_JSON_FIXED,       // `number` bytes as base64
  AVRO_JSON_ENUM,        // names
  AVRO_JSON_ARRAY,       // children: item
  AVRO_JSON_MAP,         // children: value
  AVRO_JSON_RECORD,      // names, children
  AVRO_JSON_UNION,       // children: branches; the value without the name of its branch
  AVRO_JSON_DECIMAL,     // of bytes, or of a fixed of `number` bytes; `scale`
  AVRO_JSON_DATE,
  AVRO_JSON_TIME,        // of the unit `scale`
  AVRO_JSON_INSTANT,
  AVRO_JSON_LOCAL_TIME,
};

struct AvroJsonOp {
  AvroJsonKind kind = AVRO_JSON_NULL;
  int64_t number = 0;
  int32_t scale = 0;
  std::vector<int32_t> children;      // indices into AvroProgram::json
  std::vector<std::string> names;
};

class AvroJson {
 public:
  JsonWriter out;
  BadValue reason = BAD_NONE;         // why run() returned nullptr
  const uint8_t* at = nullptr;        // and where

  // Writes the datum at p as at most so many bytes, and returns its end; nullptr if it is invalid.
  const uint8_t* run(const std::vector<AvroJsonOp>& ops, int32_t op, const uint8_t* p, const uint8_t* end, int64_t most) {
    ops_ = ops.data();
    end_ = end;
    depth_ = 0;
    reason = BAD_NONE;
    out.begin(most);
    return value(ops_[op], p);
  }

 private:
  using Bytes = const uint8_t*;
  static constexpr int32_t kMostNested = 100;
  static constexpr int64_t kMostEmptyItems = 1 << 16;

  __attribute__((noinline)) Bytes fail(BadValue why, Bytes where) {
    if (reason == BAD_NONE) {
      reason = why;
      at = where > end_ ? end_ : where;
    }
    return nullptr;
  }

  Bytes varint(Bytes p, int64_t& n) {
    return read_varlong(p, end_, n) ? p : fail(end_ - p < 10 ? BAD_CUT_OFF : BAD_VARINT, p);
  }

  Bytes need(Bytes p, int64_t bytes) {
    if (bytes < 0) return fail(BAD_NEGATIVE, p);
    return bytes <= end_ - p ? p : fail(BAD_CUT_OFF, end_);
  }

  Bytes value(const AvroJsonOp& op, Bytes p) {
    int64_t n = op.number;
    switch (op.kind) {
      case AVRO_JSON_NULL:
        out.raw("null");
        return p;
      case AVRO_JSON_BOOL:
        if (!need(p, 1)) return nullptr;
        if (*p > 1) return fail(BAD_BOOL, p);
        out.boolean(*p);
        return p + 1;
      case AVRO_JSON_FLOAT: return number<float>(p);
      case AVRO_JSON_DOUBLE: return number<double>(p);
      case AVRO_JSON_TEXT: return text(p);
      case AVRO_JSON_BYTES:
      case AVRO_JSON_FIXED:
        if (op.kind == AVRO_JSON_BYTES && !(p = varint(p, n))) return nullptr;
        if (!need(p, n)) return nullptr;
        out.base64(p, static_cast<size_t>(n));
        return p + n;
      case AVRO_JSON_DECIMAL:
        if (!n && !(p = varint(p, n))) return nullptr;
        if (!need(p, n)) return nullptr;
        return out.decimal(p, n, op.scale) ? p + n : fail(BAD_RANGE, p);
      case AVRO_JSON_ARRAY:
      case AVRO_JSON_MAP:
      case AVRO_JSON_RECORD: return nested(op, p);
      default: break;
    }
    Bytes first = p;
    if (!(p = varint(p, n))) return nullptr;
    switch (op.kind) {
      case AVRO_JSON_ENUM:
        if (static_cast<uint64_t>(n) >= op.names.size()) return fail(BAD_SYMBOL, first);
        out.string(op.names[static_cast<size_t>(n)]);
        break;
      case AVRO_JSON_UNION:
        if (static_cast<uint64_t>(n) >= op.children.size()) return fail(BAD_BRANCH, first);
        return value(ops_[op.children[static_cast<size_t>(n)]], p);
      case AVRO_JSON_DATE: out.date(n); break;
      case AVRO_JSON_TIME:
        if (n < 0) return fail(BAD_RANGE, first);
        out.time_of_day(n, op.scale);
        break;
      case AVRO_JSON_INSTANT:
      case AVRO_JSON_LOCAL_TIME: out.timestamp(n, op.scale, op.kind == AVRO_JSON_INSTANT); break;
      default: out.integer(n);
    }
    return p;
  }

  template <class T>
  Bytes number(Bytes p) {
    T found;
    if (!need(p, static_cast<int64_t>(sizeof(T)))) return nullptr;
    memcpy(&found, p, sizeof(T));
    out.floating(found);
    return p + sizeof(T);
  }

  Bytes text(Bytes p) {
    int64_t n;
    if (!(p = varint(p, n)) || !need(p, n)) return nullptr;
    return out.string(p, static_cast<size_t>(n)) ? p + n : fail(BAD_UTF8, p);
  }

  Bytes nested(const AvroJsonOp& op, Bytes p) {
    if (++depth_ > kMostNested) return fail(BAD_DEPTH, p);
    p = op.kind == AVRO_JSON_RECORD ? record(op, p) : items(op, p, op.kind == AVRO_JSON_MAP);
    --depth_;
    return p && !out.fits() ? fail(BAD_COUNT, p) : p;
  }

  Bytes record(const AvroJsonOp& op, Bytes p) {
    out.text += '{';
    for (size_t i = 0; i < op.children.size(); ++i) {
      if (i) out.text += ',';
      out.string(op.names[i]);
      out.text += ':';
      if (!(p = value(ops_[op.children[i]], p))) return nullptr;
    }
    out.text += '}';
    return p;
  }

  Bytes items(const AvroJsonOp& op, Bytes p, bool is_map) {
    bool is_first = true;
    out.text += is_map ? '{' : '[';
    for (;;) {
      int64_t count, bytes;
      if (!(p = varint(p, count))) return nullptr;
      if (count == 0) break;
      if (count < 0) {
        if (count == INT64_MIN) return fail(BAD_COUNT, p);
        count = -count;
        if (!(p = varint(p, bytes)) || !need(p, bytes)) return nullptr;
      }
      if (count > end_ - p + kMostEmptyItems) return fail(BAD_COUNT, p);
      for (int64_t i = 0; i < count; ++i) {
        if (!is_first) out.text += ',';
        is_first = false;
        if (is_map) {
          if (!(p = text(p))) return nullptr;
          out.text += ':';
        }
        if (!(p = value(ops_[op.children[0]], p))) return nullptr;
        if (!out.fits()) return fail(BAD_COUNT, p);
      }
    }
    out.text += is_map ? '}' : ']';
    return p;
  }

  const AvroJsonOp* ops_ = nullptr;
  const uint8_t* end_ = nullptr;
  int32_t depth_ = 0;
};

}  // namespace kc
