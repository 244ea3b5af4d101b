// Owns: Inflater, one codec stream with its library contexts, which are expensive and reused for many batches.
// Threads: an Inflater belongs to the decode job that took it. Never: contains logic (compression.pxi does).
#pragma once
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <string>

#include "records/columns.hpp"

namespace kc {

constexpr char kXerialMagic[] = "\x82SNAPPY";   // of the Java client's snappy framing; includes the NUL
constexpr uint32_t kXerialAgain = 0x82534e41;   // a repeated framing header between blocks
constexpr uint32_t kLz4Magic = 0x184d2204;

struct Inflater {
  // the input
  int codec = 0;
  int magic = 2;
  const uint8_t* next_in = nullptr;
  size_t in_left = 0;
  size_t ahead = 0;              // bytes of the job after the input
  size_t limit = 0;              // maximum number of inflated bytes
  bool framed = false;           // snappy with the Java client's framing
  uint8_t header[32];            // lz4: a frame header with a corrected checksum, the input before the other bytes
  size_t header_size = 0;
  size_t header_fed = 0;
  std::string detail;            // after an error: codec and cause
  bool out_of_memory = false;

  // the output: consecutive batches go to one block while it has room
  BlockPool* pool = nullptr;
  Block* block = nullptr;
  size_t begin = 0;              // start of the current batch in `block`
  size_t at = 0;                 // end of the output so far

  z_stream gzip{};
  bool gzip_ready = false;
  ZSTD_DCtx* zstd = nullptr;
  LZ4F_dctx* lz4 = nullptr;

  Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (gzip_ready) inflateEnd(&gzip);
    if (zstd) ZSTD_freeDCtx(zstd);
    if (lz4) LZ4F_freeDecompressionContext(lz4);
  }
};

}  // namespace kc
