// Owns: the fuzz target of what members of a classic group send each other: subscriptions and user data, as bytes,
// through every assignor, and assignments.
// Threads: one (libFuzzer's). Never: knows a right answer; it checks what holds for any.
//
// The input is one byte for the assignor and the partition counts, then subscriptions, each after a byte of length.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "managers/assignors.hpp"
#include "managers/consumer_protocol.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(kc::AssignorKind kind, const std::vector<kc::GroupMember>& members,
           const std::vector<kc::TopicInput>& topics) {
  kc::GroupAssignment result;
  kc::assign(kind, members, topics, result);
  std::set<std::pair<std::string, int32_t>> given;
  size_t wanted = 0;
  for (const kc::TopicInput& topic : topics) {
    bool somebody = false;
    for (const kc::GroupMember& member : members) {
      for (const std::string& name : member.topics) somebody |= name == topic.topic;
    }
    if (somebody) wanted += static_cast<size_t>(topic.partition_count);
  }
  for (const kc::GroupMember& member : members) {
    require(result.count(member.member_id) == 1);
    for (const kc::TopicPartitions& entry : result[member.member_id]) {
      bool subscribed = false;
      for (const std::string& name : member.topics) subscribed |= name == entry.topic;
      require(subscribed);
      for (int32_t p : entry.partitions) require(given.emplace(entry.topic, p).second);
    }
  }
  require(given.size() <= wanted);
  require(kind == kc::ASSIGNOR_COOPERATIVE_STICKY || given.size() == wanted);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  auto kind = static_cast<kc::AssignorKind>(data[0] & 3);
  std::vector<kc::TopicInput> topics;
  for (int i = 0; i < 4; ++i) {
    kc::TopicInput topic;
    topic.topic = std::string(1, static_cast<char>('a' + i));
    topic.partition_count = (data[0] >> 2 & 15) + i;
    if (data[0] & 64) {
      for (int p = 0; p < topic.partition_count; ++p) {
        topic.replica_racks.push_back({std::string(1, "rs"[(p + i) % 2])});
      }
    }
    topics.push_back(std::move(topic));
  }
  std::vector<kc::GroupMember> members;
  for (size_t at = 1; at < size;) {
    size_t length = data[at++];
    if (length > size - at) length = size - at;
    kc::GroupMember member;
    member.member_id = "m" + std::to_string(members.size());
    if (kc::decode_subscription(data + at, length, member).ok()) members.push_back(std::move(member));
    at += length;
  }
  check(kind, members, topics);

  std::vector<kc::TopicPartitions> partitions;
  kc::NullableString user_data;
  if (kc::decode_assignment(data + 1, size - 1, partitions, user_data).ok() && size > 1) {
    std::string again;
    require(kc::encode_assignment(partitions, user_data, again));
  }
  return 0;
}
