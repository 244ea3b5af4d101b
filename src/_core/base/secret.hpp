// Owns: Secret, bytes that must not leak: passwords, tokens, and every message that contains them.
// Threads: any (a value). Never: leaves a copy of its bytes (it wipes memory before it frees it), is printed.
#pragma once
#include <openssl/crypto.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace kc {

class Secret {
 public:
  Secret() = default;
  Secret(const void* bytes, size_t length) { append(bytes, length); }
  Secret(const Secret& other) { append(other.data_, other.size_); }
  Secret(Secret&& other) noexcept { swap(other); }
  Secret& operator=(const Secret& other) {
    if (this != &other) assign(other.data_, other.size_);
    return *this;
  }
  Secret& operator=(Secret&& other) noexcept {
    if (this == &other) return *this;
    clear();
    swap(other);
    return *this;
  }
  ~Secret() { clear(); }

  const uint8_t* data() const { return data_; }
  uint8_t* data() { return data_; }
  const char* text() const { return reinterpret_cast<const char*>(data_); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  uint8_t operator[](size_t i) const { return data_[i]; }

  void clear() {
    if (data_) {
      OPENSSL_cleanse(data_, capacity_);
      std::free(data_);
    }
    data_ = nullptr;
    size_ = capacity_ = 0;
  }
  void assign(const void* bytes, size_t length) {
    clear();
    append(bytes, length);
  }
  // Makes `length` zero bytes, which the caller fills.
  void resize(size_t length) {
    clear();
    reserve(length);
    std::memset(data_, 0, length);
    size_ = length;
  }
  Secret& append(const void* bytes, size_t length) {
    if (length == 0) return *this;
    if (size_ + length > capacity_) reserve(size_ + length + size_ / 2);
    std::memcpy(data_ + size_, bytes, length);
    size_ += length;
    return *this;
  }
  Secret& append(const char* text) { return append(text, std::strlen(text)); }
  Secret& append(const std::string& text) { return append(text.data(), text.size()); }
  Secret& append(const Secret& other) { return append(other.data_, other.size_); }
  bool contains(char byte) const { return size_ != 0 && std::memchr(data_, byte, size_) != nullptr; }

  void swap(Secret& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    auto* grown = static_cast<uint8_t*>(std::malloc(capacity));
    if (!grown) throw std::bad_alloc();
    const size_t kept = size_;
    if (kept) std::memcpy(grown, data_, kept);
    clear();
    data_ = grown;
    size_ = kept;
    capacity_ = capacity;
  }

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace kc
