// Owns: the schema references that records have in a header instead of a prefix of the value, and the rows of each.
// Threads: one at a time (the caller of decode). Never: fetches a schema, refers to memory of the records.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "records/bytes.hpp"
#include "records/columns.hpp"

namespace kc {

// The schema id of a row with a reference in a header is this plus an index into SchemaHeaders::values.
constexpr int64_t kHeaderIds = int64_t{1} << 32;

struct SchemaHeaders {
  static constexpr int32_t kNone = -1;  // the row has no such header
  static constexpr int32_t kBad = -2;   // the header's value is not a reference

  std::vector<int32_t> rows;            // index into `values`, kNone or kBad; empty: no row has such a header
  std::vector<std::string> values;      // each value once

  int32_t of(int64_t row) const { return rows.empty() ? kNone : rows[static_cast<size_t>(row)]; }

  // Reads the first header with this name of each of `length` rows. The record walk has already checked the lengths.
  void read(const HeadersRef* headers, const std::vector<const uint8_t*>& buffers, int64_t offset, int64_t length,
            const std::string& name) {
    std::unordered_map<std::string, int32_t> seen;
    for (int64_t i = 0; i < length; ++i) {
      const HeadersRef& ref = headers[offset + i];
      if (ref.count == 0) continue;
      const uint8_t* value = nullptr;
      const uint8_t* end = nullptr;
      if (!find(buffers[static_cast<size_t>(ref.buffer_index)] + ref.offset, ref.length, name, value, end)) continue;
      if (rows.empty()) rows.assign(static_cast<size_t>(length), kNone);
      int32_t& row = rows[static_cast<size_t>(i)];
      if (!is_reference(value, end - value)) {
        row = kBad;
        continue;
      }
      const size_t bytes = static_cast<size_t>(end - value);
      if (!values.empty() && values.back().size() == bytes && memcmp(values.back().data(), value, bytes) == 0) {
        row = static_cast<int32_t>(values.size()) - 1;
        continue;
      }
      const auto added = seen.emplace(std::string(reinterpret_cast<const char*>(value), bytes),
                                      static_cast<int32_t>(values.size()));
      if (added.second) values.push_back(added.first->first);
      row = added.first->second;
    }
  }

 private:
  // A reference is 0 and a 4-byte id, or 1 and a 16-byte GUID. Protobuf's message indexes can follow.
  static bool is_reference(const uint8_t* p, ptrdiff_t bytes) {
    return bytes >= 5 && (p[0] == 0 || (p[0] == 1 && bytes >= 17));
  }

  // Returns false if there is no such header or its value is null.
  static bool find(const uint8_t* p, int32_t bytes, const std::string& name, const uint8_t*& value,
                   const uint8_t*& value_end) {
    const uint8_t* const end = p + bytes;
    while (p < end) {
      int64_t n;
      if (!read_varlong(p, end, n) || n < 0 || n > end - p) return false;
      const bool is_it = static_cast<size_t>(n) == name.size() && memcmp(p, name.data(), name.size()) == 0;
      p += n;
      if (!read_varlong(p, end, n) || n > end - p) return false;
      if (is_it) {
        value = p;
        value_end = p + (n < 0 ? 0 : n);
        return n >= 0;
      }
      p += n < 0 ? 0 : n;
    }
    return false;
  }
};

}  // namespace kc
