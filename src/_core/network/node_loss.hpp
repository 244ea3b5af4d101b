// Owns: NodeLoss, a connection that was lost or could not be made. thread: N.
// Never: decides what follows from it; MetadataRequestManager does.
#pragma once
#include <cstdint>

#include "base/status.hpp"

namespace kc {

struct NodeLoss {
  int32_t node_id = -1;
  bool was_ready = false;  // a working connection was lost; else an attempt failed
  bool repeated = false;   // the same failure was reported a little while ago
  Status status;
};

}  // namespace kc
