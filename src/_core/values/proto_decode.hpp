// Owns: decoding of one Protobuf message into the columns of a Plan.
// Threads: one at a time (the caller of decode). Never: reads more than 64 bytes past a row's end, touches Python.
//
// Fields can come in any order and repeatedly. A field has no entry yet while its column and the struct's column have
// the same length. Before a repeated scalar, the decoder removes the earlier entry. It reopens the entry of a repeated
// message, which is the last entry of its columns, and merges the fields into it. Lists and maps are closed together
// with their message.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "records/bytes.hpp"
#include "values/builders.hpp"
#include "values/byte_scan.hpp"
#include "values/cell_budget.hpp"
#include "values/map_keys.hpp"
#include "values/proto_program.hpp"

namespace kc {

class ProtoDecoder {
 public:
  static constexpr int32_t kMostNested = 100;            // groups in each other, in what is skipped

  ProtoDecoder(const Plan& plan, Columnar& out) : nodes_(plan.nodes.data()), out_(out) {}

  // Appends one row. False with `failure` (the caller must remove the row) or with the failure of the columns.
  bool row(const ProtoProgram& program, const uint8_t* p, const uint8_t* end, RowFailure& failure) {
    program_ = &program;
    messages_ = program.messages.data();
    end_ = end;
    failure_ = &failure;
    budget_.begin_row(end - p);
    unknown_symbol_ = false;
    missing_ = false;
    if (!message(messages_[0], p, end, 0, column(0).length)) return false;
    return __builtin_expect(!missing_, 1) || complete(program, end);
  }

 private:
  using Bytes = const uint8_t*;

  __attribute__((noinline)) Bytes fail(BadValue reason, int32_t node, Bytes at) {
    if (failure_->reason == BAD_NONE) *failure_ = {reason, node, at > end_ ? end_ : at};
    return nullptr;
  }

  Column& column(int32_t node) { return out_.columns[static_cast<size_t>(node)]; }

  // ---- the wire format. Reads can pass `end` by up to 10 bytes: a loop over fields checks its position after each.

  Bytes varint(Bytes p, int32_t node, uint64_t& out) {
    const uint64_t a = p[0];
    if (__builtin_expect(a < 0x80, 1)) {
      out = a;
      return p + 1;
    }
    const uint64_t b = p[1];
    if (__builtin_expect(b < 0x80, 1)) {
      out = (a & 0x7f) | b << 7;
      return p + 2;
    }
    return long_varint(p, node, out);
  }

  __attribute__((noinline)) Bytes long_varint(Bytes p, int32_t node, uint64_t& out) {
    uint64_t word;
    memcpy(&word, p, 8);
    const uint64_t ends = ~word & 0x8080808080808080u;
    if (__builtin_expect(ends != 0, 1)) {
      const int32_t bits = __builtin_ctzll(ends) + 1;   // number of bits in the bytes of the varint
      word &= (bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1) & 0x7f7f7f7f7f7f7f7fu;
      word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
      word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
      out = (word & 0x000000000fffffffu) | (word & 0x0fffffff00000000u) >> 4;
      return p + bits / 8;
    }
    out = 0;   // bits beyond 64 are ignored, as in google.protobuf
    for (int32_t i = 0; i < 10; ++i) {
      const uint64_t byte = p[i];
      out |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return p + i + 1;
    }
    return fail(end_ - p < 10 ? BAD_CUT_OFF : BAD_VARINT, node, p);
  }

  Bytes read_tag(Bytes p, int32_t node, uint32_t& tag) {
    if (__builtin_expect(*p < 0x80, 1)) {
      tag = *p;
      return p + 1;
    }
    uint64_t n;
    Bytes after = varint(p, node, n);
    tag = static_cast<uint32_t>(n);
    return !after || (n <= UINT32_MAX && after - p <= 5) ? after : fail(BAD_TAG, node, p);
  }

