// Owns: Reader and Writer, the only code that converts between wire bytes and values.
// Threads: any; each object belongs to its user. Never: reads outside its buffer, allocates by an unchecked length.
//
// A Reader limits the memory of arrays to a multiple of its bytes (MEMORY_PER_BYTE). An element in memory can be 26
// times as large as its smallest encoding: without the limit a broker could turn a 100 MB response into gigabytes.
//
// A Reader keeps its first error. After it every read returns zero, empty or null, and every array is empty. A decoder
// therefore needs no check between its fields and cannot loop; the caller checks ok() or status() once, at the end.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "protocol/types.hpp"

namespace kc {

// Kafka's limit for every string, even if the length prefix allows more.
constexpr uint32_t MAX_STRING_BYTES = 0x7fff;

// An array of structs or strings starts with capacity for at most this many elements, even if its count is larger.
constexpr size_t FIRST_CAPACITY_ELEMENTS = 1024;

// The memory limit for the arrays of one message: this many bytes for each byte of the message, plus a constant, so
// that a small message with short names is never refused. Responses of real brokers need less than 5 bytes for a byte.
constexpr size_t MEMORY_PER_BYTE = 6;
constexpr size_t FREE_MEMORY = 4 << 20;

enum class WireError : uint8_t {
  NONE,
  TRUNCATED,
  NEGATIVE_LENGTH,
  NULL_VALUE,
  TOO_LONG,
  STRING_TOO_LONG,
  TOO_MANY,
  TOO_MUCH_MEMORY,
  OVERLONG_VARINT,
  TAG_SIZE,
};

// Returns false for a can_encode(), and sets `out` to the field that the version does not have.
inline bool refuse_field(const char** out, const char* field) {
  *out = field;
  return false;
}

class Reader {
 public:
  Reader() = default;
  Reader(const uint8_t* data, size_t length)
      : start_(data), p_(data), end_(data + length), memory_left_(length * MEMORY_PER_BYTE + FREE_MEMORY) {}

  // Sets the message name and version that status() reports for the following reads.
  void begin(const char* message, int16_t version) {
    if (!ok()) return;
    message_ = message;
    version_ = version;
  }
  bool ok() const { return error_ == WireError::NONE; }
  WireError error() const { return error_; }
  const char* error_field() const { return field_; }
  size_t position() const { return static_cast<size_t>(p_ - start_); }
  size_t remaining() const { return static_cast<size_t>(end_ - p_); }
  const uint8_t* current() const { return p_; }

  // Returns OK, or ERR_BAD_MSG with message, version, field and byte position in its detail.
  Status status() const {
    if (ok()) return Status();
    std::string text = message_;
    text += " v" + std::to_string(version_) + ": field " + field_ + ": " + reason();
    text += " (at byte " + std::to_string(error_position_) + ")";
    return Status(ERR_BAD_MSG, std::move(text));
  }

