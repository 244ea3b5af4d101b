// Owns: TimedPartition, and the texts of errors about a bad batch. thread: N. Never: decides anything.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "managers/fetch_session.hpp"

namespace kc {

struct TimedPartition {
  PartitionState* partition = nullptr;  // holds a reference
  uint64_t position_epoch = 0;          // if it differs, the entry is obsolete
  int64_t due_ms = 0;
  TimedPartition() = default;
  TimedPartition(PartitionState* p, uint64_t epoch, int64_t due) : partition(p), position_epoch(epoch), due_ms(due) {
    p->retain();
  }
};

// "t [0] at offset 7: its CRC is ..."
inline std::string bad_batch_text(const BatchFailure& failure) {
  std::string text = failure.partition->name();
  if (failure.offset >= 0) text += " at offset " + std::to_string(failure.offset);
  return text + ": " + failure.status.detail;
}

// " (fetched 5 times from brokers 1, 2; seek to 8 to skip the batch)"
inline std::string bad_batch_remedy(const BatchFailure& failure, const BadBatch& bad) {
  std::string text;
  if (failure.permanent) {
    text = "the stored batch itself is invalid, fetching it again would not help";
  } else {
    text = "fetched " + std::to_string(bad.attempts) + " times from broker" + (bad.nodes.size() > 1 ? "s " : " ");
    for (size_t i = 0; i < bad.nodes.size(); ++i) text += (i ? ", " : "") + std::to_string(bad.nodes[i]);
  }
  if (failure.next_offset > failure.offset && failure.offset >= 0) {
    text += "; seek to " + std::to_string(failure.next_offset) + " to skip the batch";
  }
  return " (" + text + ")";
}

}  // namespace kc
