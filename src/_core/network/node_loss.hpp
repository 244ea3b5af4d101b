// Owns: NodeLoss, the loss of a connection or a failed attempt. thread: N.
// Never: reacts to the loss; MetadataRequestManager does.
#pragma once
#include <cstdint>

#include "base/status.hpp"

namespace kc {

struct NodeLoss {
  int32_t node_id = -1;
  bool was_ready = false;  // true: a working connection was lost; false: an attempt failed
  bool repeated = false;   // the same failure was reported recently
  Status status;
};

}  // namespace kc