  bool read_bool(const char* field) { return read_fixed<uint8_t>(field) != 0; }
  int8_t read_int8(const char* field) { return static_cast<int8_t>(read_fixed<uint8_t>(field)); }
  int16_t read_int16(const char* field) { return static_cast<int16_t>(read_fixed<uint16_t>(field)); }
  uint16_t read_uint16(const char* field) { return read_fixed<uint16_t>(field); }
  int32_t read_int32(const char* field) { return static_cast<int32_t>(read_fixed<uint32_t>(field)); }
  uint32_t read_uint32(const char* field) { return read_fixed<uint32_t>(field); }
  int64_t read_int64(const char* field) { return static_cast<int64_t>(read_fixed<uint64_t>(field)); }
  double read_float64(const char* field) {
    uint64_t bits = read_fixed<uint64_t>(field);
    double v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
  Uuid read_uuid(const char* field) {
    if (!need(16, field)) return Uuid();
    Uuid v(load_big_endian<uint64_t>(p_), load_big_endian<uint64_t>(p_ + 8));
    p_ += 16;
    return v;
  }
  uint32_t read_uvarint(const char* field) {
    if (p_ != end_ && *p_ < 0x80) return *p_++;
    return read_long_uvarint(field);
  }

  void read_string(std::string& out, bool flexible, const char* field) {
    int64_t length = string_length(flexible, false, field);
    assign(out, length);
  }
  void read_nullable_string(NullableString& out, bool flexible, bool nullable, const char* field) {
    int64_t length = string_length(flexible, nullable, field);
    out.is_null = length < 0;
    assign(out.value, length);
  }
  void read_bytes(std::string& out, bool flexible, const char* field) {
    int64_t length = bytes_length(flexible, false, field);
    assign(out, length);
  }
  void read_nullable_bytes(NullableString& out, bool flexible, bool nullable, const char* field) {
    int64_t length = bytes_length(flexible, nullable, field);
    out.is_null = length < 0;
    assign(out.value, length);
  }
  BytesView read_view(bool flexible, bool nullable, const char* field) {
    int64_t length = bytes_length(flexible, nullable, field);
    BytesView view;
    if (!ok() || length < 0) return view;
    view.data = p_;
    view.length = static_cast<int32_t>(length);
    p_ += length;
    return view;
  }

  // Returns the count of an array whose elements take at least `least_bytes` (>= 1) each; null: -1, after an error: 0.
  int64_t read_array_length(size_t least_bytes, bool flexible, bool nullable, const char* field) {
    int64_t count = length_prefix<uint32_t>(flexible, field);
    if (count < 0) return absent(count, nullable, field) ? -1 : 0;
    if (static_cast<uint64_t>(count) > remaining() / least_bytes) return fail(WireError::TOO_LONG, field, count);
    return count;
  }

  // These methods read arrays of structs, integers and strings; the schemas have no other element types.
  // More than `most` elements are an error.
  template <class T>
  void read_structs(std::vector<T>& out, int16_t version, bool flexible, const char* field, int64_t most = INT32_MAX) {
    int64_t count = read_array_length(T::min_size(version), flexible, false, field);
    if (count > most) count = refuse_count(count, most, field);
    fill_structs(out, count, version, field);
  }
  template <class T>
  void read_structs(Nullable<std::vector<T>>& out, int16_t version, bool flexible, bool nullable, const char* field) {
    int64_t count = read_array_length(T::min_size(version), flexible, nullable, field);
    out.is_null = count < 0;
    fill_structs(out.value, count, version, field);
  }
  template <class T>
  void read_integers(std::vector<T>& out, bool flexible, const char* field) {
    fill_integers(out, read_array_length(sizeof(T), flexible, false, field));
  }
  template <class T>
  void read_integers(Nullable<std::vector<T>>& out, bool flexible, bool nullable, const char* field) {
    int64_t count = read_array_length(sizeof(T), flexible, nullable, field);
    out.is_null = count < 0;
    fill_integers(out.value, count);
  }
  // Sets `out` to a view of the Reader's bytes.
  void read_integers(Int32Array& out, bool flexible, const char* field) {
    const int64_t count = read_array_length(sizeof(int32_t), flexible, false, field);
    out = Int32Array(p_, static_cast<uint32_t>(count));
    p_ += static_cast<size_t>(count) * sizeof(int32_t);
  }
  void read_strings(std::vector<std::string>& out, bool flexible, const char* field) {
    fill_strings(out, read_array_length(flexible ? 1 : 2, flexible, false, field), flexible, field);
  }
  void read_strings(Nullable<std::vector<std::string>>& out, bool flexible, bool nullable, const char* field) {
    int64_t count = read_array_length(flexible ? 1 : 2, flexible, nullable, field);
    out.is_null = count < 0;
    fill_strings(out.value, count, flexible, field);
  }
  // One byte precedes a nullable struct; it is negative for null.
  template <class T>
  void read_nullable_struct(Nullable<T>& out, int16_t version, bool nullable, const char* field) {
    int8_t marker = nullable ? read_int8(field) : 1;
    if (!ok() || marker < 0) {
      out.set_null();
      return;
    }
    out.set_present().decode(*this, version);
  }

  // Skips a section of tagged fields; the message knows none of its tags.
  void skip_tagged_fields(const char* field) {
    if (p_ != end_ && *p_ == 0) {
      ++p_;
      return;
    }
    skip_some_tagged_fields(field);
  }

 private:
  friend class TaggedFields;

  bool need(size_t n, const char* field) {
    if (__builtin_expect(remaining() >= n, 1)) return true;
    fail(WireError::TRUNCATED, field, static_cast<int64_t>(n));
    return false;
  }
  template <class U>
  U read_fixed(const char* field) {
    if (!need(sizeof(U), field)) return 0;
    U v = load_big_endian<U>(p_);
    p_ += sizeof(U);
    return v;
  }
  // Empties the buffer, so that every later read returns zero, empty or null.
  __attribute__((noinline, cold)) int64_t fail(WireError error, const char* field, int64_t value) {
    if (ok()) {
      error_ = error;
      field_ = field;
      value_ = value;
      error_position_ = position();
      error_remaining_ = remaining();
      end_ = p_;
    }
    return 0;
  }
  __attribute__((noinline)) uint32_t read_long_uvarint(const char* field) {
    uint32_t v = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      if (!need(1, field)) return 0;
      uint8_t byte = *p_++;
      if (shift == 28 && byte > 0x0f) break;
      v |= static_cast<uint32_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return v;
    }
    fail(WireError::OVERLONG_VARINT, field, 0);
    return 0;
  }
  // Reads a length or count. A compact one is stored plus one, so that 0 means null.
  template <class U>
  int64_t length_prefix(bool flexible, const char* field) {
    if (flexible) {
      uint32_t stored = read_uvarint(field);
      return ok() ? static_cast<int64_t>(stored) - 1 : 0;
    }
    return static_cast<std::make_signed_t<U>>(read_fixed<U>(field));
  }
  // Returns whether a negative length is a null, and null is allowed here.
  bool absent(int64_t length, bool nullable, const char* field) {
    if (length == -1 && nullable) return true;
    fail(length == -1 ? WireError::NULL_VALUE : WireError::NEGATIVE_LENGTH, field, length);
    return false;
  }
  int64_t checked_length(int64_t length, bool nullable, const char* field) {
    if (length < 0) return absent(length, nullable, field) ? -1 : 0;
    if (static_cast<uint64_t>(length) > remaining() || length > INT32_MAX) {
      return fail(WireError::TOO_LONG, field, length);
    }
    return length;
  }
  int64_t string_length(bool flexible, bool nullable, const char* field) {
    int64_t length = length_prefix<uint16_t>(flexible, field);
    if (length > MAX_STRING_BYTES) return fail(WireError::STRING_TOO_LONG, field, length);
    return checked_length(length, nullable, field);
  }
  int64_t bytes_length(bool flexible, bool nullable, const char* field) {
    return checked_length(length_prefix<uint32_t>(flexible, field), nullable, field);
  }
  void assign(std::string& out, int64_t length) {
    if (length <= 0) {
      out.clear();
      return;
    }
    out.assign(reinterpret_cast<const char*>(p_), static_cast<size_t>(length));
    p_ += length;
  }
  __attribute__((noinline, cold)) int64_t refuse_count(int64_t count, int64_t most, const char* field) {
    most_ = most;
    return fail(WireError::TOO_MANY, field, count);
  }
  // Elements are larger in memory than on the wire, so the array grows only as elements are decoded. It gets its full
  // size after an eighth of them, because growing needs the old and the new memory at the same time.
  template <class T, class DecodeOne>
  void fill(std::vector<T>& out, int64_t count, const char* field, DecodeOne decode_one) {
    size_t wanted = count > 0 ? static_cast<size_t>(count) : 0;
    if (wanted > memory_left_ / sizeof(T)) wanted = static_cast<size_t>(fail(WireError::TOO_MUCH_MEMORY, field, count));
    memory_left_ -= wanted * sizeof(T);
    size_t room = std::min(wanted, std::max(out.capacity(), FIRST_CAPACITY_ELEMENTS));
    out.resize(room);
    for (size_t i = 0; i < wanted && ok(); ++i) {
      if (i == room) {
        room = room >= wanted / 8 ? wanted : room * 2;
        out.resize(room);
      }
      decode_one(out[i]);
    }
  }
  template <class T>
  void fill_structs(std::vector<T>& out, int64_t count, int16_t version, const char* field) {
    fill(out, count, field, [this, version](T& element) { element.decode(*this, version); });
  }
  template <class T>
  void fill_integers(std::vector<T>& out, int64_t count) {
    out.resize(count > 0 ? static_cast<size_t>(count) : 0);
    for (T& element : out) {
      element = static_cast<T>(load_big_endian<std::make_unsigned_t<T>>(p_));
      p_ += sizeof(T);
    }
  }
  void fill_strings(std::vector<std::string>& out, int64_t count, bool flexible, const char* field) {
    fill(out, count, field, [this, flexible, field](std::string& element) { read_string(element, flexible, field); });
  }
  inline void skip_some_tagged_fields(const char* field);