  // Reads a length and checks that as many bytes follow.
  Bytes length(Bytes p, Bytes end, int32_t node, int64_t& n) {
    uint64_t size;
    p = varint(p, node, size);
    if (__builtin_expect(!p, 0)) return nullptr;
    n = static_cast<int64_t>(size);
    return __builtin_expect(n >= 0 && n <= end - p, 1) ? p : fail(BAD_CUT_OFF, node, end_);
  }

  // Skips the value of an unknown field.
  __attribute__((noinline)) Bytes skip(uint32_t tag, Bytes p, Bytes end, int32_t node) {
    uint32_t open[kMostNested];
    int32_t depth = 0;
    Bytes first = p;
    for (;;) {
      uint64_t n;
      int64_t bytes;
      if (tag >> 3 == 0) return fail(BAD_TAG, node, first);
      switch (tag & 7) {
        case PROTO_WIRE_VARINT: p = varint(p, node, n); break;
        case PROTO_WIRE_64: p += 8; break;
        case PROTO_WIRE_32: p += 4; break;
        case PROTO_WIRE_BYTES:
          p = length(p, end, node, bytes);
          if (p) p += bytes;
          break;
        case PROTO_WIRE_GROUP:
          if (depth == kMostNested) return fail(BAD_DEPTH, node, p);
          open[depth++] = tag >> 3;
          break;
        case PROTO_WIRE_GROUP_END:
          if (depth == 0 || open[depth - 1] != tag >> 3) return fail(BAD_TAG, node, first);
          --depth;
          break;
        default: return fail(BAD_TAG, node, first);
      }
      if (!p) return nullptr;
      if (p > end || (depth && p == end)) return fail(BAD_CUT_OFF, node, end);
      if (!depth) return p;
      first = p;
      p = read_tag(p, node, tag);
      if (!p) return nullptr;
    }
  }

  // ---- messages

  // Reads one entry of a struct; `group` is the tag that ends it, or 0 if it ends at `end`.
  Bytes message(const ProtoMessage& m, Bytes p, Bytes end, uint32_t group, int64_t entry) {
    if (!out_.reserve(m.node)) return nullptr;
    size_t appended = 0;
    p = fields(m, p, end, group, entry, appended);
    if (!p || (appended != m.columns.size() && !close(m, p, entry))) return nullptr;
    ++column(m.node).length;
    return p;
  }

  // Reads the fields of a message. `appended` counts the columns that already have their entry: scalars.
  Bytes fields(const ProtoMessage& m, Bytes p, Bytes end, uint32_t group, int64_t entry, size_t& appended) {
    const ProtoField* f = m.fields.data();
    Column* const columns = out_.columns.data();
    while (p < end) {
      uint32_t tag;
      p = read_tag(p, m.node, tag);
      if (__builtin_expect(!p, 0)) return nullptr;
      if (__builtin_expect(tag == f->tag && f->fast != PROTO_SLOW, 1)) {
        Bytes after = fast(*f, columns, p, end, entry);
        if (__builtin_expect(after != nullptr, 1)) {
          p = after;
          appended += f->column >= 0;
          ++f;
          continue;
        }
      }
      if (__builtin_expect(tag != f->tag, 0)) {
        if (group && tag == group) return p <= end ? p : fail(BAD_CUT_OFF, m.node, end);
        const ProtoField* found = m.find(tag >> 3);
        if (!found || (found->tag != tag && !is_packed(*found, tag))) {
          p = skip(tag, p, end, m.node);
          if (!p) return nullptr;
          continue;
        }
        f = found;
      }
      p = f->list < 0 ? single(m, *f, p, end, entry) : repeated(*f, tag, p, end, entry);
      if (__builtin_expect(!p, 0)) return nullptr;
      ++f;
    }
    return __builtin_expect(p == end && !group, 1) ? p : fail(BAD_CUT_OFF, m.node, end);
  }

