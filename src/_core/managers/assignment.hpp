// Owns: the data of a group assignment: the members as they joined, the topics as metadata knows them, the result.
// Threads: any (values); in a consumer N. Never: decides anything (assignors.hpp), knows bytes (consumer_protocol.hpp).
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "protocol/types.hpp"

namespace kc {

struct TopicPartitions {
  std::string topic;
  std::vector<int32_t> partitions;
};

// A member as its JoinGroup said it is. Everything but member_id and group_instance_id is what its subscription
// carries, unchecked: partitions may not exist, topics may come twice, two members may claim the same partition.
struct GroupMember {
  std::string member_id;
  NullableString group_instance_id;
  std::vector<std::string> topics;
  std::vector<TopicPartitions> owned;
  int32_t generation = -1;  // in which it owned them; -1: none
  std::string rack;         // empty: none
  NullableString user_data;
};

struct TopicInput {
  std::string topic;
  int32_t partition_count = 0;
  // Per partition the racks of its replicas, offline ones included, without those that have none. May be shorter than
  // the partitions are many, or empty: nothing is known of the rest.
  std::vector<std::vector<std::string>> replica_racks;
};

// The client-side assignors, in the order of preference that a default configuration has.
enum AssignorKind : int32_t {
  ASSIGNOR_RANGE,
  ASSIGNOR_ROUNDROBIN,
  ASSIGNOR_STICKY,
  ASSIGNOR_COOPERATIVE_STICKY,
};

// By member id; every member is there, with no partitions if it gets none. Topics and partitions ascend.
using GroupAssignment = std::unordered_map<std::string, std::vector<TopicPartitions>>;

}  // namespace kc