  std::string reason() const {
    std::string value = std::to_string(value_), left = std::to_string(error_remaining_);
    switch (error_) {
      case WireError::TRUNCATED: return "needs " + value + " bytes, " + left + " left";
      case WireError::NEGATIVE_LENGTH: return "negative length " + value;
      case WireError::NULL_VALUE: return "null, which this version does not allow";
      case WireError::TOO_LONG:
        // An array with fewer elements than bytes left can be too long, because an element can take several bytes.
        if (static_cast<uint64_t>(value_) <= error_remaining_) {
          return "length " + value + " is too large for the " + left + " bytes left";
        }
        return "length " + value + " exceeds the " + left + " bytes left";
      case WireError::STRING_TOO_LONG:
        return "length " + value + " exceeds the limit of " + std::to_string(MAX_STRING_BYTES) + " bytes for a string";
      case WireError::TOO_MANY: return value + " elements, but at most " + std::to_string(most_) + " are accepted";
      case WireError::TOO_MUCH_MEMORY:
        return value + " elements would take more than " + std::to_string(MEMORY_PER_BYTE) +
               " times the memory of the message";
      case WireError::OVERLONG_VARINT: return "varint longer than 32 bits";
      case WireError::TAG_SIZE: return "the length of tagged field " + value + " differs from its declared size";
      case WireError::NONE: break;
    }
    return "valid";
  }

