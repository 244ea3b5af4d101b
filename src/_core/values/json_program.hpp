// Owns: the lookup of the fields of JSON objects: first in the order of the last object, then in a hash table.
// Threads: any (immutable once made). Never: touches Python.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "values/program.hpp"

namespace kc {

// Values that the loop over an object's fields reads without a call.
enum JsonFast : int32_t { JSON_SLOW = 0, JSON_FAST_INT64, JSON_FAST_INT32, JSON_FAST_FLOAT64, JSON_FAST_TEXT };

// A key: up to 16 of its bytes, with the closing quote, are compared in one step.
struct JsonKey {
  uint64_t low = 0, high = 0;
  uint64_t low_mask = 0, high_mask = 0;
  uint32_t length = 0;      // bytes of the key and the quote
  bool is_short = false;    // at most 16 bytes
  bool with_colon = false;  // at most 15 bytes: quote and colon are part of the comparison
  uint64_t colon_low = 0, colon_high = 0, colon_low_mask = 0, colon_high_mask = 0;
  JsonFast fast = JSON_SLOW;
  std::string text;         // without the quote

  JsonKey(const std::string& name, const ValueNode& node) : text(name) {
    const std::string quoted = name + '"';
    length = static_cast<uint32_t>(quoted.size());
    for (const char c : name) {
      // JSON requires an escape for this byte, so a comparison of bytes can never match.
      if (static_cast<uint8_t>(c) < 0x20 || c == '"' || c == '\\') length = UINT32_MAX;
    }
    is_short = length <= 16;
    uint8_t bytes[16] = {}, mask[16] = {};
    for (size_t i = 0; i < quoted.size() && i < 16; ++i) {
      bytes[i] = static_cast<uint8_t>(quoted[i]);
      mask[i] = 0xff;
    }
    memcpy(&low, bytes, 8);
    memcpy(&high, bytes + 8, 8);
    memcpy(&low_mask, mask, 8);
    memcpy(&high_mask, mask + 8, 8);
    with_colon = length <= 15;
    if (with_colon) {
      bytes[length] = ':';
      mask[length] = 0xff;
      memcpy(&colon_low, bytes, 8);
      memcpy(&colon_high, bytes + 8, 8);
      memcpy(&colon_low_mask, mask, 8);
      memcpy(&colon_high_mask, mask + 8, 8);
    }
    if (node.type == VALUE_TEXT) fast = JSON_FAST_TEXT;
    if (node.type == VALUE_FLOAT && node.width == 8) fast = JSON_FAST_FLOAT64;
    if (node.type == VALUE_INT && node.is_signed && node.width == 8) fast = JSON_FAST_INT64;
    if (node.type == VALUE_INT && node.is_signed && node.width == 4) fast = JSON_FAST_INT32;
  }

  // Returns whether the key, its quote and a colon are at p.
  bool at_colon(const uint8_t* p) const {
    uint64_t a, b;
    memcpy(&a, p, 8);
    memcpy(&b, p + 8, 8);
    return with_colon && (((a ^ colon_low) & colon_low_mask) | ((b ^ colon_high) & colon_high_mask)) == 0;
  }

  // Returns whether the key and its quote are at p. The text ends at `end`; at least 16 bytes at p are readable.
  bool at(const uint8_t* p, const uint8_t* end) const {
    uint64_t a, b;
    memcpy(&a, p, 8);
    memcpy(&b, p + 8, 8);
    if ((((a ^ low) & low_mask) | ((b ^ high) & high_mask)) != 0) return false;
    if (is_short) return true;
    return length <= static_cast<size_t>(end - p) && memcmp(p + 16, text.data() + 16, text.size() - 16) == 0 &&
           p[text.size()] == '"';
  }
};

// The fields of one struct.
struct JsonFields {
  std::vector<JsonKey> keys;           // one for each child of the node, in the same order
  std::vector<int32_t> slots;          // open addressing: index into keys, or -1
  uint64_t slot_mask = 0;

  // Reads up to 8 bytes after the text.
  static uint64_t hash(const uint8_t* p, size_t length) {
    uint64_t h = length * 0x9e3779b97f4a7c15u;
    while (length >= 8) {
      uint64_t word;
      memcpy(&word, p, 8);
      h = (h ^ word) * 0xff51afd7ed558ccdu;
      h ^= h >> 32;
      p += 8;
      length -= 8;
    }
    if (length) {
      uint64_t word;
      memcpy(&word, p, 8);
      h ^= word << (64 - 8 * length);
    }
    h *= 0xff51afd7ed558ccdu;
    return h ^ h >> 29;
  }

  void build() {
    size_t size = 8;
    while (size < keys.size() * 4) size *= 2;
    slots.assign(size, -1);
    slot_mask = size - 1;
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string key = keys[i].text + std::string(8, '\0');
      uint64_t slot = hash(reinterpret_cast<const uint8_t*>(key.data()), key.size() - 8) & slot_mask;
      while (slots[slot] >= 0) slot = (slot + 1) & slot_mask;
      slots[slot] = static_cast<int32_t>(i);
    }
  }

  // Returns the field with this name, or -1.
  int32_t find(const uint8_t* p, size_t length) const {
    uint64_t slot = hash(p, length) & slot_mask;
    while (slots[slot] >= 0) {
      const std::string& key = keys[static_cast<size_t>(slots[slot])].text;
      if (key.size() == length && memcmp(key.data(), p, length) == 0) return slots[slot];
      slot = (slot + 1) & slot_mask;
    }
    return -1;
  }
};

struct JsonProgram {
  const Plan* plan = nullptr;
  std::vector<JsonFields> fields;      // by node; empty for nodes other than structs
  int32_t epoch_unit = -1;             // unit of numbers in timestamp fields, since 1970; -1: numbers are an error
  bool truncates = false;              // cut off digits of times that the unit cannot hold; false: they are an error

  JsonProgram(const Plan& p, int32_t epoch, bool truncate)
      : plan(&p), fields(p.nodes.size()), epoch_unit(epoch), truncates(truncate) {
    for (size_t i = 0; i < p.nodes.size(); ++i) {
      if (p.nodes[i].type != VALUE_STRUCT) continue;
      for (int32_t child : p.nodes[i].children)
        fields[i].keys.emplace_back(p.nodes[static_cast<size_t>(child)].name, p.nodes[static_cast<size_t>(child)]);
      fields[i].build();
    }
  }
};

}  // namespace kc
