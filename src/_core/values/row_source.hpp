// Owns: access to the binary values of many rows: Arrow views, or 32-bit or 64-bit offsets.
// Threads: any (immutable while it is read). Never: owns the memory of the values, except that of copied rows.
#pragma once
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "records/columns.hpp"
#include "values/builders.hpp"
#include "values/schema_headers.hpp"

namespace kc {

struct RowBytes {
  const uint8_t* begin = nullptr;   // nullptr: a null
  const uint8_t* end = nullptr;
  const uint8_t* readable = nullptr;  // end of the readable memory after the row
};

struct RowSource {
  int64_t length = 0;
  int64_t offset = 0;                  // index of the first row in the buffers below
  const uint8_t* validity = nullptr;   // bitmap; nullptr: no nulls
  const BinaryView* views = nullptr;
  std::vector<const uint8_t*> buffers; // the buffers into which the views point
  std::vector<size_t> buffer_bytes;
  const void* offsets = nullptr;       // instead of views
  bool is_large = false;
  const uint8_t* data = nullptr;
  const HeadersRef* headers = nullptr; // of the rows, by index like `views`; `buffers` has their bytes
  std::string schema_header;           // name of the header with the reference to a row's schema
  SchemaHeaders schema_headers;        // read_schema_headers() fills it

  // Copied rows; finish() then sets `data` and `offsets` to them.
  GrowingBytes own_data;
  std::vector<int64_t> own_offsets;
  std::vector<uint8_t> own_validity;

  RowBytes row(int64_t i) const {
    RowBytes out;
    const int64_t at = offset + i;
    if (validity && !(validity[at >> 3] >> (at & 7) & 1)) return out;
    if (views) {
      const BinaryView& v = views[at];
      if (v.length <= 12) {
        out.begin = v.inlined;
        out.readable = out.end = v.inlined + v.length;
      } else {
        const auto buffer = static_cast<size_t>(v.ref.buffer_index);
        out.begin = buffers[buffer] + v.ref.offset;
        out.end = out.begin + v.length;
        out.readable = buffers[buffer] + buffer_bytes[buffer];
      }
      return out;
    }
    out.begin = data + offset_at(at);
    out.end = data + offset_at(at + 1);
    out.readable = data + offset_at(offset + length);
    return out;
  }

  // Reads the schema headers at the first call. False if memory is out.
  bool read_schema_headers() {
    if (!headers) return true;
    try {
      schema_headers.read(headers, buffers, offset, length, schema_header);
    } catch (const std::bad_alloc&) {
      return false;
    }
    headers = nullptr;
    return true;
  }

  bool copy(const RowBytes& row) {
    if (own_offsets.empty()) own_offsets.push_back(0);
    const auto i = static_cast<size_t>(length);
    if (i % 8 == 0) own_validity.push_back(0);
    if (row.begin) {
      own_validity[i / 8] |= static_cast<uint8_t>(1u << (i % 8));
      if (!own_data.append(row.begin, static_cast<size_t>(row.end - row.begin))) return false;
    }
    own_offsets.push_back(static_cast<int64_t>(own_data.size));
    ++length;
    return true;
  }
  bool copy(const uint8_t* bytes, size_t size) { return copy(RowBytes{bytes, bytes + size, bytes + size}); }
  bool copy_null() { return copy(RowBytes()); }

  bool finish() {
    if (own_offsets.empty()) own_offsets.push_back(0);
    if (!own_data.reserve(own_data.size)) return false;
    validity = own_validity.data();
    offsets = own_offsets.data();
    is_large = true;
    data = own_data.data;
    return true;
  }

 private:
  int64_t offset_at(int64_t i) const {
    return is_large ? static_cast<const int64_t*>(offsets)[i] : static_cast<const int32_t*>(offsets)[i];
  }
};

}  // namespace kc
