// Owns: Arrow buffers under construction, one Column per node of a Plan, and the rows that could not be decoded.
// Threads: one at a time (the caller of decode). Never: knows a format, touches Python.
//
// A row is atomic: its mark is the number of rows before it, and truncate() to this mark removes all entries that the
// row has appended. Entries are valid by default; only append_null() writes validity, so valid entries cost nothing.
#pragma once
#include <climits>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "values/column_memory.hpp"
#include "values/program.hpp"

namespace kc {

// The number of bytes that a scanner may write after its result.
constexpr size_t kWriteAhead = 32;
constexpr int64_t kMostEntries = INT64_MAX & ~int64_t(63);

struct GrowingBytes {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t capacity = 0;

  GrowingBytes() = default;
  GrowingBytes(const GrowingBytes&) = delete;
  GrowingBytes& operator=(const GrowingBytes&) = delete;
  GrowingBytes(GrowingBytes&& other) noexcept : data(other.data), size(other.size), capacity(other.capacity) {
    other.data = nullptr;
    other.size = other.capacity = 0;
  }
  ~GrowingBytes() { ColumnMemory::give_back(data, capacity); }

  // Ensures capacity for `bytes` in total, plus kWriteAhead. The capacity never exceeds `most` plus kWriteAhead, so
  // that a check of the capacity is also a check of the limit. False if memory is out.
  bool reserve(size_t bytes, size_t most = SIZE_MAX - kWriteAhead) {
    return bytes + kWriteAhead <= capacity || enlarge(bytes + kWriteAhead, most + kWriteAhead);
  }
  bool append(const void* from, size_t bytes) {
    if (!reserve(size + bytes)) return false;
    if (bytes) memcpy(data + size, from, bytes);
    size += bytes;
    return true;
  }

 private:
  __attribute__((noinline)) bool enlarge(size_t want, size_t most) {
    size_t bigger = capacity * 2 > want ? capacity * 2 : want;
    if (bigger < 256) bigger = 256;
    if (bigger > most) bigger = most;
    auto* p = static_cast<uint8_t*>(ColumnMemory::grow(data, capacity, bigger));
    if (!p) return false;
    data = p;
    capacity = bigger;
    return true;
  }
};

struct Column {
  ValueType type = VALUE_NULL;
  bool nullable = true;
  bool is_large = false;
  bool has_offsets = false;
  int32_t width = 0;
  int64_t length = 0;
  int64_t capacity = 0;
  int64_t nulls = 0;
  int64_t limit = kMostEntries;  // maximum number of entries for the parent's offsets, a multiple of 64
  uint8_t* validity = nullptr;   // allocated with the first null; the bits after `length` are ones
  uint8_t* values = nullptr;     // entries of `width` bytes, bits, or offsets
  size_t validity_bytes = 0;     // allocated bytes
  size_t values_bytes = 0;
  GrowingBytes data;             // the bytes of text and binary
  std::vector<int32_t> children;

  Column() = default;
  Column(const Column&) = delete;
  Column(Column&& o) noexcept
      : type(o.type), nullable(o.nullable), is_large(o.is_large), has_offsets(o.has_offsets), width(o.width),
        length(o.length), capacity(o.capacity), nulls(o.nulls), limit(o.limit), validity(o.validity), values(o.values),
        validity_bytes(o.validity_bytes), values_bytes(o.values_bytes), data(std::move(o.data)),
        children(std::move(o.children)) {
    o.validity = o.values = nullptr;
  }
  ~Column() {
    ColumnMemory::give_back(validity, validity_bytes);
    ColumnMemory::give_back(values, values_bytes);
  }
  // Grow to this number of bytes. False if memory is out.
  bool grow_values(size_t bytes) { return grow(values, values_bytes, bytes); }
  bool grow_validity(size_t bytes) { return grow(validity, validity_bytes, bytes); }

