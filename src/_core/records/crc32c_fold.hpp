// Owns: the folding of many bytes into 64 bytes with the same CRC32C, by carry-less multiplication (AVX-512).
// Threads: any (pure functions). Never: reads past the last byte, runs on a CPU without the instructions.
//
// The CRC instruction takes 8 bytes per cycle. Folding takes more than twice as many if the bytes are in a cache of the
// core. Fetched bytes mostly are not: then the memory sets the speed, and folding saves little.
//
// Bits are reflected: bit 0 of a byte is the coefficient of the highest power. 16 bytes are L x^64 + H, where L are the
// first 8 bytes. To move them over a distance of D bits, modulo the polynomial, is
//   L (x^(D+63) mod P) x  +  H (x^(D-1) mod P) x,
// and the product of two reflected numbers has the factor x already.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define KC_CRC32C_FOLDS 1
#define KC_FOLD_TARGET __attribute__((target("avx512f,vpclmulqdq,pclmul")))
#endif

namespace kc {
namespace crc32c_detail {

constexpr uint32_t kPolynomial = 0x82f63b78;  // in reflected form
constexpr size_t kFoldedBytes = 64;
constexpr size_t kFoldFrom = 512;  // with fewer bytes its start and its end take most of the time

#ifdef KC_CRC32C_FOLDS

// Returns x^n modulo the polynomial, as a reflected number of 64 bits.
constexpr uint64_t power_of_x(size_t n) {
  uint32_t r = 0x80000000;
  while (n--) r = r & 1 ? (r >> 1) ^ kPolynomial : r >> 1;
  return uint64_t(r) << 32;
}

inline bool folding_present() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul");
}

// The factors for a distance of kBytes.
template <size_t kBytes>
KC_FOLD_TARGET inline __m512i factors() {
  constexpr long long kFirst = static_cast<long long>(power_of_x(8 * kBytes + 63));
  constexpr long long kSecond = static_cast<long long>(power_of_x(8 * kBytes - 1));
  return _mm512_set_epi64(kSecond, kFirst, kSecond, kFirst, kSecond, kFirst, kSecond, kFirst);
}

// Moves `a` over the distance of `by` and adds it to `b`.
KC_FOLD_TARGET inline __m512i moved(__m512i a, __m512i by, __m512i b) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(a, by, 0x00), _mm512_clmulepi64_epi128(a, by, 0x11), b,
                                   kXorOfThree);
}

// Folds as many of n >= kFoldFrom bytes as it can into `folded`, together with `crc`, the inverted CRC of the bytes
// before `p`. Returns the number of these bytes. Their CRC is that of `folded` alone.
KC_FOLD_TARGET inline size_t fold(uint32_t crc, const uint8_t* p, size_t n, uint8_t* folded) {
  const uint8_t* begin = p;
  const uint8_t* end = p + n;
  const __m512i far = factors<4 * kFoldedBytes>(), near = factors<kFoldedBytes>();
  __m512i a = _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  __m512i b = _mm512_loadu_si512(p + 64), c = _mm512_loadu_si512(p + 128), d = _mm512_loadu_si512(p + 192);
  // Four independent chains hide the latency of the multiplication.
  for (p += 256; end - p >= 256; p += 256) {
    a = moved(a, far, _mm512_loadu_si512(p));
    b = moved(b, far, _mm512_loadu_si512(p + 64));
    c = moved(c, far, _mm512_loadu_si512(p + 128));
    d = moved(d, far, _mm512_loadu_si512(p + 192));
  }
  d = moved(moved(moved(a, near, b), near, c), near, d);
  for (; end - p >= 64; p += 64) d = moved(d, near, _mm512_loadu_si512(p));
  _mm512_storeu_si512(folded, d);
  return static_cast<size_t>(p - begin);
}

#else

inline bool folding_present() { return false; }
inline size_t fold(uint32_t, const uint8_t*, size_t, uint8_t*) { return 0; }

#endif

}  // namespace crc32c_detail
}  // namespace kc
