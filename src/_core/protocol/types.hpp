// Owns: the value types that Kafka's wire format has and C++ has not: nullable values, uuid, a view of bytes.
// Threads: any (values). Never: allocates beyond what it is given, knows a message.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace kc {

enum Presence { PRESENT };

// A value that the wire may carry as null. `value` is empty while `is_null`.
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
  // For filling `value` in place.
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

// Bytes that stay where they were received: valid as long as the buffer the Reader was given.
struct BytesView {
  const uint8_t* data = nullptr;
  int32_t length = -1;  // -1: null
  bool is_null() const { return length < 0; }
};

}  // namespace kc

template <>
struct std::hash<kc::Uuid> {
  size_t operator()(const kc::Uuid& u) const noexcept {
    return static_cast<size_t>(u.high ^ (u.low * 0x9E3779B97F4A7C15ull));
  }
};
