// Owns: assign(), the assignment that the leader makes, and the names of the assignors.
// Threads: any (a pure function); in a consumer N. Never: does I/O, keeps state between rebalances, trusts a member.
//
// With the same input, range and roundrobin give the same result as the Java client. The sticky assignors give a result
// that is equally balanced and moves equally few partitions. assignor_claims.hpp decides between contradictory claims.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "managers/assignment.hpp"
#include "managers/assignor_input.hpp"
#include "managers/assignor_range.hpp"
#include "managers/assignor_roundrobin.hpp"
#include "managers/assignor_sticky.hpp"

namespace kc {

inline const char* assignor_name(AssignorKind kind) {
  switch (kind) {
    case ASSIGNOR_RANGE: return "range";
    case ASSIGNOR_ROUNDROBIN: return "roundrobin";
    case ASSIGNOR_STICKY: return "sticky";
    case ASSIGNOR_COOPERATIVE_STICKY: return "cooperative-sticky";
  }
  return "";
}

// False if no assignor has that name.
inline bool find_assignor(const std::string& name, AssignorKind* out) {
  for (int32_t kind = ASSIGNOR_RANGE; kind <= ASSIGNOR_COOPERATIVE_STICKY; ++kind) {
    if (name != assignor_name(static_cast<AssignorKind>(kind))) continue;
    *out = static_cast<AssignorKind>(kind);
    return true;
  }
  return false;
}

// Whether members may keep their partitions through a rebalance (KIP-429). All assignors support the eager protocol.
inline bool supports_cooperative(AssignorKind kind) { return kind == ASSIGNOR_COOPERATIVE_STICKY; }

// `topics` must contain every existing topic that a member named; other topics are ignored.
inline void assign(AssignorKind kind, const std::vector<GroupMember>& members, const std::vector<TopicInput>& topics,
                   GroupAssignment& out) {
  const AssignorInput in(members, topics);
  AssignorResult result(in);
  out.clear();
  if (members.empty()) return;
  if (kind == ASSIGNOR_RANGE) {
    RangeAssignor(in, result).run();
  } else if (kind == ASSIGNOR_ROUNDROBIN) {
    assign_roundrobin(in, result);
  } else {
    StickyAssignor(kind, in, result).run();
  }
  result.write(in, out);
}

}  // namespace kc
