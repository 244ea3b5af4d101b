// Owns: AssignorKind, the assignors of the core, and GroupAssignment, their result; their input is in
// events/assignor_call.hpp. Threads: any (values); in a consumer N. Never: decides anything (assignors.hpp).
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "events/assignor_call.hpp"

namespace kc {

// The client-side assignors, in the order of preference of a default configuration.
enum AssignorKind : int32_t {
  ASSIGNOR_RANGE,
  ASSIGNOR_ROUNDROBIN,
  ASSIGNOR_STICKY,
  ASSIGNOR_COOPERATIVE_STICKY,
};

// By member id; contains every member, with no partitions if it gets none. Topics and partitions are sorted.
using GroupAssignment = std::unordered_map<std::string, std::vector<TopicPartitions>>;

}  // namespace kc
