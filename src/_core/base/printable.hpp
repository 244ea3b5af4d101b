// Owns: printable(), which makes text from brokers and topics safe for a terminal or a log file.
// Threads: any (a function of its argument). Never: drops a byte; escaped bytes remain readable.
//
// It escapes bytes that are not UTF-8, control characters (C0, DEL, C1), and code points that start a line or change
// the direction of text. Otherwise a broker could forge log lines or send escape sequences to a terminal.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace kc {

// Returns the length of the UTF-8 sequence at `p` and sets `code` to its code point; 0 if the sequence is not valid.
inline size_t utf8_sequence(const unsigned char* p, size_t left, uint32_t* code) {
  const unsigned char first = p[0];
  const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length == 0 || length > left) return 0;
  *code = length == 1 ? first : first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (p[i] >> 6 != 2) return 0;
    *code = *code << 6 | (p[i] & 0x3fu);
  }
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
  return *code < kLeast[length] || *code > 0x10ffff || surrogate ? 0 : length;
}

inline bool is_unprintable(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// Cuts text longer than `most` bytes and appends an ellipsis.
inline std::string printable(const std::string& text, size_t most = 4096) {
  std::string out;
  char escaped[12];
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= most) return out + "…";
    uint32_t code = 0;
    const size_t length = utf8_sequence(p + i, text.size() - i, &code);
    if (length != 0 && !is_unprintable(code)) {
      out.append(text, i, length);
    } else {
      const bool wide = length > 0 && code > 0xff;
      snprintf(escaped, sizeof escaped, wide ? "\\u%04x" : "\\x%02x", length > 0 ? code : p[i]);
      out += escaped;
    }
    i += length > 0 ? length : 1;
  }
  return out;
}

}  // namespace kc