  int64_t offset_at(int64_t i) const {
    if (is_large) return reinterpret_cast<const int64_t*>(values)[i];
    return reinterpret_cast<const int32_t*>(values)[i];
  }
  // Of a column of text: entry i.
  std::string_view text_at(int64_t i) const {
    const auto start = static_cast<size_t>(offset_at(i));
    return {reinterpret_cast<const char*>(data.data) + start, static_cast<size_t>(offset_at(i + 1)) - start};
  }
  void put_offset(int64_t i, int64_t value) {
    if (is_large) {
      reinterpret_cast<int64_t*>(values)[i] = value;
    } else {
      reinterpret_cast<int32_t*>(values)[i] = static_cast<int32_t>(value);
    }
  }
  // The maximum number of bytes of text or binary that the offsets can address.
  size_t data_limit() const { return is_large ? static_cast<size_t>(INT64_MAX) : static_cast<size_t>(INT32_MAX); }

 private:
  static bool grow(uint8_t*& memory, size_t& size, size_t bytes) {
    auto* p = static_cast<uint8_t*>(ColumnMemory::grow(memory, size, bytes));
    if (!p) return false;
    memory = p;
    size = bytes;
    return true;
  }
};

enum BuildFailure : int32_t { BUILD_OK = 0, BUILD_MEMORY, BUILD_TOO_LONG };

// The columns of one decode call.
class Columnar {
 public:
  std::vector<Column> columns;
  BuildFailure failure = BUILD_OK;   // ends the whole call: not an error of one row
  int32_t failed_column = 0;

  explicit Columnar(const Plan& plan) {
    columns.reserve(plan.nodes.size());
    for (const ValueNode& node : plan.nodes) {
      columns.emplace_back();
      Column& c = columns.back();
      c.type = node.type;
      c.nullable = node.nullable;
      c.is_large = node.is_large;
      c.width = node.width;
      c.has_offsets = node.type == VALUE_TEXT || node.type == VALUE_BINARY || node.type == VALUE_RAW_JSON ||
                      node.type == VALUE_LIST || node.type == VALUE_MAP;
      c.children = node.children;
    }
    for (const Column& c : columns) {
      if ((c.type == VALUE_LIST || c.type == VALUE_MAP) && !c.is_large) bound(c.children[0], INT32_MAX & ~63);
    }
  }

  // Ensures capacity for `more` entries in a column. False (with `failure`) if memory is out or the offsets are too
  // small.
  bool reserve(int32_t index, int64_t more = 1) {
    Column& c = columns[static_cast<size_t>(index)];
    return __builtin_expect(c.length + more <= c.capacity, 1) || enlarge(index, c.length + more);
  }

  // Ensures capacity for this many rows in a column and the fields of its structs, so that they do not grow in steps.
  bool reserve_rows(int32_t index, int64_t rows) {
    if (rows && !reserve(index, rows)) return false;
    if (columns[static_cast<size_t>(index)].type != VALUE_STRUCT) return true;
    for (int32_t child : columns[static_cast<size_t>(index)].children) {
      if (!reserve_rows(child, rows)) return false;
    }
    return true;
  }

  // Appends one entry of text or binary. Reads at least 16 bytes from `p`.
  bool append_bytes(int32_t index, const uint8_t* p, size_t length) {
    if (!reserve_data(index, length)) return false;
    Column& c = columns[static_cast<size_t>(index)];
    uint8_t* to = c.data.data + c.data.size;
    if (__builtin_expect(length <= 16, 1)) {
      memcpy(to, p, 16);
    } else {
      memcpy(to, p, length);
    }
    c.data.size += length;
    c.put_offset(c.length + 1, static_cast<int64_t>(c.data.size));
    ++c.length;
    return true;
  }

  // Ensures capacity for `bytes` more bytes of text in a column.
  bool reserve_data(int32_t index, size_t bytes) {
    Column& c = columns[static_cast<size_t>(index)];
    if (__builtin_expect(c.data.size + bytes + kWriteAhead <= c.data.capacity, 1)) return true;
    return enlarge_data(index, c.data.size + bytes);
  }

  __attribute__((noinline)) bool enlarge_data(int32_t index, size_t bytes) {
    Column& c = columns[static_cast<size_t>(index)];
    if (bytes > c.data_limit()) return fail(index, BUILD_TOO_LONG);
    return c.data.reserve(bytes, c.data_limit()) || fail(index, BUILD_MEMORY);
  }

