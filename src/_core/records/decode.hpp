// Owns: the data that a decode job keeps between slices. thread: the one that runs the job (N or A), one at a time.
// Never: holds logic (batch_decoder.pyx does).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "records/columns.hpp"

namespace kc {

struct AbortedTransaction {
  int64_t producer_id;
  int64_t first_offset;
};

enum DecodeResult : int {
  DECODE_DONE = 0,     // everything of this partition is in columns (or skipped)
  DECODE_MORE = 1,     // the byte budget is spent: call again
  DECODE_FULL = 2,     // `columns` is full: publish it, set a fresh one, call again
  DECODE_ERROR = 3,    // `status` says what; records before the bad batch are in columns
  DECODE_WAIT = 4,     // another thread is inflating the batch at hand: call again when it has
};

struct Inflater;  // a codec's stream, owned by compression.pyx
class InflateAhead;

enum DecodeStage : int {
  STAGE_BEGIN = 0,    // before the first batch
  STAGE_BATCH,        // `position` is at the start of a batch
  STAGE_CRC,          // summing the batch's bytes
  STAGE_AWAIT,        // its records may have been inflated already
  STAGE_INFLATE,      // inflating its records
  STAGE_RECORDS,      // walking its records
  STAGE_FINISHED,
  STAGE_FAILED,
};

// Header of the batch (or v0/v1 message) that the job is in, and where its records lie.
struct BatchState {
  size_t begin = 0;              // in job.data
  size_t end = 0;
  size_t body = 0;               // where the (compressed) records begin
  int64_t base_offset = 0;       // v0/v1: offset of the message; of a wrapper, the offset of its last inner message
  int64_t last_offset = 0;
  int64_t base_timestamp = -1;   // v0/v1: the message's own timestamp
  int64_t max_timestamp = -1;
  int64_t producer_id = -1;
  int64_t inner_base = 0;        // what is added to an inner message's offset (v1)
  int64_t previous_offset = -1;  // v0/v1: offset of the inner message before
  int32_t leader_epoch = -1;
  int32_t count = 0;             // v2: records claimed
  int32_t previous_delta = -1;   // v2: offset delta of the record before
  uint32_t crc = 0;              // claimed
  int8_t magic = 0;
  int8_t codec = 0;
  int8_t timestamp_type = 0;
  bool control = false;
  bool transactional = false;
  Block* block = nullptr;        // what the plain records lie in: job.block, job.ready or the inflater's
  size_t records_end = 0;        // their end in `block`; record_position is where the walk is
};

// One partition's records of one Fetch response.
struct DecodeJob {
  // set by the caller
  BlockPool* pool = nullptr;
  Block* block = nullptr;             // what `data` lies in; a reference is held by the job
  const uint8_t* data = nullptr;
  size_t length = 0;
  void* partition = nullptr;          // the tag written into Run::partition
  int64_t fetch_offset = 0;           // records below it are dropped (a batch may begin before it)
  bool check_crcs = true;
  bool read_committed = false;
  std::vector<AbortedTransaction> aborted;  // of this partition, sorted by first_offset: see add_aborted
  size_t max_inflated_bytes = 0;      // refuse a batch that inflates beyond this (0: no bound)
  int32_t max_record_headers = INT32_MAX;  // refuse a record with more
  Columns* columns = nullptr;         // where to append; borrowed
  InflateAhead* ahead = nullptr;      // what others inflate of it meanwhile, or nullptr; a reference is held by the job

  // results so far
  int64_t next_offset = 0;            // where the next fetch begins: past all that was seen, visible or not
  int32_t last_leader_epoch = -1;     // partitionLeaderEpoch of the last batch seen
  int32_t read_leader_epoch = -1;     // of the last batch that next_offset has passed, or stands in; set by the caller
  int64_t records = 0;                // appended
  int64_t bytes = 0;                  // of keys and values appended
  size_t incomplete_batch_bytes = 0;  // size of a batch cut off by the end of the data, if it is the first one
  Status status;
  int64_t error_offset = -1;          // first offset of the batch that failed
  int64_t error_next_offset = -1;     // where reading can go on, or -1 when that is not known
  bool error_is_permanent = false;    // the failed batch is as it was written: fetching it again changes nothing

  // between slices, private to the decoder
  int stage = STAGE_BEGIN;
  size_t position = 0;
  BatchState batch;
  uint32_t crc = 0;                   // of the batch's bytes up to crc_position
  size_t crc_position = 0;
  std::vector<int64_t> open_aborts;   // producer ids with an abort in force
  size_t next_aborted = 0;
  Inflater* inflater = nullptr;
  Block* ready = nullptr;             // a reference: the batch at hand was inflated ahead
  int32_t batch_record = 0;           // next record within the current batch
  size_t record_position = 0;         // its place in batch.block
  Columns* run_columns = nullptr;     // where the job's latest run is, never dereferenced
  size_t run_index = 0;

  // A broker lists them in the order in which they ended.
  void add_aborted(AbortedTransaction transaction) {
    aborted.insert(std::upper_bound(aborted.begin(), aborted.end(), transaction,
                                    [](const AbortedTransaction& a, const AbortedTransaction& b) {
                                      return a.first_offset < b.first_offset;
                                    }),
                   transaction);
  }
};

}  // namespace kc
