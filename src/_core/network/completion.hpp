// Owns: Completion, a request that has ended with a response or a failure.
// Threads: N. Never: owns its request or block: the delegate frees the request and releases the block.
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
