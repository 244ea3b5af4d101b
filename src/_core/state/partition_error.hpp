// Owns: PartitionError, an error of one partition for the application. thread: N. Never: decides what an error means.
#pragma once
#include "base/status.hpp"
#include "state/partition_state.hpp"

namespace kc {

struct PartitionError {
  PartitionState* partition = nullptr;  // holds a reference
  uint64_t position_epoch = 0;
  int64_t offset = OFFSET_INVALID;
  Status status;
};

}  // namespace kc