  // Reads the value of a field in the usual case: a plain scalar, and its column has capacity. Otherwise it returns
  // nullptr and changes nothing.
  __attribute__((always_inline)) Bytes fast(const ProtoField& f, Column* columns, Bytes p, Bytes end, int64_t entry) {
    uint64_t n = *p;
    if (f.fast >= PROTO_FAST_SKIP_VARINT) return fast_skip(f.fast, p, end);
    Column& c = columns[f.column];
    if (__builtin_expect(c.length != entry || entry >= c.capacity, 0)) return nullptr;
    switch (f.fast) {
      case PROTO_FAST_TEXT:
      case PROTO_FAST_BYTES: return fast_bytes(c, p, end, entry, f.fast == PROTO_FAST_TEXT);
      case PROTO_FAST_FIXED64:
        memcpy(c.values + entry * 8, p, 8);
        c.length = entry + 1;
        return p + 8;
      case PROTO_FAST_FIXED32:
        memcpy(c.values + entry * 4, p, 4);
        c.length = entry + 1;
        return p + 4;
      default: break;
    }
    ++p;
    if (n >= 0x80) {
      if (__builtin_expect(*p < 0x80, 1)) {
        n = (n & 0x7f) | static_cast<uint64_t>(*p++) << 7;
      } else if (!(p = long_varint(p - 1, f.column, n))) {
        return nullptr;
      }
    }
    switch (f.fast) {
      case PROTO_FAST_SINT32: n = static_cast<uint64_t>(zigzag(static_cast<uint32_t>(n))); [[fallthrough]];
      case PROTO_FAST_INT32: {
        const auto word = static_cast<uint32_t>(n);
        memcpy(c.values + entry * 4, &word, 4);
        break;
      }
      case PROTO_FAST_SINT64: n = static_cast<uint64_t>(zigzag(n)); [[fallthrough]];
      case PROTO_FAST_INT64: memcpy(c.values + entry * 8, &n, 8); break;
      default: {
        const auto bit = static_cast<uint8_t>(1u << (entry & 7));
        uint8_t& byte = c.values[entry >> 3];
        byte = static_cast<uint8_t>(n ? byte | bit : byte & ~bit);
      }
    }
    c.length = entry + 1;
    return p;
  }

  // Reads up to 16 bytes; text must be ASCII.
  static __attribute__((always_inline)) Bytes fast_bytes(Column& c, Bytes p, Bytes end, int64_t entry, bool is_text) {
    const uint64_t n = *p++;
    uint8_t* to = c.data.data + c.data.size;
    if (n > 16 || static_cast<int64_t>(n) > end - p || c.data.size + n + kWriteAhead > c.data.capacity) return nullptr;
    if (is_text && !is_ascii_16(p, static_cast<uint32_t>(n))) return nullptr;
    memcpy(to, p, 16);
    c.data.size += n;
    c.length = entry + 1;
    c.put_offset(entry + 1, static_cast<int64_t>(c.data.size));
    return p + n;
  }

  static Bytes fast_skip(ProtoFast fast, Bytes p, Bytes end) {
    switch (fast) {
      case PROTO_FAST_SKIP_VARINT:
        if (*p < 0x80) return p + 1;
        return p[1] < 0x80 ? p + 2 : nullptr;
      case PROTO_FAST_SKIP_64: return p + 8;
      case PROTO_FAST_SKIP_32: return p + 4;
      default: return *p < 0x80 && *p <= end - p - 1 ? p + 1 + *p : nullptr;
    }
  }

  static bool is_packed(const ProtoField& f, uint32_t tag) {
    return f.list >= 0 && f.kind <= PROTO_CLOSED_ENUM && f.kind != PROTO_TEXT && f.kind != PROTO_BYTES &&
           (tag & 7) == PROTO_WIRE_BYTES && (f.tag & 7) != PROTO_WIRE_BYTES;
  }

