// Owns: what the scanners of values say of texts that follow from a seed, printed, so that two builds can be compared.
// Threads: one. Never: judges.
#include <cstdio>
#include <cstring>

#include "values/byte_scan.hpp"

namespace {

uint64_t state = 1;

uint32_t next_number(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state >> 33) % below;
}

// Mostly letters; what ends a string, and parts of characters of up to four bytes.
uint8_t next_byte() {
  static const uint8_t kOdd[] = {'"', '\\', 0, 0x1f, 0x20, 0x7f, 0x80, 0xbf, 0xc2, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0xff};
  return next_number(4) ? static_cast<uint8_t>('a' + next_number(26)) : kOdd[next_number(sizeof(kOdd))];
}

}  // namespace

int main() {
  uint8_t text[96], copy[96];
  static const char* const kCharacters[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
  for (int32_t round = 0; round < 200000; ++round) {
    const uint32_t length = next_number(64);
    memset(text, 0, sizeof(text));
    if (round % 2) {
      for (uint32_t i = 0; i < length; ++i) text[i] = next_byte();
    } else {
      for (uint32_t i = 0; i < length;) {
        const char* one = kCharacters[next_number(4)];
        memcpy(text + i, one, strlen(one));
        i += static_cast<uint32_t>(strlen(one));
      }
    }
    const kc::StringScan scan = kc::scan_string(text, copy);
    const bool copied = memcmp(text, copy, static_cast<size_t>(scan.plain)) == 0;
    printf("%d%d%d%d%d%d%d\n", scan.plain, scan.high, copied, kc::is_ascii_16(text, length % 17), kc::is_ascii(text, length),
           kc::is_text(text, length), kc::valid_utf8(text, length));
  }
}