  // Appends a null, or an entry of zeros if the column is not nullable (its parent is then null).
  bool append_null(int32_t index) {
    if (!reserve(index)) return false;
    Column& c = columns[static_cast<size_t>(index)];
    if (c.nullable || index == 0) {
      if (!c.validity && c.type != VALUE_NULL && !make_validity(index)) return false;
      if (c.type != VALUE_NULL) c.validity[c.length >> 3] &= static_cast<uint8_t>(~(1u << (c.length & 7)));
      ++c.nulls;
    }
    return append_zero(index);
  }

  // One null of a column that is not nullable: it must be taken back, or the row fails.
  bool append_missing(int32_t index) {
    if (!reserve(index)) return false;
    Column& c = columns[static_cast<size_t>(index)];
    if (!c.validity && !make_validity(index)) return false;
    c.validity[c.length >> 3] &= static_cast<uint8_t>(~(1u << (c.length & 7)));
    ++c.nulls;
    return append_zero(index);
  }

  // One valid entry of zeros; of a struct, what append_null() makes of its fields.
  bool append_zero(int32_t index) {
    if (!reserve(index)) return false;
    Column& c = columns[static_cast<size_t>(index)];
    if (c.has_offsets) {
      c.put_offset(c.length + 1, c.offset_at(c.length));
    } else if (c.type == VALUE_BOOL) {
      c.values[c.length >> 3] &= static_cast<uint8_t>(~(1u << (c.length & 7)));
    } else if (c.width) {
      memset(c.values + c.length * c.width, 0, static_cast<size_t>(c.width));
    }
    if (c.type == VALUE_STRUCT) {
      for (int32_t child : c.children) {
        if (!append_null(child)) return false;
      }
    }
    ++c.length;
    return true;
  }

  // Removes all entries from `length` on, and incomplete entries in the child columns.
  void truncate(int32_t index, int64_t length) {
    Column& c = columns[static_cast<size_t>(index)];
    const int64_t kept = c.length < length ? c.length : length;
    if (c.type == VALUE_LIST || c.type == VALUE_MAP) {
      truncate(c.children[0], c.capacity ? c.offset_at(kept) : 0);
    } else if (c.type == VALUE_STRUCT) {
      for (int32_t child : c.children) truncate(child, length);
    } else if (c.has_offsets) {
      c.data.size = c.capacity ? static_cast<size_t>(c.offset_at(kept)) : 0;
    }
    if (c.type == VALUE_NULL) {
      c.nulls = kept;
    } else if (c.nulls) {
      for (int64_t i = kept; i < c.length; ++i) {
        const auto bit = static_cast<uint8_t>(1u << (i & 7));
        if (c.validity[i >> 3] & bit) continue;
        c.validity[i >> 3] |= bit;
        --c.nulls;
      }
    }
    c.length = kept;
  }

  bool is_null(int32_t index, int64_t entry) const {
    const Column& c = columns[static_cast<size_t>(index)];
    return c.nulls && c.validity && !(c.validity[entry >> 3] >> (entry & 7) & 1);
  }

  // Removes the entries from `first` on whose flag in `kept` is false. May throw std::bad_alloc.
  void keep_only(int32_t index, int64_t first, const std::vector<bool>& kept) {
    Column& c = columns[static_cast<size_t>(index)];
    const bool is_list = c.type == VALUE_LIST || c.type == VALUE_MAP;
    const int64_t before = c.length, first_below = is_list ? c.offset_at(first) : 0;
    std::vector<bool> below;
    int64_t to = first;
    for (int64_t i = first; i < before; ++i) {
      const bool keep = kept[static_cast<size_t>(i - first)];
      const int64_t start = c.has_offsets ? c.offset_at(i) : 0;
      const auto size = static_cast<size_t>(c.has_offsets ? c.offset_at(i + 1) - start : 0);
      if (is_list) below.insert(below.end(), size, keep);
      if (!keep) continue;
      if (c.has_offsets) {
        const int64_t at = c.offset_at(to);
        if (!is_list && size) memmove(c.data.data + at, c.data.data + start, size);
        c.put_offset(to + 1, at + static_cast<int64_t>(size));   // to <= i: it overwrites no unread offset
      } else if (c.type == VALUE_BOOL) {
        move_bit(c.values, i, to);
      } else if (c.width && i != to) {
        memcpy(c.values + to * c.width, c.values + i * c.width, static_cast<size_t>(c.width));
      }
      if (c.validity && i != to) {   // truncate() removes the bit at `i` later
        c.nulls += int64_t{is_null(index, i)} - int64_t{is_null(index, to)};
        move_bit(c.validity, i, to);
      }
      ++to;
    }
    if (is_list) {
      keep_only(c.children[0], first_below, below);
    } else if (c.type == VALUE_STRUCT) {
      for (int32_t child : c.children) keep_only(child, first, kept);
    }
    truncate(index, to);
  }

