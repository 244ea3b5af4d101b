// Owns: the value types of Kafka's wire format that C++ does not have: nullable values, uuid, views of bytes and
// integers; and the byte order of integers.
// Threads: any (values). Never: allocates more than the size of its argument, knows a message.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kc {

template <class U>
inline U load_big_endian(const uint8_t* p) {
  U v;
  std::memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if constexpr (sizeof v == 2) v = __builtin_bswap16(v);
  if constexpr (sizeof v == 4) v = __builtin_bswap32(v);
  if constexpr (sizeof v == 8) v = __builtin_bswap64(v);
#endif
  return v;
}

template <class U>
inline void store_big_endian(uint8_t* p, U v) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if constexpr (sizeof v == 2) v = __builtin_bswap16(v);
  if constexpr (sizeof v == 4) v = __builtin_bswap32(v);
  if constexpr (sizeof v == 8) v = __builtin_bswap64(v);
#endif
  std::memcpy(p, &v, sizeof v);
}

enum Presence { PRESENT };

// A value that can be null on the wire. `value` is empty while `is_null`.
template <class T>
struct Nullable {
  T value{};
  bool is_null = true;
  Nullable() = default;
  explicit Nullable(Presence) : is_null(false) {}
  explicit Nullable(T v) : value(std::move(v)), is_null(false) {}
  void set(const T& v) {
    value = v;
    is_null = false;
  }
  void set_null() {
    value = T{};
    is_null = true;
  }
  // Returns `value`, for the caller to fill in place.
  T& set_present() {
    is_null = false;
    return value;
  }
};

using NullableString = Nullable<std::string>;

struct Uuid {
  uint64_t high = 0;
  uint64_t low = 0;
  Uuid() = default;
  Uuid(uint64_t h, uint64_t l) : high(h), low(l) {}
  bool is_zero() const { return (high | low) == 0; }
  bool operator==(const Uuid& o) const { return high == o.high && low == o.low; }
  bool operator!=(const Uuid& o) const { return !(*this == o); }
  bool operator<(const Uuid& o) const { return high != o.high ? high < o.high : low < o.low; }
};

// A view of bytes in the receive buffer: valid while the buffer of the Reader is.
struct BytesView {
  const uint8_t* data = nullptr;
  int32_t length = -1;  // -1: null
  bool is_null() const { return length < 0; }
};

// Integers in wire format. An array from a Reader is a view, valid while the Reader's bytes are; a copy would be
// expensive, because a response can have a million partitions with three such arrays each. An array from a vector has
// its own bytes.
class Int32Array {
 public:
  Int32Array() = default;
  Int32Array(const uint8_t* bytes, uint32_t count) : bytes_(bytes), count_(count) {}
  explicit Int32Array(const std::vector<int32_t>& values) : count_(static_cast<uint32_t>(values.size())), owned_(true) {
    auto* bytes = new uint8_t[size() * sizeof(int32_t)];
    for (size_t i = 0; i < size(); ++i) store_big_endian(bytes + i * sizeof(int32_t), static_cast<uint32_t>(values[i]));
    bytes_ = bytes;
  }
  Int32Array(const Int32Array& other) { *this = other.owned_ ? Int32Array(other.values()) : Int32Array(other.bytes_, other.count_); }
  Int32Array(Int32Array&& other) noexcept { swap(other); }
  Int32Array& operator=(Int32Array other) noexcept {
    swap(other);
    return *this;
  }
  ~Int32Array() {
    if (owned_) delete[] bytes_;
  }

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  void clear() { *this = Int32Array(); }
  const uint8_t* data() const { return bytes_; }
  int32_t at(size_t i) const { return static_cast<int32_t>(load_big_endian<uint32_t>(bytes_ + i * sizeof(int32_t))); }
  std::vector<int32_t> values() const {
    std::vector<int32_t> out(size());
    for (size_t i = 0; i < size(); ++i) out[i] = at(i);
    return out;
  }

 private:
  void swap(Int32Array& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(count_, other.count_);
    std::swap(owned_, other.owned_);
  }
  const uint8_t* bytes_ = nullptr;
  uint32_t count_ = 0;
  bool owned_ = false;
};

// How many brokers, topics and partitions a Metadata response may list. Kafka's limits are far lower. Without these
// limits a broker could make the consumer allocate any amount of memory.
constexpr int64_t MAX_BROKERS = 10'000;
constexpr int64_t MAX_TOPICS = 1'000'000;
constexpr int64_t MAX_PARTITIONS = 2'000'000;  // of all topics together

}  // namespace kc

template <>
struct std::hash<kc::Uuid> {
  size_t operator()(const kc::Uuid& u) const noexcept {
    return static_cast<size_t>(u.high ^ (u.low * 0x9E3779B97F4A7C15ull));
  }
};
