// Owns: FetchSession (KIP-227: what one broker has been asked and remembers) and FetchedItem, what a response brought.
// thread: N. Never: decides anything; fetch_sender.pyx does.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "protocol/types.hpp"
#include "records/decode.hpp"
#include "state/metadata.hpp"
#include "state/partition_state.hpp"

namespace kc {

struct SessionPartition {
  PartitionState* partition = nullptr;  // holds a reference
  Uuid topic_id;
  bool known_to_broker = false;         // stands in the broker's session
  bool to_send = false;                 // stands in FetchSession.to_send
  uint64_t served = 0;                  // when it last returned data: full requests ask the longest unserved first
  // as last asked
  int64_t fetch_offset = -1;
  int32_t leader_epoch = -1;
  uint64_t position_epoch = 0;
  uint64_t generation = 0;
};

struct ForgottenPartition {
  std::string topic;
  Uuid topic_id;
  int32_t partition;
};

struct FetchSession {
  int32_t node_id = -1;
  int32_t session_id = 0;
  int32_t epoch = 0;                    // 0: the next request is a full one
  bool in_flight = false;
  bool restart = false;                 // given up while in_flight: what comes back does not continue it
  bool uses_topic_ids = false;
  int32_t attempts = 0;
  int64_t not_before_ms = 0;
  int64_t reserved_bytes = 0;
  int64_t sent_ms = 0;
  int64_t fastest_ms = 100;             // shortest time from request to response seen
  int64_t urgent_ms = 0;                // since when a new partition waits behind the Fetch in flight; 0: none
  int64_t grace_ms = 0;                 // how long the answer in flight may keep it waiting
  bool interrupted = false;             // the Fetch in flight was given up for it
  int32_t partitions_without_id = 0;    // while any is, the session asks by name
  std::unordered_map<std::string, SessionPartition> partitions;        // by partition_key
  std::unordered_map<Uuid, std::string> topic_names;      // as asked in this session
  std::vector<std::string> to_send;                                    // keys whose parameters moved
  std::vector<ForgottenPartition> to_forget;
};

enum FetchedKind : int32_t { FETCHED_RECORDS, FETCHED_END_OF_PARTITION, FETCHED_ERROR };

struct FetchedItem {
  FetchedKind kind = FETCHED_RECORDS;
  PartitionState* partition = nullptr;  // holds a reference
  uint64_t position_epoch = 0;
  uint64_t generation = 0;
  int64_t offset = OFFSET_INVALID;      // END_OF_PARTITION, ERROR
  Status status;                        // ERROR
  DecodeJob job;                        // RECORDS
};

// Where the next fetch of a partition begins, and the leader epoch of the last batch (left alone where there is none),
// read from batch headers only, so that the next request goes out before this response is decoded. Never believed
// further than that: the decoder checks every batch.
inline int64_t next_fetch_offset(const uint8_t* p, size_t length, int64_t fetch_offset, int32_t* leader_epoch) {
  auto i64 = [](const uint8_t* q) {
    uint64_t v;
    memcpy(&v, q, 8);
    return static_cast<int64_t>(__builtin_bswap64(v));
  };
  auto i32 = [](const uint8_t* q) {
    uint32_t v;
    memcpy(&v, q, 4);
    return static_cast<int32_t>(__builtin_bswap32(v));
  };
  int64_t next = fetch_offset;
  while (length >= 17) {
    int64_t base = i64(p);
    int32_t batch = i32(p + 8);
    if (batch < 5 || static_cast<size_t>(batch) > length - 12 || base < 0 || base == INT64_MAX) break;
    int64_t last = base;
    int32_t epoch = *leader_epoch;
    if (p[16] == 2) {
      if (batch < 49) break;
      int32_t delta = i32(p + 23);
      if (delta < 0 || base >= INT64_MAX - delta) break;
      last = base + delta;
      epoch = i32(p + 12);
    }
    if (last + 1 > next) {
      next = last + 1;
      *leader_epoch = epoch;
    }
    p += 12 + static_cast<size_t>(batch);
    length -= 12 + static_cast<size_t>(batch);
  }
  return next;
}

}  // namespace kc