  const uint8_t* start_ = nullptr;
  const uint8_t* p_ = nullptr;
  const uint8_t* end_ = nullptr;
  const char* message_ = "frame";
  const char* field_ = "";
  int64_t value_ = 0;
  int64_t most_ = 0;
  size_t memory_left_ = 0;
  size_t error_position_ = 0;
  size_t error_remaining_ = 0;
  int16_t version_ = 0;
  WireError error_ = WireError::NONE;
};

// Iterates over a section of tagged fields. During a field the Reader ends at the declared end of this field, so that
// the decoder cannot read into the next field.
class TaggedFields {
 public:
  TaggedFields(Reader& reader, const char* field) : r_(reader), field_(field) { left_ = r_.read_uvarint(field); }

  // Moves to the next field; false at the end of the section and on any error.
  bool next() {
    if (inside_) close_field();
    if (left_ == 0 || !r_.ok()) return false;
    --left_;
    tag_ = r_.read_uvarint(field_);
    uint32_t size = r_.read_uvarint(field_);
    if (!r_.ok()) return false;
    if (size > r_.remaining()) {
      r_.fail(WireError::TOO_LONG, field_, size);
      return false;
    }
    outer_end_ = r_.end_;
    r_.end_ = r_.p_ + size;
    inside_ = true;
    return true;
  }
  uint32_t tag() const { return tag_; }
  void skip() { r_.p_ = r_.end_; }

 private:
  void close_field() {
    inside_ = false;
    if (!r_.ok()) return;
    bool consumed = r_.p_ == r_.end_;
    r_.end_ = outer_end_;
    if (!consumed) r_.fail(WireError::TAG_SIZE, field_, tag_);
  }