  // Fills in the absent fields and ends the lists.
  bool close(const ProtoMessage& m, Bytes p, int64_t entry) {
    for (const ProtoColumn& k : m.columns) {
      Column& c = column(k.node);
      if (__builtin_expect(c.length != entry, 1)) continue;
      switch (k.absent) {
        case PROTO_ABSENT_NULL:
          if (!out_.append_null(k.node)) return false;
          break;
        case PROTO_ABSENT_ERROR:
          // A null in a column without nulls, until the field comes in a later part of the same message, or something
          // else takes the message back.
          if (m.node == 0) return fail(BAD_MISSING, k.node, p) != nullptr;
          if (!out_.append_missing(k.node)) return false;
          missing_ = true;
          break;
        case PROTO_ABSENT_LIST:
          if (!out_.reserve(k.node)) return false;
          c.put_offset(c.length + 1, column(c.children[0]).length);
          ++c.length;
          break;
        case PROTO_ABSENT_MESSAGE:
          if (!message(messages_[k.message], p, p, 0, entry)) return false;
          break;
      }
    }
    for (int32_t map : m.maps) {
      if (!unique_keys(map)) return fail(BAD_COUNT, map, p) != nullptr;
    }
    return true;
  }

  // Whether no message of the row lacks a required field.
  __attribute__((noinline)) bool complete(const ProtoProgram& program, Bytes end) {
    for (const ProtoMessage& m : program.messages) {
      for (const ProtoColumn& k : m.columns) {
        if (k.absent == PROTO_ABSENT_ERROR && column(k.node).nulls) return fail(BAD_MISSING, k.node, end) != nullptr;
      }
    }
    return true;
  }

  // ---- values

  Bytes single(const ProtoMessage& m, const ProtoField& f, Bytes p, Bytes end, int64_t entry) {
    if (__builtin_expect(f.kind > PROTO_CONVERT, 0)) return nested(&m, f, p, end, entry);
    if (__builtin_expect(f.oneof >= 0, 0)) choose(m, f, entry);
    if (__builtin_expect(column(f.column).length != entry, 0)) out_.truncate(f.column, entry);
    return scalar(f, p, end);
  }

  // Clears the other members of a oneof.
  void choose(const ProtoMessage& m, const ProtoField& f, int64_t entry) {
    for (int32_t member : m.oneofs[static_cast<size_t>(f.oneof)]) {
      if (member != f.column && column(member).length != entry) out_.truncate(member, entry);
    }
  }

  Bytes repeated(const ProtoField& f, uint32_t tag, Bytes p, Bytes end, int64_t entry) {
    Column& list = column(f.list);
    if (list.length != entry) {   // a list of a repeated message: reopen it
      --list.length;
    } else if (!out_.reserve(f.list)) {
      return nullptr;
    }
    if (is_packed(f, tag)) return packed(f, p, end);
    for (;;) {
      p = f.kind > PROTO_CONVERT ? nested(nullptr, f, p, end, column(f.column).length) : scalar(f, p, end);
      if (__builtin_expect(!p, 0)) return nullptr;
      if (p >= end) return p;
      uint32_t next;
      Bytes after = read_tag(p, f.list, next);
      if (!after) return nullptr;
      if (next != tag) return p;
      p = after;
    }
  }

  Bytes packed(const ProtoField& f, Bytes p, Bytes end) {
    int64_t bytes;
    p = length(p, end, f.column, bytes);
    if (!p) return nullptr;
    const int64_t width = f.kind == PROTO_FIXED32 ? 4 : f.kind == PROTO_FIXED64 ? 8 : 0;
    Bytes stop = p + bytes;
    if (width) {
      if (bytes % width) return fail(BAD_PACKED, f.column, p);
      if (bytes && !out_.reserve(f.column, bytes / width)) return nullptr;
      Column& c = column(f.column);
      if (bytes) memcpy(c.values + c.length * width, p, static_cast<size_t>(bytes));
      c.length += bytes / width;
      return stop;
    }
    while (p < stop) {
      p = f.kind == PROTO_CLOSED_ENUM ? nested(nullptr, f, p, stop, column(f.column).length) : scalar(f, p, stop);
      if (__builtin_expect(!p, 0)) return nullptr;
    }
    return p == stop ? p : fail(BAD_PACKED, f.column, stop);
  }

