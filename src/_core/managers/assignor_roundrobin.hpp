// Owns: the roundrobin assignor: it gives all partitions in order to the members in turn. A member is skipped for
// topics that it has not subscribed.
// Threads: any (a pure function); in a consumer N. Never: uses racks or the members' earlier partitions.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "managers/assignor_input.hpp"

namespace kc {

inline void assign_roundrobin(const AssignorInput& in, AssignorResult& result) {
  std::vector<int32_t> served(in.members.size());  // member numbers in the order of service
  for (size_t i = 0; i < served.size(); ++i) served[i] = static_cast<int32_t>(i);
  auto member = [&in](int32_t number) -> const GroupMember& { return *in.members[static_cast<size_t>(number)].input; };
  std::sort(served.begin(), served.end(),
            [&](int32_t a, int32_t b) { return serves_before(member(a), member(b)); });
  std::vector<int32_t> turn(served.size());  // the inverse
  for (size_t i = 0; i < served.size(); ++i) turn[static_cast<size_t>(served[i])] = static_cast<int32_t>(i);

  int32_t next = 0;  // the member to serve next
  std::vector<int32_t> some;
  for (const AssignorInput::Topic& topic : in.topics) {
    const std::vector<int32_t>* turns = &in.all_members();
    if (topic.subscribers != turns) {
      some.clear();
      for (int32_t subscriber : *topic.subscribers) some.push_back(turn[static_cast<size_t>(subscriber)]);
      std::sort(some.begin(), some.end());
      turns = &some;
    }
    auto at = std::lower_bound(turns->begin(), turns->end(), next);
    for (int32_t p = 0; p < topic.count; ++p, ++at) {
      if (at == turns->end()) at = turns->begin();
      result.owners[topic.first + static_cast<size_t>(p)] = served[static_cast<size_t>(*at)];
      next = *at + 1;
    }
  }
}

}  // namespace kc
