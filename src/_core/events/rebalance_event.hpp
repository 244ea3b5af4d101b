// Owns: RebalanceEvent, a request of a group's membership to the application: run callbacks in an exclusive call.
// Threads: made on N, served on A (a value). Never: answered except by the AckRebalanceEvent with the same id.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "events/topic_partition.hpp"
#include "protocol/types.hpp"

namespace kc {

enum RebalanceKind : int32_t {
  REBALANCE_REVOKE,   // call on_revoke for `partitions`; they then leave the assignment
  REBALANCE_ASSIGN,   // call on_assign for `partitions`; they then join the assignment (eager: replace it)
  REBALANCE_LOST,     // call on_lost, or on_revoke without one, for all partitions that the group assigned
  REBALANCE_ERROR,    // poll() returns `status` as a consumer error; needs no ACK
  REBALANCE_GIVEN_UP,  // call on_lost for `partitions`, which have left the assignment already; needs no ACK
};

struct RebalanceEvent {
  RebalanceKind kind = REBALANCE_REVOKE;
  uint64_t id = 0;                  // grows by one per event; the ACK returns it
  uint64_t epoch = 0;               // the epoch of its SubscribeEvent; events of an older subscription are dropped
  bool eager = false;               // call assign() and unassign(), else the incremental calls
  std::vector<TopicPartition> partitions;
  Status status;
  // ASSIGN: the application's assignor that made the assignment receives all of it before on_assign.
  std::string assignor;             // empty: none
  int32_t generation = -1;
  std::vector<TopicPartition> target;
  NullableString user_data;
};

}  // namespace kc
