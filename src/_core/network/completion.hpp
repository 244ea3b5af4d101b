// Owns: Completion, a request that has ended, by a response or by a failure.
// Threads: N. Never: owns what it points at: the delegate frees the request and releases the block.
#pragma once
#include "network/request.hpp"

namespace kc {

struct Completion {
  Request* request = nullptr;
  bool failed = false;
  Response response;
  Status status;
};

}  // namespace kc