  bool fail(int32_t index, BuildFailure why) {
    failure = why;
    failed_column = index;
    return false;
  }

 private:
  static void move_bit(uint8_t* bits, int64_t from, int64_t to) {
    const auto bit = static_cast<uint8_t>(1u << (to & 7));
    if (bits[from >> 3] >> (from & 7) & 1) {
      bits[to >> 3] |= bit;
    } else {
      bits[to >> 3] &= static_cast<uint8_t>(~bit);
    }
  }

  // Sets the limit of a list's child and of its structs' fields, whose entries the offsets of the list count.
  void bound(int32_t index, int64_t limit) {
    columns[static_cast<size_t>(index)].limit = limit;
    if (columns[static_cast<size_t>(index)].type != VALUE_STRUCT) return;
    for (int32_t child : columns[static_cast<size_t>(index)].children) bound(child, limit);
  }

  __attribute__((noinline)) bool enlarge(int32_t index, int64_t want) {
    Column& c = columns[static_cast<size_t>(index)];
    if (want > c.limit) return fail(index, BUILD_TOO_LONG);
    int64_t bigger = c.capacity * 2 > want ? c.capacity * 2 : want;
    if (bigger < 64) bigger = 64;
    bigger = (bigger + 63) & ~int64_t(63);
    if (bigger > c.limit) bigger = c.limit;
    size_t bytes = 0;
    if (c.has_offsets) {
      bytes = static_cast<size_t>(bigger + 1) * (c.is_large ? 8 : 4);
    } else if (c.type == VALUE_BOOL) {
      bytes = static_cast<size_t>(bigger) / 8;
    } else if (c.width) {
      bytes = static_cast<size_t>(bigger) * static_cast<size_t>(c.width);
    }
    if (bytes) {
      if (!c.grow_values(bytes)) return fail(index, BUILD_MEMORY);
      if (c.has_offsets && c.capacity == 0) c.put_offset(0, 0);
    }
    if (c.validity) {
      if (!c.grow_validity(static_cast<size_t>(bigger) / 8)) return fail(index, BUILD_MEMORY);
      memset(c.validity + c.capacity / 8, 0xff, static_cast<size_t>(bigger - c.capacity) / 8);
    }
    c.capacity = bigger;
    return true;
  }

  __attribute__((noinline)) bool make_validity(int32_t index) {
    Column& c = columns[static_cast<size_t>(index)];
    if (!c.grow_validity(static_cast<size_t>(c.capacity) / 8)) return fail(index, BUILD_MEMORY);
    memset(c.validity, 0xff, static_cast<size_t>(c.capacity) / 8);
    return true;
  }
};

// A row that could not be decoded: the reason and the place.
struct BadRow {
  int64_t row;
  BadValue reason;
  int32_t node;        // of the Plan
  int64_t position;    // byte of the value
  int64_t found;       // BAD_LENGTH: bytes of the value; BAD_TYPE: 1 for a string that is not a number
  size_t raw_start;    // of its bytes in BadRows::raw
  size_t raw_end;
};

struct BadRows {
  std::vector<BadRow> rows;
  GrowingBytes raw;
};

// The error of a format's decoder for one row.
struct RowFailure {
  BadValue reason = BAD_NONE;
  int32_t node = 0;
  const uint8_t* at = nullptr;
  int64_t found = 0;
};

}  // namespace kc
