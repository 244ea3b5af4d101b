// Owns: writes the partitions of a fetch session into a Fetch request, with the number of bytes for each.
// thread: N. Never: decides which partitions to name.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "managers/fetch_session.hpp"
#include "protocol/messages/fetch.hpp"

namespace kc {

// Assumed size of a record of a range before the first record was received.
constexpr int64_t UNSEEN_RECORD_BYTES = 1024;
// A batch is sent completely or not at all, and both ends of a range may be inside a batch.
constexpr int64_t WHOLE_BATCH_BYTES = 131072;
constexpr int32_t MOST_RANGE_DOUBLINGS = 16;

// Bytes to ask for a partition: `most`, or the estimate for the remaining range if that is less, from the bytes per
// offset so far. A response that ends before the range end doubles the estimate, so it is not too low for long.
inline int32_t bytes_to_ask(const PartitionState& p, int32_t most) {
  const int64_t end = p.end_offset.load(std::memory_order_relaxed);
  if (end == NO_END || p.range_doublings >= MOST_RANGE_DOUBLINGS) return most;
  const int64_t left = std::max<int64_t>(end - p.fetch_offset.load(std::memory_order_relaxed), 1);
  const int64_t each = p.received_offsets > 0 ? p.received_bytes / p.received_offsets + 1 : UNSEEN_RECORD_BYTES;
  if (left > most / each) return most;
  const int64_t likely = left * each + left * each / 4 + WHOLE_BATCH_BYTES;
  return static_cast<int32_t>(std::min<int64_t>(likely << p.range_doublings, most));
}

// Partitions of a topic are grouped at the first of them, so that the request names the topic once.
inline void name_partitions(FetchRequest& message, const std::vector<SessionPartition*>& wanted, int32_t most_bytes) {
  std::unordered_map<std::string, size_t> places;
  for (SessionPartition* entry : wanted) {
    const PartitionState& p = *entry->partition;
    const auto place = places.emplace(p.topic, message.topics.size());
    if (place.second) {
      message.topics.emplace_back();
      message.topics.back().topic = p.topic;
      message.topics.back().topic_id = entry->topic_id;
    }
    FetchRequest_FetchPartition asked;
    asked.partition = p.partition;
    asked.current_leader_epoch = p.leader_epoch;
    asked.fetch_offset = p.fetch_offset.load(std::memory_order_relaxed);
    asked.partition_max_bytes = bytes_to_ask(p, most_bytes);
    message.topics[place.first->second].partitions.push_back(asked);
    entry->fetch_offset = asked.fetch_offset;
    entry->leader_epoch = p.leader_epoch;
    entry->position_epoch = p.adopted_epoch.load(std::memory_order_relaxed);
    entry->generation = p.decode_generation.load(std::memory_order_relaxed);
    entry->bounded = asked.partition_max_bytes < most_bytes;
  }
}

// Partitions that left the session since its last request and have not returned. A full request forgets none.
inline void name_forgotten(FetchRequest& message, FetchSession& session) {
  for (const ForgottenPartition& gone : session.to_forget) {
    if (session.epoch == 0) break;
    const SessionPartition* entry = session.find(gone.topic, gone.partition);
    if (entry != nullptr && entry->topic_id == gone.topic_id) continue;
    auto& topics = message.forgotten_topics_data;
    if (topics.empty() || topics.back().topic != gone.topic || !(topics.back().topic_id == gone.topic_id)) {
      topics.emplace_back();
      topics.back().topic = gone.topic;
      topics.back().topic_id = gone.topic_id;
    }
    topics.back().partitions.push_back(gone.partition);
  }
  session.to_forget.clear();
}

}  // namespace kc
