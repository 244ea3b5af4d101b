// Owns: RebalanceEvent, a request of a group's membership to the application: callbacks that only exclusive calls run.
// Threads: made on N, served on A (a value). Never: answered except by an AckRebalanceEvent of the same id.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "events/topic_partition.hpp"
#include "protocol/types.hpp"

namespace kc {

enum RebalanceKind : int32_t {
  REBALANCE_REVOKE,   // on_revoke for `partitions`, which then leave the assignment
  REBALANCE_ASSIGN,   // on_assign for `partitions`, which then join it (eager: are all of it)
  REBALANCE_LOST,     // on_lost for everything the group had given; falls back to on_revoke
  REBALANCE_ERROR,    // a consumer error for poll(): `status`; needs no ACK
};

struct RebalanceEvent {
  RebalanceKind kind = REBALANCE_REVOKE;
  uint64_t id = 0;                  // grows by one per event; its ACK carries it back
  uint64_t epoch = 0;               // of the SubscribeEvent it belongs to; one of an older subscription is dropped
  bool eager = false;               // assign() and unassign() are the calls to make, else the incremental ones
  std::vector<TopicPartition> partitions;
  Status status;
  // ASSIGN: an assignor of the application's gets the whole assignment that it made, before on_assign.
  std::string assignor;             // empty: none
  int32_t generation = -1;
  std::vector<TopicPartition> target;
  NullableString user_data;
};

}  // namespace kc
