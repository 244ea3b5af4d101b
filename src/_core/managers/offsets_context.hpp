// Owns: OffsetsContext, the purpose of a ListOffsets or OffsetForLeaderEpoch in flight. thread: N.
// Never: sends or decides anything; offsets_request_manager.pxi does.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "events/application_event.hpp"
#include "state/partition_state.hpp"

namespace kc {

struct AskedPartition {
  PartitionState* partition = nullptr;  // holds a reference; null for a query of the application
  uint64_t position_epoch = 0;
  uint64_t generation = 0;
  int32_t leader_epoch = -1;            // leader epoch of the request
  int32_t query = -1;                   // index into ListOffsetsEvent.queries
};

struct OffsetsContext {
  ListOffsetsEvent* event = nullptr;    // holds a reference
  std::vector<AskedPartition> partitions;
  std::unordered_map<std::string, size_t> places;  // partition_key → index into partitions
};

}  // namespace kc
