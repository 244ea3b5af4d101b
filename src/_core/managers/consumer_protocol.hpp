// Owns: the bytes that members of a classic group exchange through the coordinator: subscription (KIP-429, KIP-792,
// KIP-881), assignment, and the user data of the sticky assignors.
// Threads: any (pure functions); in a consumer N. Never: trusts a length, interprets the bytes as an assignor's choice.
//
// It writes the newest version, as the Java client does. It reads every version that other members write, and of newer
// versions the fields of the newest known one: new fields are only added at the end.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "managers/assignment.hpp"
#include "protocol/messages/consumer_protocol_assignment.hpp"
#include "protocol/messages/consumer_protocol_subscription.hpp"
#include "protocol/wire.hpp"

namespace kc {

template <class Message>
inline bool encode_versioned(const Message& message, std::string& out) {
  Writer w;
  w.write_int16(Message::max_version);
  message.encode(w, Message::max_version);
  if (!w.ok()) return false;
  out.assign(reinterpret_cast<const char*>(w.data()), w.size());
  return true;
}

template <class Message>
inline Status decode_versioned(const uint8_t* data, size_t length, Message& out) {
  Reader r(data, length);
  r.begin(Message::name, 0);
  int16_t version = r.read_int16("version");
  if (r.ok() && version < Message::min_version) {
    return Status(ERR_BAD_MSG, std::string(Message::name) + ": unsupported version " + std::to_string(version));
  }
  out.decode(r, std::min(version, Message::max_version));
  return r.status();
}

// Sorted by topic and partition, one entry per topic, no duplicate partitions.
inline std::vector<TopicPartitions> merged(const std::vector<TopicPartitions>& partitions) {
  std::vector<TopicPartitions> sorted(partitions);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const TopicPartitions& a, const TopicPartitions& b) { return a.topic < b.topic; });
  std::vector<TopicPartitions> out;
  for (TopicPartitions& entry : sorted) {
    if (entry.partitions.empty()) continue;
    if (out.empty() || out.back().topic != entry.topic) {
      out.push_back(std::move(entry));
    } else {
      out.back().partitions.insert(out.back().partitions.end(), entry.partitions.begin(), entry.partitions.end());
    }
  }
  for (TopicPartitions& entry : out) {
    std::sort(entry.partitions.begin(), entry.partitions.end());
    entry.partitions.erase(std::unique(entry.partitions.begin(), entry.partitions.end()), entry.partitions.end());
  }
  return out;
}

template <class Entry>
inline void to_wire(const std::vector<TopicPartitions>& partitions, std::vector<Entry>& out) {
  for (TopicPartitions& entry : merged(partitions)) {
    out.emplace_back();
    out.back().topic = std::move(entry.topic);
    out.back().partitions = std::move(entry.partitions);
  }
}

template <class Entry>
inline void from_wire(std::vector<Entry>& entries, std::vector<TopicPartitions>& out) {
  out.clear();
  out.reserve(entries.size());
  for (Entry& entry : entries) out.push_back({std::move(entry.topic), std::move(entry.partitions)});
}

// The metadata of a JoinGroup protocol, from all of `member` except its ids. False if a topic name, the rack or the
// user data is too long for the wire format.
inline bool encode_subscription(const GroupMember& member, std::string& out) {
  ConsumerProtocolSubscription message;
  message.topics = member.topics;
  std::sort(message.topics.begin(), message.topics.end());
  message.user_data = member.user_data;
  to_wire(member.owned, message.owned_partitions);
  message.generation_id = member.generation;
  if (!member.rack.empty()) message.rack_id.set(member.rack);
  return encode_versioned(message, out);
}

// Fills all of `member` except its ids. An error names the member: it fails the whole assignment, as in Java.
inline Status decode_subscription(const uint8_t* data, size_t length, GroupMember& member) {
  ConsumerProtocolSubscription message;
  Status status = decode_versioned(data, length, message);
  if (!status.ok()) {
    return Status(status.code, "the subscription of group member " + member.member_id + ": " + status.detail);
  }
  member.topics = std::move(message.topics);
  member.user_data = std::move(message.user_data);
  from_wire(message.owned_partitions, member.owned);
  member.generation = std::max(message.generation_id, -1);
  member.rack = std::move(message.rack_id.value);
  return Status();
}

// The assignment of one member in a SyncGroup. False if a topic name or the user data is too long for the wire format.
inline bool encode_assignment(const std::vector<TopicPartitions>& partitions, const NullableString& user_data,
                              std::string& out) {
  ConsumerProtocolAssignment message;
  to_wire(partitions, message.assigned_partitions);
  message.user_data = user_data;
  return encode_versioned(message, out);
}

// Sorted, without duplicates. Zero bytes are an empty assignment: a leader that skips a member sends that.
inline Status decode_assignment(const uint8_t* data, size_t length, std::vector<TopicPartitions>& partitions,
                                NullableString& user_data) {
  partitions.clear();
  user_data.set_null();
  if (length == 0) return Status();
  ConsumerProtocolAssignment message;
  Status status = decode_versioned(data, length, message);
  if (!status.ok()) return status;
  std::vector<TopicPartitions> raw;
  from_wire(message.assigned_partitions, raw);
  for (const TopicPartitions& topic : raw) {
    // A TopicPartition cannot have such a name.
    if (topic.topic.find('\0') != std::string::npos) {
      return Status(ERR_BAD_MSG, std::string(ConsumerProtocolAssignment::name) +
                                     ": field assigned_partitions: a topic's name contains a NUL character");
    }
  }
  partitions = merged(raw);
  user_data = std::move(message.user_data);
  return Status();
}

// The user data that a member sends to the next leader. sticky: its last assignment and the generation (version 1 of
// the Java client's form; null before the first assignment). cooperative-sticky: only the generation. `last` is the
// last assignment, or null.
inline NullableString assignor_user_data(AssignorKind kind, const std::vector<TopicPartitions>* last,
                                         int32_t generation) {
  Writer w;
  if (kind == ASSIGNOR_STICKY && last) {
    std::vector<ConsumerProtocolAssignment_TopicPartition> entries;
    to_wire(*last, entries);
    w.write_structs(entries, 0, false);
    w.write_int32(generation);
  } else if (kind == ASSIGNOR_COOPERATIVE_STICKY) {
    w.write_int32(generation);
  }
  if (w.size() == 0 || !w.ok()) return NullableString();
  return NullableString(std::string(reinterpret_cast<const char*>(w.data()), w.size()));
}

// Reads the sticky form, with a generation or (version 0) without. Unreadable bytes count as no earlier assignment.
inline void read_sticky_user_data(const std::string& bytes, std::vector<TopicPartitions>& previous,
                                  int32_t& generation) {
  previous.clear();
  generation = -1;
  Reader r(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  std::vector<ConsumerProtocolAssignment_TopicPartition> entries;
  r.read_structs(entries, 0, false, "previous_assignment");
  if (!r.ok()) return;
  from_wire(entries, previous);
  if (r.remaining() >= sizeof(int32_t)) generation = std::max(r.read_int32("generation"), -1);
}

// Members whose subscription has no generation field send it in their user data: the Java client as one number,
// librdkafka in the sticky form.
inline int32_t read_cooperative_user_data(const std::string& bytes) {
  if (bytes.size() == sizeof(int32_t)) {
    auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    return std::max(static_cast<int32_t>(load_big_endian<uint32_t>(data)), -1);
  }
  std::vector<TopicPartitions> previous;
  int32_t generation;
  read_sticky_user_data(bytes, previous, generation);
  return generation;
}

}  // namespace kc
