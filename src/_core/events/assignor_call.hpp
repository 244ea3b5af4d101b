// Owns: AssignorCall, a question of the network thread to the application's own assignors, and the data of a group
// assignment: the members as they joined, the topics as metadata knows them, the partitions of a member.
// Threads: any (values; a call is made on N, read on A). Never: decides anything, knows bytes (consumer_protocol.hpp).
#pragma once
#include <cstdint>
#include <string>
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
  // Per partition the racks of its replicas, offline ones included, without replicas that have no rack. May be shorter
  // than the number of partitions, or empty: the racks of the rest are not known.
  std::vector<std::vector<std::string>> replica_racks;
};

struct MemberAssignment {
  std::string member_id;
  std::vector<TopicPartitions> partitions;
  NullableString user_data;
};

// What an assignor says along with a subscription.
struct AssignorData {
  std::string assignor;
  NullableString user_data;
};

struct AssignorCall {
  uint64_t id = 0;                      // its AssignorAnswerEvent carries it back
  std::string assignor;                 // whose assign() is called; empty: user data is wanted of all of them
  std::vector<GroupMember> members;     // assign()
  std::vector<TopicInput> topics;       // assign()
  std::vector<std::string> subscribed;  // user data: what this member is about to subscribe
};

}  // namespace kc