  Reader& r_;
  const char* field_;
  const uint8_t* outer_end_ = nullptr;
  uint32_t left_ = 0;
  uint32_t tag_ = 0;
  bool inside_ = false;
};

inline void Reader::skip_some_tagged_fields(const char* field) {
  TaggedFields tags(*this, field);
  while (tags.next()) tags.skip();
}

// A growing buffer. A string that is too long for the wire format is written as empty, and ok() is false from then on:
// such a frame must not be sent.
class Writer {
 public:
  // The positions where a section of tagged fields and its open field start.
  struct Tags {
    size_t count_at = 0;
    size_t field_at = 0;
  };

  Writer() = default;
  explicit Writer(size_t capacity) { reserve(capacity); }
  Writer(Writer&& other) noexcept { swap(other); }
  Writer& operator=(Writer&& other) noexcept {
    swap(other);
    return *this;
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { std::free(data_); }

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool ok() const { return ok_; }
  void clear() {
    size_ = 0;
    ok_ = true;
  }
  void swap(Writer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(ok_, other.ok_);
  }
  void reserve(size_t capacity) {
    if (capacity > capacity_) grow(capacity - size_);
  }

  void write_bool(bool v) { write_fixed<uint8_t>(v ? 1 : 0); }
  void write_int8(int8_t v) { write_fixed(static_cast<uint8_t>(v)); }
  void write_int16(int16_t v) { write_fixed(static_cast<uint16_t>(v)); }
  void write_uint16(uint16_t v) { write_fixed(v); }
  void write_int32(int32_t v) { write_fixed(static_cast<uint32_t>(v)); }
  void write_uint32(uint32_t v) { write_fixed(v); }
  void write_int64(int64_t v) { write_fixed(static_cast<uint64_t>(v)); }
  void write_float64(double v) {
    uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    write_fixed(bits);
  }
  void write_uuid(const Uuid& v) {
    write_fixed(v.high);
    write_fixed(v.low);
  }
  void write_uvarint(uint32_t v) {
    uint8_t* p = room(5);
    uint8_t* const first = p;
    for (; v >= 0x80; v >>= 7) *p++ = static_cast<uint8_t>(v | 0x80);
    *p++ = static_cast<uint8_t>(v);
    size_ += static_cast<size_t>(p - first);
  }
  void write_raw(const void* bytes, size_t length) {
    if (length == 0) return;
    std::memcpy(room(length), bytes, length);
    size_ += length;
  }

  void write_string(const std::string& v, bool flexible) {
    if (v.size() > MAX_STRING_BYTES) {
      ok_ = false;
      return write_string(std::string(), flexible);
    }
    if (flexible) {
      write_uvarint(static_cast<uint32_t>(v.size()) + 1);
    } else {
      write_int16(static_cast<int16_t>(v.size()));
    }
    write_raw(v.data(), v.size());
  }
  // If this version does not allow null, writes null as empty; can_encode() of the message reports it beforehand.
  void write_nullable_string(const NullableString& v, bool flexible, bool nullable) {
    if (!v.is_null || !nullable) return write_string(v.value, flexible);
    if (flexible) {
      write_uvarint(0);
    } else {
      write_int16(-1);
    }
  }
  void write_bytes(const std::string& v, bool flexible) {
    write_length(v.size(), flexible);
    write_raw(v.data(), v.size());
  }
  void write_nullable_bytes(const NullableString& v, bool flexible, bool nullable) {
    if (v.is_null && nullable) return write_null(flexible);
    write_bytes(v.value, flexible);
  }
  void write_view(const BytesView& v, bool flexible, bool nullable) {
    if (v.is_null() && nullable) return write_null(flexible);
    size_t length = v.is_null() ? 0 : static_cast<size_t>(v.length);
    write_length(length, flexible);
    write_raw(v.data, length);
  }

  // Writes the length of bytes or the count of an array.
  void write_length(size_t length, bool flexible) {
    if (length >= INT32_MAX) {
      ok_ = false;
      length = 0;
    }
    if (flexible) {
      write_uvarint(static_cast<uint32_t>(length) + 1);
    } else {
      write_int32(static_cast<int32_t>(length));
    }
  }
  void write_null(bool flexible) {
    if (flexible) {
      write_uvarint(0);
    } else {
      write_int32(-1);
    }
  }
  template <class T>
  void write_structs(const std::vector<T>& v, int16_t version, bool flexible) {
    write_length(v.size(), flexible);
    for (const T& element : v) element.encode(*this, version);
  }
  template <class T>
  void write_structs(const Nullable<std::vector<T>>& v, int16_t version, bool flexible, bool nullable) {
    if (v.is_null && nullable) return write_null(flexible);
    write_structs(v.value, version, flexible);
  }
  template <class T>
  void write_integers(const std::vector<T>& v, bool flexible) {
    write_length(v.size(), flexible);
    uint8_t* p = room(v.size() * sizeof(T));
    for (T element : v) {
      store_big_endian(p, static_cast<std::make_unsigned_t<T>>(element));
      p += sizeof(T);
    }
    size_ += v.size() * sizeof(T);
  }
  template <class T>
  void write_integers(const Nullable<std::vector<T>>& v, bool flexible, bool nullable) {
    if (v.is_null && nullable) return write_null(flexible);
    write_integers(v.value, flexible);
  }
  void write_integers(const Int32Array& v, bool flexible) {
    write_length(v.size(), flexible);
    write_raw(v.data(), v.size() * sizeof(int32_t));
  }
  void write_strings(const std::vector<std::string>& v, bool flexible) {
    write_length(v.size(), flexible);
    for (const std::string& element : v) write_string(element, flexible);
  }
  void write_strings(const Nullable<std::vector<std::string>>& v, bool flexible, bool nullable) {
    if (v.is_null && nullable) return write_null(flexible);
    write_strings(v.value, flexible);
  }
  template <class T>
  void write_nullable_struct(const Nullable<T>& v, int16_t version, bool nullable) {
    if (nullable) write_int8(v.is_null ? -1 : 1);
    if (!v.is_null || !nullable) v.value.encode(*this, version);
  }

  // Writes a section of tagged fields: call begin_tags, then begin_tag … end_tag for each field in the order of tags.
  // The count and the sizes are patched in afterwards, so that no field is encoded twice.
  Tags begin_tags() {
    Tags tags;
    tags.count_at = size_;
    write_fixed<uint8_t>(0);
    return tags;
  }
  void begin_tag(Tags& tags, uint32_t tag) {
    ++data_[tags.count_at];  // the generator refuses a struct of 128 tags or more
    write_uvarint(tag);
    tags.field_at = size_;
    write_fixed<uint8_t>(0);
  }
  void end_tag(const Tags& tags) {
    size_t length = size_ - tags.field_at - 1;
    size_t prefix = 1;
    for (size_t rest = length; rest >= 0x80; rest >>= 7) ++prefix;
    if (prefix > 1) {
      room(prefix - 1);
      std::memmove(data_ + tags.field_at + prefix, data_ + tags.field_at + 1, length);
    }
    size_ = tags.field_at;
    write_uvarint(static_cast<uint32_t>(length));
    size_ += length;
  }

  // Overwrites four bytes already written, because the size of a frame is known only at its end.
  void patch_int32(size_t at, int32_t v) { store_big_endian(data_ + at, static_cast<uint32_t>(v)); }

 private:
  uint8_t* room(size_t n) {
    if (__builtin_expect(capacity_ - size_ < n || !data_, 0)) grow(n);
    return data_ + size_;
  }
  template <class U>
  void write_fixed(U v) {
    store_big_endian(room(sizeof(U)), v);
    size_ += sizeof(U);
  }
  __attribute__((noinline, cold)) void grow(size_t n) {
    size_t capacity = capacity_ < 128 ? 256 : capacity_ * 2;
    if (capacity < size_ + n) capacity = size_ + n;
    auto* p = static_cast<uint8_t*>(std::realloc(data_, capacity));
    if (!p) throw std::bad_alloc();
    data_ = p;
    capacity_ = capacity;
  }

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool ok_ = true;
};

}  // namespace kc
