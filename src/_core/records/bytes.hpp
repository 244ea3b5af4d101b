// Owns: the byte primitives of the record walk: big-endian loads, zigzag varints, Arrow views, formatted details.
// Threads: any (pure functions). Never: reads at or past its argument `end`.
//
// It is separate from protocol/wire.hpp because the walk runs once per record: all functions here inline to a few
// instructions and report an error as a bool, not as a Status.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "records/columns.hpp"

namespace kc {

inline uint32_t load_be32(const uint8_t* p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return __builtin_bswap32(v);
}

inline uint64_t load_be64(const uint8_t* p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return __builtin_bswap64(v);
}

inline int16_t load_be16(const uint8_t* p) { return static_cast<int16_t>((p[0] << 8) | p[1]); }

inline int64_t zigzag(uint64_t n) { return static_cast<int64_t>(n >> 1) ^ -static_cast<int64_t>(n & 1); }

// Reads a varint that is longer than two bytes or close to the end. False if it is cut off, overlong, or longer than
// `max_bytes`.
__attribute__((noinline)) inline bool read_varlong_slow(const uint8_t*& p, const uint8_t* end, int max_bytes,
                                                        int64_t& out) {
  uint64_t n = 0;
  const uint8_t* q = p;
  for (int i = 0; i < max_bytes && q < end; i++) {
    uint64_t b = *q++;
    if (i == 9 && b > 1) return false;  // bits beyond 64
    n |= (b & 0x7f) << (7 * i);
    if (b < 0x80) {
      p = q;
      out = zigzag(n);
      return true;
    }
  }
  return false;
}

inline bool read_varlong(const uint8_t*& p, const uint8_t* end, int64_t& out) {
  if (__builtin_expect(end - p >= 2, 1)) {
    uint32_t a = p[0];
    if (__builtin_expect(a < 0x80, 1)) {
      p += 1;
      out = zigzag(a);
      return true;
    }
    uint32_t b = p[1];
    if (__builtin_expect(b < 0x80, 1)) {
      p += 2;
      out = zigzag((a & 0x7f) | b << 7);
      return true;
    }
  }
  return read_varlong_slow(p, end, 10, out);
}

__attribute__((noinline)) inline bool read_varint_slow(const uint8_t*& p, const uint8_t* end, int32_t& out) {
  int64_t n;
  const uint8_t* q = p;
  if (!read_varlong_slow(q, end, 5, n) || n != static_cast<int32_t>(n)) return false;
  p = q;
  out = static_cast<int32_t>(n);
  return true;
}

inline bool read_varint(const uint8_t*& p, const uint8_t* end, int32_t& out) {
  if (__builtin_expect(end - p >= 2, 1)) {
    uint32_t a = p[0];
    if (__builtin_expect(a < 0x80, 1)) {
      p += 1;
      out = static_cast<int32_t>(a >> 1) ^ -static_cast<int32_t>(a & 1);
      return true;
    }
    uint32_t b = p[1];
    if (__builtin_expect(b < 0x80, 1)) {
      p += 2;
      uint32_t n = (a & 0x7f) | b << 7;
      out = static_cast<int32_t>(n >> 1) ^ -static_cast<int32_t>(n & 1);
      return true;
    }
  }
  return read_varint_slow(p, end, out);
}

// The fields of one v2 record; a length of -1 means null.
struct RecordFields {
  int64_t timestamp_delta;
  int32_t offset_delta;
  int32_t key_length;
  int32_t value_length;
  int32_t header_count;
  const uint8_t* key;
  const uint8_t* value;
  const uint8_t* headers;
  const uint8_t* end;
};

// Reads a varint of at most four bytes; false for a longer one. The caller ensures that four bytes are readable.
inline bool read_short_varint(const uint8_t*& p, int32_t& out) {
  uint32_t n = p[0];
  if (__builtin_expect(n < 0x80, 1)) {
    p += 1;
  } else {
    n = (n & 0x7f) | static_cast<uint32_t>(p[1]) << 7;
    if (__builtin_expect(p[1] < 0x80, 1)) {
      p += 2;
    } else {
      n = (n & 0x3fff) | static_cast<uint32_t>(p[2]) << 14;
      if (p[2] < 0x80) {
        p += 3;
      } else {
        if (p[3] >= 0x80) return false;
        n = (n & 0x1fffff) | static_cast<uint32_t>(p[3]) << 21;
        p += 4;
      }
    }
  }
  out = static_cast<int32_t>(n >> 1) ^ -static_cast<int32_t>(n & 1);
  return true;
}

// Reads the record at p, up to its headers, if it is a plain record: short varints, well formed, not at the very end of
// the batch. False does not mean that the record is bad: the caller then uses read_record(), which checks everything.
inline bool read_plain_record(const uint8_t* p, const uint8_t* end, RecordFields& f) {
  constexpr int kShort = 4;                       // bytes of a short varint
  constexpr int kBeforeKey = 1 + 4 * kShort;      // attributes, length, two deltas, the key's length
  int32_t length, timestamp_delta;
  if (end - p < kBeforeKey) return false;
  if (!read_short_varint(p, length) || length < 0 || length > end - p) return false;
  const uint8_t* record_end = p + length;
  p += 1;  // the attributes: Kafka defines none
  if (!read_short_varint(p, timestamp_delta) || !read_short_varint(p, f.offset_delta)) return false;
  if (!read_short_varint(p, f.key_length) || f.key_length < -1 || f.key_length > record_end - p) return false;
  f.key = p;
  p += f.key_length > 0 ? f.key_length : 0;
  if (end - p < kShort) return false;
  if (!read_short_varint(p, f.value_length) || f.value_length < -1 || f.value_length > record_end - p) return false;
  f.value = p;
  p += f.value_length > 0 ? f.value_length : 0;
  // Mostly the record's last byte: a check for two readable bytes would send every record to read_record().
  if (p >= record_end || *p > 0x7f || *p & 1) return false;  // more than 63 headers, or a negative number
  f.header_count = *p >> 1;
  f.timestamp_delta = timestamp_delta;
  f.headers = p + 1;
  f.end = record_end;
  return true;
}

// `readable` is the end of the readable bytes: if 12 bytes are left, two loads copy a short value.
inline void put_view(BinaryView* view, const uint8_t* data, int32_t length, int32_t buffer_index,
                     const uint8_t* origin, const uint8_t* readable) {
  view->length = length;
  if (__builtin_expect(length > 12, 1)) {
    memcpy(view->ref.prefix, data, 4);
    view->ref.buffer_index = buffer_index;
    view->ref.offset = static_cast<int32_t>(data - origin);
    return;
  }
  uint64_t low = 0;
  uint32_t high = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if (readable - data >= 12 && length > 0) {
    memcpy(&low, data, 8);
    memcpy(&high, data + 8, 4);
    if (length <= 8) {
      low &= ~uint64_t(0) >> (64 - 8 * length);
      high = 0;
    } else if (length < 12) {
      high &= ~uint32_t(0) >> (96 - 8 * length);
    }
    memcpy(view->inlined, &low, 8);
    memcpy(view->inlined + 8, &high, 4);
    return;
  }
#endif
  memset(view->inlined, 0, 12);
  if (length > 0) memcpy(view->inlined, data, static_cast<size_t>(length));
}

// Writes a null: an empty view, because Arrow requires defined bytes, and a cleared validity bit.
inline void put_null(BinaryView* view, uint8_t* validity, int32_t row) {
  memset(view, 0, sizeof(*view));
  validity[row >> 3] &= static_cast<uint8_t>(~(1u << (row & 7)));
}

__attribute__((format(printf, 1, 2))) inline std::string formatted(const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  if (n < 0) return std::string();
  return std::string(text, static_cast<size_t>(n) < sizeof(text) ? static_cast<size_t>(n) : sizeof(text) - 1);
}

}  // namespace kc