  template <class T>
  void put(int32_t node, T value) {
    Column& c = column(node);
    memcpy(c.values + c.length * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
    ++c.length;
  }

  // Appends one entry to the field's column.
  Bytes scalar(const ProtoField& f, Bytes p, Bytes end) {
    const int32_t at = f.column;
    uint64_t n = 0;
    int64_t bytes;
    if (__builtin_expect(!out_.reserve(at), 0)) return nullptr;
    switch (f.kind) {
      case PROTO_INT32:
        p = varint(p, at, n);
        put(at, static_cast<uint32_t>(n));
        return p;
      case PROTO_INT64:
        p = varint(p, at, n);
        put(at, n);
        return p;
      case PROTO_FIXED32:
        memcpy(&bytes, p, 8);
        put(at, static_cast<uint32_t>(bytes));
        return p + 4;
      case PROTO_FIXED64:
        memcpy(&n, p, 8);
        put(at, n);
        return p + 8;
      case PROTO_TEXT:
        p = length(p, end, at, bytes);
        if (__builtin_expect(!p, 0)) return nullptr;
        if (__builtin_expect(!is_text(p, static_cast<size_t>(bytes)), 0)) return fail(BAD_UTF8, at, p);
        return out_.append_bytes(at, p, static_cast<size_t>(bytes)) ? p + bytes : nullptr;
      case PROTO_BYTES:
        p = length(p, end, at, bytes);
        if (__builtin_expect(!p, 0)) return nullptr;
        return out_.append_bytes(at, p, static_cast<size_t>(bytes)) ? p + bytes : nullptr;
      case PROTO_SINT32:
        p = varint(p, at, n);
        put(at, static_cast<int32_t>(zigzag(static_cast<uint32_t>(n))));
        return p;
      case PROTO_SINT64:
        p = varint(p, at, n);
        put(at, zigzag(n));
        return p;
      case PROTO_BOOL:
        p = varint(p, at, n);
        put_bit(at, n != 0);
        return p;
      case PROTO_ENUM: {
        Bytes first = p;
        p = varint(p, at, n);
        if (!p) return nullptr;
        int32_t symbol;
        if (!symbol_of(f, static_cast<int32_t>(n), symbol)) return fail(BAD_SYMBOL, at, first);
        put(at, symbol);
        return p;
      }
      case PROTO_CONVERT: return convert(f, p);
      default: return fail(BAD_TAG, at, p);   // a tag with the value 0
    }
  }

  void put_bit(int32_t node, bool value) {
    Column& c = column(node);
    const auto bit = static_cast<uint8_t>(1u << (c.length & 7));
    if (value) {
      c.values[c.length >> 3] |= bit;
    } else {
      c.values[c.length >> 3] &= static_cast<uint8_t>(~bit);
    }
    ++c.length;
  }

  static bool symbol_of(const ProtoField& f, int32_t number, int32_t& symbol) {
    auto at = static_cast<size_t>(number);   // most enums have the numbers 0, 1, 2 …
    if (at >= f.numbers.size() || f.numbers[at] != number) {
      const auto found = std::lower_bound(f.numbers.begin(), f.numbers.end(), number);
      if (found == f.numbers.end() || *found != number) return false;
      at = static_cast<size_t>(found - f.numbers.begin());
    }
    symbol = f.table[at];
    return true;
  }

  // Reads a scalar for a column of another type, if the value fits.
  Bytes convert(const ProtoField& f, Bytes p) {
    const ValueNode& node = nodes_[f.column];
    const int32_t at = f.column;
    Bytes first = p;
    uint64_t n = 0;
    switch (f.from) {
      case PROTO_FROM_FIXED32:
      case PROTO_FROM_SFIXED32:
      case PROTO_FROM_FLOAT: {
        uint32_t word;
        memcpy(&word, p, 4);
        n = f.from == PROTO_FROM_SFIXED32 ? static_cast<uint64_t>(static_cast<int32_t>(word)) : word;
        p += 4;
        break;
      }
      case PROTO_FROM_FIXED64:
      case PROTO_FROM_SFIXED64:
        memcpy(&n, p, 8);
        p += 8;
        break;
      default:
        p = varint(p, at, n);
        if (!p) return nullptr;
        if (f.from == PROTO_FROM_INT32) n = static_cast<uint64_t>(static_cast<int32_t>(n));
        if (f.from == PROTO_FROM_UINT32) n = static_cast<uint32_t>(n);
        if (f.from == PROTO_FROM_SINT32) n = static_cast<uint64_t>(zigzag(static_cast<uint32_t>(n)));
        if (f.from == PROTO_FROM_SINT64) n = static_cast<uint64_t>(zigzag(n));
        if (f.from == PROTO_FROM_BOOL) n = n != 0;
    }
    if (f.from == PROTO_FROM_FLOAT) {
      float narrow;
      const auto word = static_cast<uint32_t>(n);
      memcpy(&narrow, &word, 4);
      put(at, static_cast<double>(narrow));
      return p;
    }
    const bool negative = f.from != PROTO_FROM_UINT64 && f.from != PROTO_FROM_FIXED64 && static_cast<int64_t>(n) < 0;
    if (node.type == VALUE_BOOL) {
      if (n > 1) return fail(BAD_RANGE, at, first);
      put_bit(at, n != 0);
      return p;
    }
    const int32_t bits = node.width * 8 - (node.is_signed ? 1 : 0);
    const uint64_t most = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
    if (negative ? !node.is_signed || ~n > most : n > most) return fail(BAD_RANGE, at, first);
    Column& c = column(at);
    memcpy(c.values + c.length * node.width, &n, static_cast<size_t>(node.width));
    ++c.length;
    return p;
  }

  // ---- values with several parts

  // `m` is the message of a field that is not repeated; nullptr for a repeated field.
  __attribute__((noinline)) Bytes nested(const ProtoMessage* m, const ProtoField& f, Bytes p, Bytes end,
                                         int64_t entry) {
    if (f.kind == PROTO_CLOSED_ENUM) return closed_enum(m, f, p, entry);
    if (m && f.oneof >= 0) choose(*m, f, entry);
    if (f.kind == PROTO_SKIP) return skip(f.tag, p, end, m ? m->node : f.list);
    if (f.kind == PROTO_NONE) return fail(BAD_TAG, m ? m->node : f.list, p - 1);
    Bytes stop = end;
    uint32_t group = 0;
    size_t unused = 0;
    if ((f.tag & 7) == PROTO_WIRE_GROUP) {
      group = f.tag + 1;   // the end tag
    } else {
      int64_t bytes;
      p = length(p, end, f.column, bytes);
      if (!p) return nullptr;
      stop = p + bytes;
    }
    if (f.kind == PROTO_JSON) return json(m, f, p, stop, group, entry);
    if (!out_.reserve(f.column)) return nullptr;
    Column& c = column(f.column);
    bool again = c.length != entry;
    if (again && out_.is_null(f.column, entry)) {
      out_.truncate(f.column, entry);
      again = false;
    }
    switch (f.kind) {
      case PROTO_MESSAGE:
        if (again) --c.length;
        // The first part of a single message fills what its absence would fill, too.
        if ((m == nullptr || again || f.oneof >= 0) &&
            __builtin_expect(!budget_.take(messages_[f.message].cells), 0)) {
          return fail(BAD_COUNT, f.column, p);
        }
        p = message(messages_[f.message], p, stop, group, entry);
        if (p && m == nullptr && unknown_symbol_) {   // a map's entry with an unknown enum number: drop it
          out_.truncate(f.column, entry);
          unknown_symbol_ = false;
        }
        return p;
      case PROTO_WRAPPER:
        if (!again && !out_.append_zero(f.column)) return nullptr;
        return fields(messages_[f.message], p, stop, group, entry, unused);
      default: return time(f, p, stop, group, entry, again);
    }
  }

  // The text of recursive messages.
  struct Json {
    ProtoJson writer;
    // The parts of the newest single message of each column. The first part of another one replaces them.
    std::unordered_map<int32_t, ProtoJson::Parts> single;
    ProtoJson::Parts item;
  };

  // Writes a message as text. A single one may come in several parts, which are merged.
  __attribute__((noinline)) Bytes json(const ProtoMessage* m, const ProtoField& f, Bytes p, Bytes stop, uint32_t group, int64_t entry) {
    Bytes after = stop;
    if (group) {
      after = skip(f.tag, p, stop, f.column);
      if (!after) return nullptr;
      stop = after;
      for (uint32_t tag = group; tag; tag >>= 7) --stop;   // the bytes of the end tag
    }
    if (!json_) json_ = std::make_unique<Json>();
    ProtoJson& writer = json_->writer;
    ProtoJson::Parts& parts = m ? json_->single[f.column] : json_->item;
    if (!m || column(f.column).length == entry) parts.clear();
    parts.push_back({p, stop});
    if (column(f.column).length != entry) out_.truncate(f.column, entry);
    if (!writer.run(program_->json, f.message, parts, budget_.left()))
      return fail(writer.reason, f.column, writer.at ? writer.at : p);
    const std::string& made = writer.out.text;
    if (!budget_.take(static_cast<int64_t>(made.size() / 8))) return fail(BAD_COUNT, f.column, p);
    if (!out_.reserve(f.column)) return nullptr;
    return out_.append_bytes(f.column, reinterpret_cast<Bytes>(made.data()), made.size()) ? after : nullptr;
  }

  Bytes closed_enum(const ProtoMessage* m, const ProtoField& f, Bytes p, int64_t entry) {
    uint64_t n;
    int32_t symbol;
    p = varint(p, f.column, n);
    if (!p) return nullptr;
    const bool is_known = symbol_of(f, static_cast<int32_t>(n), symbol);
    if (m && m->is_entry) unknown_symbol_ = !is_known;
    if (!is_known) return p;
    if (m && f.oneof >= 0) choose(*m, f, entry);
    if (column(f.column).length != entry) out_.truncate(f.column, entry);
    if (!out_.reserve(f.column)) return nullptr;
    put(f.column, symbol);
    return p;
  }

  // Reads seconds and nanoseconds as a number of the column's unit. With `again` it merges them into the earlier value.
  Bytes time(const ProtoField& f, Bytes p, Bytes end, uint32_t group, int64_t entry, bool again) {
    static constexpr int64_t kPowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};
    const int32_t at = f.column;
    const int64_t units = kPowers[nodes_[at].unit], nanos_per_unit = kPowers[9 - nodes_[at].unit];
    const bool is_duration = f.kind == PROTO_DURATION;
    Bytes first = p;
    int64_t seconds = 0, nanos = 0, total;
    if (again) {
      memcpy(&total, column(at).values + entry * 8, 8);
      seconds = total / units;
      nanos = total % units * nanos_per_unit;
      if (!is_duration && nanos < 0) {
        --seconds;
        nanos += 1000000000;
      }
      out_.truncate(at, entry);
    }
    bool ended = false;
    while (p < end) {
      uint32_t tag;
      uint64_t n;
      p = read_tag(p, at, tag);
      if (!p) return nullptr;
      if (group && tag == group) {
        ended = true;
        break;
      }
      if (tag == (1 << 3 | PROTO_WIRE_VARINT) || tag == (2 << 3 | PROTO_WIRE_VARINT)) {
        p = varint(p, at, n);
        if (tag >> 3 == 1) {
          seconds = static_cast<int64_t>(n);
        } else {
          nanos = static_cast<int32_t>(n);
        }
      } else {
        p = skip(tag, p, end, at);
      }
      if (!p) return nullptr;
    }
    if (p > end || (group && !ended)) return fail(BAD_CUT_OFF, at, end);
    const bool in_range = is_duration ? seconds >= -315576000000 && seconds <= 315576000000 && nanos > -1000000000 &&
                                            nanos < 1000000000 && (seconds <= 0 || nanos >= 0) && (seconds >= 0 || nanos <= 0)
                                      : seconds >= -62135596800 && seconds <= 253402300799 && nanos >= 0 &&
                                            nanos < 1000000000;
    if (!in_range) return fail(BAD_RANGE, at, first);
    if (nanos % nanos_per_unit && !f.truncates) return fail(BAD_INEXACT, at, first);
    // 128 bits: with parts of different signs near the limit, the sum can fit although the product does not.
    const __int128 exact = static_cast<__int128>(seconds) * units + nanos / nanos_per_unit;
    if (exact > INT64_MAX || exact < INT64_MIN) return fail(BAD_RANGE, at, first);
    put(at, static_cast<int64_t>(exact));
    return p;
  }

