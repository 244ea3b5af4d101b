// Owns: AssignorCall, a question of the network thread to the assignors of the application, and the data of a group
// assignment: the members with their subscriptions, the topics from the metadata, the partitions of a member.
// Threads: any (values; N makes a call, A reads it). Never: decides anything, knows bytes (consumer_protocol.hpp does).
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

// A member as described in its JoinGroup. All fields except member_id and group_instance_id come unchecked from its
// subscription: partitions may not exist, topics may repeat, two members may claim the same partition.
struct GroupMember {
  std::string member_id;
  NullableString group_instance_id;
  std::vector<std::string> topics;
  std::vector<TopicPartitions> owned;
  int32_t generation = -1;  // the generation in which the member owned them; -1: none
  std::string rack;         // empty: none
  NullableString user_data;
};

struct TopicInput {
  std::string topic;
  int32_t partition_count = 0;
  // For each partition, the racks of its replicas, including offline ones and without replicas that have no rack. May
  // be shorter than the number of partitions, or empty: the racks of the other partitions are unknown.
  std::vector<std::vector<std::string>> replica_racks;
};

struct MemberAssignment {
  std::string member_id;
  std::vector<TopicPartitions> partitions;
  NullableString user_data;
};

// The user data of one assignor, sent with a subscription.
struct AssignorData {
  std::string assignor;
  NullableString user_data;
};

struct AssignorCall {
  uint64_t id = 0;                      // AssignorAnswerEvent returns it
  std::string assignor;  // call assign() of this assignor; empty: the call asks all assignors for user data
  std::vector<GroupMember> members;     // assign()
  std::vector<TopicInput> topics;       // assign()
  std::vector<std::string> subscribed;  // user data: the topics that this member will subscribe to
};

}  // namespace kc
