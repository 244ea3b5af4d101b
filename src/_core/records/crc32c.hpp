// Owns: CRC32C (Castagnoli), with the CPU's instruction if it has one; the choice is made once, when the module loads.
// Threads: any (pure functions over constant tables). Never: needs compile flags beyond the baseline, or alignment.
//
// The instruction has a latency of three cycles and a throughput of one per cycle. So the code computes the CRCs of
// three stretches in parallel and joins them with a table that advances a CRC over kStretch zero bytes. The stretches
// are short, so that the CPU sees one sequential stream of reads and prefetches it. This doubles the speed if the bytes
// are not in a cache. Where the CPU can fold (crc32c_fold.hpp), the instruction is for short and remaining bytes only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "records/crc32c_fold.hpp"

#if defined(__x86_64__)
#include <nmmintrin.h>
#define KC_CRC32C_TARGET __attribute__((target("sse4.2")))
#elif defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__))
#if defined(__APPLE__)
#include <sys/sysctl.h>
#else
#include <sys/auxv.h>
#endif
#if defined(__clang__)
#define KC_CRC32C_TARGET __attribute__((target("crc")))
#else
#define KC_CRC32C_TARGET __attribute__((target("+crc")))
#endif
#endif

namespace kc {
namespace crc32c_detail {

constexpr size_t kStretch = 256;

struct Tables {
  uint32_t bytes[8][256];           // slice-by-8
  uint32_t skip[4][256];            // advances a CRC over kStretch zero bytes

  Tables() {
    for (uint32_t n = 0; n < 256; n++) {
      uint32_t crc = n;
      for (int k = 0; k < 8; k++) crc = crc & 1 ? (crc >> 1) ^ kPolynomial : crc >> 1;
      bytes[0][n] = crc;
    }
    for (uint32_t n = 0; n < 256; n++)
      for (int k = 1; k < 8; k++) bytes[k][n] = (bytes[k - 1][n] >> 8) ^ bytes[0][bytes[k - 1][n] & 0xff];
    fill_skip();
  }

