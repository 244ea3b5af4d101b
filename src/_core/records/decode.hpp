// Owns: the data that a decode job keeps between slices. thread: the thread that runs the job (N or A), one at a time.
// Never: contains logic (batch_decoder.pxi does).
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
  DECODE_DONE = 0,     // all records of this partition are in `columns` or skipped
  DECODE_MORE = 1,     // the byte budget is used up: call again
  DECODE_FULL = 2,     // `columns` is full: publish it, set new columns, call again
  DECODE_ERROR = 3,    // `status` has the reason; the records before the bad batch are in `columns`
  DECODE_WAIT = 4,     // another thread is inflating the current batch: call again after it has finished
};

struct Inflater;  // a codec's stream, owned by compression.pxi
class InflateAhead;

enum DecodeStage : int {
  STAGE_BEGIN = 0,    // before the first batch
  STAGE_BATCH,        // `position` is at the start of a batch
  STAGE_CRC,          // computing the CRC of the batch's bytes
  STAGE_AWAIT,        // another thread may be inflating its records
  STAGE_INFLATE,      // inflating its records
  STAGE_RECORDS,      // walking its records
  STAGE_FINISHED,
  STAGE_FAILED,
};

// The header of the current batch (or v0/v1 message) and the location of its records.
struct BatchState {
  size_t begin = 0;              // position in job.data
  size_t end = 0;
  size_t body = 0;               // start of the (compressed) records
  int64_t base_offset = 0;       // v0/v1: offset of the message; of a wrapper, the offset of its last inner message
  int64_t last_offset = 0;
  int64_t base_timestamp = -1;   // v0/v1: the message's own timestamp
  int64_t max_timestamp = -1;
  int64_t producer_id = -1;
  int64_t inner_base = 0;        // v1: added to the offset of each inner message
  int64_t previous_offset = -1;  // v0/v1: offset of the previous inner message
  int32_t leader_epoch = -1;
  int32_t count = 0;             // v2: record count in the header
  int32_t previous_delta = -1;   // v2: offset delta of the previous record
  uint32_t crc = 0;              // the CRC in the header
  int8_t magic = 0;
  int8_t codec = 0;
  int8_t timestamp_type = 0;
  bool control = false;
  bool transactional = false;
  Block* block = nullptr;        // has the uncompressed records: job.block, job.ready or the inflater's block
  size_t records_end = 0;        // end of the records in `block`; record_position is the position of the walk
};

// The records of one partition in one Fetch response.
struct DecodeJob {
  // set by the caller
  BlockPool* pool = nullptr;
  Block* block = nullptr;             // contains `data`; the job holds a reference
  const uint8_t* data = nullptr;
  size_t length = 0;
  void* partition = nullptr;          // copied to Run::partition
  int64_t fetch_offset = 0;           // skip records below it (a batch can begin before it)
  bool check_crcs = true;
  bool read_committed = false;
  std::vector<AbortedTransaction> aborted;  // of this partition, sorted by first_offset: see add_aborted
  size_t max_inflated_bytes = 0;      // refuse a batch that inflates to more bytes (0: no limit)
  int32_t max_record_headers = INT32_MAX;  // refuse a record with more headers
  Columns* columns = nullptr;         // the output; borrowed
  InflateAhead* ahead = nullptr;      // the batches that other threads inflate, or nullptr; the job holds a reference

  // results so far
  int64_t next_offset = 0;            // start of the next fetch: after all decoded and all skipped records
  int32_t last_leader_epoch = -1;     // partitionLeaderEpoch of the last batch seen
  int32_t read_leader_epoch = -1;     // epoch of the last batch begun before next_offset; the caller initializes it
  int64_t records = 0;                // number of appended records
  int64_t bytes = 0;                  // bytes of the appended keys and values
  size_t incomplete_batch_bytes = 0;  // size of a batch cut off by the end of the data, if it is the first one
  Status status;
  int64_t error_offset = -1;          // first offset of the bad batch
  int64_t error_next_offset = -1;     // offset after the bad batch, or -1 if unknown
  bool error_is_permanent = false;    // the CRC of the bad batch is correct: to fetch it again does not help

  // between slices, private to the decoder
  int stage = STAGE_BEGIN;
  size_t position = 0;
  BatchState batch;
  uint32_t crc = 0;                   // CRC of the batch's bytes up to crc_position
  size_t crc_position = 0;
  std::vector<int64_t> open_aborts;   // ids of the producers in an aborted transaction
  size_t next_aborted = 0;
  Inflater* inflater = nullptr;
  Block* ready = nullptr;             // a reference: the current batch, if another thread inflated it
  int32_t batch_record = 0;           // index of the next record in the current batch
  size_t record_position = 0;         // its position in batch.block
  Columns* run_columns = nullptr;     // the columns with the job's latest run; never dereferenced
  size_t run_index = 0;

  // Sorts by first_offset: a broker lists transactions in the order in which they ended. Unsorted, the records of a
  // long aborted one would be delivered (test_aborts_come_in_the_order_in_which_they_ended).
  void add_aborted(AbortedTransaction transaction) {
    aborted.insert(std::upper_bound(aborted.begin(), aborted.end(), transaction,
                                    [](const AbortedTransaction& a, const AbortedTransaction& b) {
                                      return a.first_offset < b.first_offset;
                                    }),
                   transaction);
  }
};

}  // namespace kc
