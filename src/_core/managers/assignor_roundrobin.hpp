// Owns: the roundrobin assignor: all partitions in order, dealt out to the members in turn, each skipping what it does
// not want.
// Threads: any (a pure function); in a consumer N. Never: looks at racks or at what members had before.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "managers/assignor_input.hpp"

namespace kc {

inline void assign_roundrobin(const AssignorInput& in, AssignorResult& result) {
  std::vector<int32_t> served(in.members.size());  // member numbers in the order they are served
  for (size_t i = 0; i < served.size(); ++i) served[i] = static_cast<int32_t>(i);
  auto member = [&in](int32_t number) -> const GroupMember& { return *in.members[static_cast<size_t>(number)].input; };
  std::sort(served.begin(), served.end(),
            [&](int32_t a, int32_t b) { return serves_before(member(a), member(b)); });
  std::vector<int32_t> turn(served.size());  // the inverse
  for (size_t i = 0; i < served.size(); ++i) turn[static_cast<size_t>(served[i])] = static_cast<int32_t>(i);

  int32_t next = 0;  // whose turn it is
  std::vector<int32_t> turns;
  for (const AssignorInput::Topic& topic : in.topics) {
    turns.clear();
    for (int32_t subscriber : topic.subscribers) turns.push_back(turn[static_cast<size_t>(subscriber)]);
    std::sort(turns.begin(), turns.end());
    auto at = std::lower_bound(turns.begin(), turns.end(), next);
    for (int32_t p = 0; p < topic.count; ++p, ++at) {
      if (at == turns.end()) at = turns.begin();
      result.owners[topic.first + static_cast<size_t>(p)] = served[static_cast<size_t>(*at)];
      next = *at + 1;
    }
  }
}

}  // namespace kc