  // Advancing a CRC is linear, so a table entry for each byte of the CRC is enough.
  void fill_skip() {
    uint32_t bits[32];
    for (int b = 0; b < 32; b++) {
      uint32_t crc = uint32_t(1) << b;
      for (size_t i = 0; i < kStretch; i++) crc = (crc >> 8) ^ bytes[0][crc & 0xff];
      bits[b] = crc;
    }
    for (int part = 0; part < 4; part++)
      for (uint32_t n = 0; n < 256; n++) {
        uint32_t crc = 0;
        for (int b = 0; b < 8; b++)
          if (n >> b & 1) crc ^= bits[part * 8 + b];
        skip[part][n] = crc;
      }
  }
};

inline const Tables tables;

inline uint64_t load64(const uint8_t* p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

// `crc` is the inverted CRC of the bytes before `p`.
inline uint32_t extend_portable(uint32_t crc, const uint8_t* p, size_t n) {
  const auto& t = tables.bytes;
  while (n >= 8) {
    uint32_t a = crc ^ (p[0] | uint32_t(p[1]) << 8 | uint32_t(p[2]) << 16 | uint32_t(p[3]) << 24);
    crc = t[7][a & 0xff] ^ t[6][a >> 8 & 0xff] ^ t[5][a >> 16 & 0xff] ^ t[4][a >> 24] ^ t[3][p[4]] ^ t[2][p[5]] ^
          t[1][p[6]] ^ t[0][p[7]];
    p += 8;
    n -= 8;
  }
  while (n--) crc = (crc >> 8) ^ t[0][(crc ^ *p++) & 0xff];
  return crc;
}

#ifdef KC_CRC32C_TARGET

inline uint32_t skip(uint32_t crc) {
  const auto& t = tables.skip;
  return t[0][crc & 0xff] ^ t[1][crc >> 8 & 0xff] ^ t[2][crc >> 16 & 0xff] ^ t[3][crc >> 24];
}

#if defined(__x86_64__)
KC_CRC32C_TARGET inline uint64_t step8(uint64_t crc, uint64_t v) { return _mm_crc32_u64(crc, v); }
KC_CRC32C_TARGET inline uint32_t step1(uint32_t crc, uint8_t v) { return _mm_crc32_u8(crc, v); }
inline bool hardware_present() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2");
}
#else
KC_CRC32C_TARGET inline uint64_t step8(uint64_t crc, uint64_t v) {
  uint32_t out;
  __asm__("crc32cx %w0, %w1, %x2" : "=r"(out) : "r"(static_cast<uint32_t>(crc)), "r"(v));
  return out;
}
KC_CRC32C_TARGET inline uint32_t step1(uint32_t crc, uint8_t v) {
  uint32_t out;
  __asm__("crc32cb %w0, %w1, %w2" : "=r"(out) : "r"(crc), "r"(static_cast<uint32_t>(v)));
  return out;
}
inline bool hardware_present() {
#if defined(__APPLE__)
  int has = 0;
  size_t size = sizeof(has);
  return sysctlbyname("hw.optional.armv8_crc32", &has, &size, nullptr, 0) == 0 && has;
#else
  constexpr unsigned long kHwcapCrc32 = 1ul << 7;
  return getauxval(AT_HWCAP) & kHwcapCrc32;
#endif
}
#endif

KC_CRC32C_TARGET inline uint32_t three_ways(uint32_t crc, const uint8_t* p) {
  uint64_t a = crc, b = 0, c = 0;
  const uint8_t* end = p + kStretch;
  for (; p < end; p += 8) {
    a = step8(a, load64(p));
    b = step8(b, load64(p + kStretch));
    c = step8(c, load64(p + 2 * kStretch));
  }
  a = skip(static_cast<uint32_t>(a)) ^ b;
  return skip(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(c);
}

KC_CRC32C_TARGET inline uint32_t extend_hardware(uint32_t crc, const uint8_t* p, size_t n) {
  for (; n >= 3 * kStretch; p += 3 * kStretch, n -= 3 * kStretch) crc = three_ways(crc, p);
  uint64_t wide = crc;
  for (; n >= 8; p += 8, n -= 8) wide = step8(wide, load64(p));
  crc = static_cast<uint32_t>(wide);
  while (n--) crc = step1(crc, *p++);
  return crc;
}

#else

inline bool hardware_present() { return false; }
inline uint32_t extend_hardware(uint32_t crc, const uint8_t* p, size_t n) { return extend_portable(crc, p, n); }

#endif

inline const bool has_hardware = hardware_present();
inline const bool has_folding = has_hardware && folding_present();

// n >= kFoldFrom.
inline uint32_t extend_folding(uint32_t crc, const uint8_t* p, size_t n) {
  uint8_t folded[kFoldedBytes];
  size_t done = fold(crc, p, n, folded);
  return extend_hardware(extend_hardware(0, folded, sizeof folded), p + done, n - done);
}

}  // namespace crc32c_detail

// The ways to compute a CRC, each faster than the one before.
enum Crc32cWay { CRC32C_TABLES, CRC32C_INSTRUCTION, CRC32C_FOLDING };

// Returns the fastest way of this CPU.
inline Crc32cWay crc32c_way() {
  if (crc32c_detail::has_folding) return CRC32C_FOLDING;
  return crc32c_detail::has_hardware ? CRC32C_INSTRUCTION : CRC32C_TABLES;
}

// Extends `crc`, the CRC of earlier bytes, by `n` bytes. The CRC of no bytes is 0. The CPU must have `way`.
inline uint32_t crc32c_extend_by(Crc32cWay way, uint32_t crc, const uint8_t* p, size_t n) {
  if (way == CRC32C_FOLDING && n >= crc32c_detail::kFoldFrom) return ~crc32c_detail::extend_folding(~crc, p, n);
  if (way != CRC32C_TABLES) return ~crc32c_detail::extend_hardware(~crc, p, n);
  return ~crc32c_detail::extend_portable(~crc, p, n);
}

inline uint32_t crc32c_extend(uint32_t crc, const uint8_t* p, size_t n) {
  return crc32c_extend_by(crc32c_way(), crc, p, n);
}

}  // namespace kc
