// Owns: Completion, a request that has ended, by a response or by a failure. thread: N.
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