  // Removes earlier entries of equal keys, because the last one counts. False when the row has no cells left for the
  // search: each part of a message in several parts ends its maps.
  bool unique_keys(int32_t map) {
    const Column& c = column(map);
    const int32_t entries = c.children[0];
    const int64_t first = c.offset_at(c.length - 1), count = c.offset_at(c.length) - first;
    if (count < 2) return true;
    if (count > kFewKeys && !budget_.take(kCellsPerKey * count)) return false;
    const Column& keys = column(column(entries).children[0]);
    auto key = [&keys](int64_t i) {
      if (keys.type == VALUE_TEXT) return keys.text_at(i);
      if (keys.type == VALUE_BOOL) return std::string_view(&"\0\1"[keys.values[i >> 3] >> (i & 7) & 1], 1);
      return std::string_view(reinterpret_cast<const char*>(keys.values) + i * keys.width,
                              static_cast<size_t>(keys.width));
    };
    const std::vector<bool> kept = last_of_keys(first, first + count, key);
    if (kept.empty()) return true;
    out_.keep_only(entries, first, kept);
    Column& changed = column(map);
    changed.put_offset(changed.length, column(entries).length);
    return true;
  }

  static constexpr int64_t kCellsPerKey = 8;   // what sorting it costs
  const ValueNode* nodes_;
  Columnar& out_;
  const ProtoMessage* messages_ = nullptr;
  const uint8_t* end_ = nullptr;
  RowFailure* failure_ = nullptr;
  CellBudget budget_;
  bool missing_ = false;           // a message below the row lacked a required field when it was closed
  bool unknown_symbol_ = false;    // a map's entry has a value that its closed enum does not know
  const ProtoProgram* program_ = nullptr;
  std::unique_ptr<Json> json_;     // made for the first recursive message
};

// Reads Confluent's message indexes, which select a message of the writer's file: a count and the indexes, all as
// zigzag varints, or a single 0 for the first message. Moves `p` after them and compares them with `expected`.
inline BadValue open_indexes(const uint8_t*& p, const uint8_t* end, const std::vector<int32_t>& expected) {
  constexpr int64_t kMost = 64;
  int64_t count, index;
  if (p < end && *p == 0 && expected.size() == 1 && expected[0] == 0) {
    ++p;
    return BAD_NONE;
  }
  if (p == end || !read_varlong(p, end, count) || count < 0 || count > kMost) return BAD_FRAME;
  if (count == 0) return expected.size() == 1 && expected[0] == 0 ? BAD_NONE : BAD_MESSAGE;
  bool same = static_cast<size_t>(count) == expected.size();
  for (int64_t i = 0; i < count; ++i) {
    if (!read_varlong(p, end, index)) return BAD_FRAME;
    same = same && index == expected[static_cast<size_t>(i)];
  }
  return same ? BAD_NONE : BAD_MESSAGE;
}

}  // namespace kc
