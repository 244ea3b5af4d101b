// Owns: the member id that a consumer makes for itself (KIP-1082), and the text form of Kafka's uuids.
// Threads: any. Never: asks the interpreter for randomness; the system gives it.
#pragma once
#include <sys/random.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "protocol/types.hpp"

namespace kc {

// Sixteen bytes in URL-safe base64 without padding: 22 characters, Kafka's text form of uuids.
inline std::string uuid_text(const Uuid& id) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  uint8_t bytes[18] = {0};
  for (int i = 0; i < 8; i++) {
    bytes[i] = static_cast<uint8_t>(id.high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<uint8_t>(id.low >> (56 - 8 * i));
  }
  std::string text;
  for (int i = 0; i < 18; i += 3) {
    uint32_t three = (uint32_t{bytes[i]} << 16) | (uint32_t{bytes[i + 1]} << 8) | bytes[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6) text.push_back(digits[(three >> shift) & 63]);
  }
  text.resize(22);
  return text;
}

// A random uuid (version 4). As in Kafka: not one of the reserved ids, which are small numbers, and not one that begins
// with a dash, which command lines take for an option. Empty if the system has no random bytes.
inline std::string make_member_id() {
  for (;;) {
    Uuid id;
    if (getentropy(&id.high, sizeof id.high) != 0 || getentropy(&id.low, sizeof id.low) != 0) return std::string();
    id.high = (id.high & ~uint64_t{0xf000}) | 0x4000;
    id.low = (id.low & ~(uint64_t{3} << 62)) | (uint64_t{2} << 62);
    std::string text = uuid_text(id);
    if (text[0] != '-') return text;
  }
}

}  // namespace kc
