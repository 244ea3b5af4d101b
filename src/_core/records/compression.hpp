// Owns: Inflater, one codec stream with its library contexts (expensive to make, reused from batch to batch).
// Threads: an Inflater belongs to the decode job that took it. Never: holds logic (compression.pyx does).
#pragma once
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <string>

#include "records/columns.hpp"

namespace kc {

constexpr char kXerialMagic[] = "\x82SNAPPY";   // the Java client's snappy framing; the NUL belongs to it
constexpr uint32_t kXerialAgain = 0x82534e41;   // the framing header once more, between blocks
constexpr uint32_t kLz4Magic = 0x184d2204;

struct Inflater {
  // what is inflated
  int codec = 0;
  int magic = 2;
  const uint8_t* next_in = nullptr;
  size_t in_left = 0;
  size_t ahead = 0;              // bytes of the job after them
  size_t limit = 0;              // most bytes that may come out
  bool framed = false;           // snappy in the Java client's framing
  uint8_t header[32];            // lz4: a frame header with its checksum corrected, fed before the rest
  size_t header_size = 0;
  size_t header_fed = 0;
  std::string detail;            // codec and cause after a failure
  bool out_of_memory = false;

  // where it goes: batch after batch into one block while there is room
  BlockPool* pool = nullptr;
  Block* block = nullptr;
  size_t begin = 0;              // of the current batch in block
  size_t at = 0;                 // end of what came out so far

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
