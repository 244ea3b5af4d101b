// Owns: AssignorInput, the members and topics of an assignment as numbers, so that the algorithms compare and index
// integers; and AssignorResult, the owner of each partition, with the same numbers.
// Threads: any (values); in a consumer N. Never: chooses an owner.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "managers/assignment.hpp"

namespace kc {

constexpr int32_t NO_MEMBER = -1;
constexpr int32_t NO_TOPIC = -1;

// The order of Java's strings, which is the order of UTF-16: text whose UTF-8 starts with 0xEE or 0xEF (U+E000 to
// U+FFFF) comes after text that starts with 0xF0 to 0xF4, which needs a surrogate pair.
inline bool java_less(const std::string& a, const std::string& b) {
  auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (differ.second == b.end()) return false;
  if (differ.first == a.end()) return true;
  auto x = static_cast<uint8_t>(*differ.first), y = static_cast<uint8_t>(*differ.second);
  if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0)) return x > y;
  return x < y;
}

// The order in which range and roundrobin serve members: static members first, by their instance id.
inline bool serves_before(const GroupMember& a, const GroupMember& b) {
  const NullableString &x = a.group_instance_id, &y = b.group_instance_id;
  if (x.is_null != y.is_null) return y.is_null;
  if (!x.is_null && x.value != y.value) return java_less(x.value, y.value);
  return java_less(a.member_id, b.member_id);
}

// Members are numbered in the order of their ids, topics in the order of their names; a partition has the number
// `first + partition`. Topics without subscribers or without partitions have no number. Members with the same topics
// share one list, and so do topics that all members want: a thousand members may want ten thousand topics each.
class AssignorInput {
 public:
  using Numbers = std::vector<int32_t>;  // ascending
  struct Topic {
    const TopicInput* input = nullptr;
    size_t first = 0;
    int32_t count = 0;
    const Numbers* subscribers = nullptr;
  };
  struct Member {
    const GroupMember* input = nullptr;
    const Numbers* topics = nullptr;
  };

  AssignorInput(const std::vector<GroupMember>& given_members, const std::vector<TopicInput>& given_topics) {
    take_members(given_members);
    take_topics(given_topics);
    subscribe();
  }
  AssignorInput(const AssignorInput&) = delete;
  AssignorInput& operator=(const AssignorInput&) = delete;

  std::vector<Member> members;
  std::vector<Topic> topics;
  size_t partition_count = 0;
  // Whether all members named the same topics, known or not.
  bool subscriptions_equal = true;

  int32_t member_count() const { return static_cast<int32_t>(members.size()); }
  int32_t topic_count() const { return static_cast<int32_t>(topics.size()); }
  const Numbers& all_members() const { return all_members_; }
  int32_t topic_of(size_t partition) const {
    auto after = std::upper_bound(topics.begin(), topics.end(), partition,
                                  [](size_t p, const Topic& topic) { return p < topic.first; });
    return static_cast<int32_t>(after - topics.begin()) - 1;
  }
  int32_t find_topic(const std::string& name) const {
    auto found = numbers_.find(name);
    return found == numbers_.end() ? NO_TOPIC : found->second;
  }
  bool is_subscribed(int32_t member, int32_t topic) const {
    const Numbers& mine = *members[static_cast<size_t>(member)].topics;
    return std::binary_search(mine.begin(), mine.end(), topic);
  }

 private:
  void take_members(const std::vector<GroupMember>& given) {
    for (const GroupMember& member : given) members.push_back({&member, nullptr});
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return java_less(a.input->member_id, b.input->member_id);
    });
    // If a member id appears twice, the last entry counts. No coordinator sends that.
    size_t kept = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      if (kept > 0 && members[kept - 1].input->member_id == members[i].input->member_id) --kept;
      members[kept++].input = members[i].input;
    }
    members.resize(kept);
    for (int32_t m = 0; m < member_count(); ++m) all_members_.push_back(m);
  }
  // Topics without subscribers keep a number until subscribe() has found them.
  void take_topics(const std::vector<TopicInput>& given) {
    for (const TopicInput& topic : given) {
      if (topic.partition_count <= 0 || !numbers_.emplace(topic.topic, 0).second) continue;
      topics.push_back({&topic, 0, 0, nullptr});
    }
    std::sort(topics.begin(), topics.end(),
              [](const Topic& a, const Topic& b) { return java_less(a.input->topic, b.input->topic); });
    for (int32_t t = 0; t < topic_count(); ++t) numbers_[topics[static_cast<size_t>(t)].input->topic] = t;
  }
  void subscribe() {
    // Every name gets a number; names without a topic get the numbers after the topics.
    for (size_t m = 0; m < members.size(); ++m) {
      const std::vector<std::string>& names = members[m].input->topics;
      if (m > 0 && names == members[m - 1].input->topics) {
        members[m].topics = members[m - 1].topics;
        continue;
      }
      Numbers numbers;
      numbers.reserve(names.size());
      for (const std::string& name : names) {
        numbers.push_back(numbers_.emplace(name, static_cast<int32_t>(numbers_.size())).first->second);
      }
      std::sort(numbers.begin(), numbers.end());
      numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
      if (m > 0 && numbers != *members[m - 1].topics) subscriptions_equal = false;
      lists_.push_back(std::move(numbers));
      members[m].topics = &lists_.back();
    }
    forget_unknown_partitions();
    find_subscribers();
  }
  void forget_unknown_partitions() {
    std::vector<bool> wanted(topics.size(), false);
    for (Numbers& list : lists_) {
      list.erase(std::lower_bound(list.begin(), list.end(), topic_count()), list.end());
      for (int32_t t : list) wanted[static_cast<size_t>(t)] = true;
    }
    Numbers renumbered(topics.size(), NO_TOPIC);
    size_t kept = 0;
    for (size_t t = 0; t < topics.size(); ++t) {
      if (!wanted[t]) continue;
      renumbered[t] = static_cast<int32_t>(kept);
      topics[kept] = topics[t];
      topics[kept].count = topics[t].input->partition_count;
      topics[kept].first = partition_count;
      partition_count += static_cast<size_t>(topics[kept++].count);
    }
    topics.resize(kept);
    for (Numbers& list : lists_) {
      for (int32_t& t : list) t = renumbered[static_cast<size_t>(t)];
    }
    numbers_.clear();
    for (int32_t t = 0; t < topic_count(); ++t) numbers_.emplace(topics[static_cast<size_t>(t)].input->topic, t);
  }
  void find_subscribers() {
    if (subscriptions_equal) {
      for (Topic& topic : topics) topic.subscribers = &all_members_;
      return;
    }
    std::vector<Numbers> found(topics.size());
    for (int32_t m = 0; m < member_count(); ++m) {
      for (int32_t t : *members[static_cast<size_t>(m)].topics) found[static_cast<size_t>(t)].push_back(m);
    }
    for (size_t t = 0; t < topics.size(); ++t) {
      lists_.push_back(std::move(found[t]));
      topics[t].subscribers = &lists_.back();
    }
  }

  std::unordered_map<std::string, int32_t> numbers_;
  std::deque<Numbers> lists_;  // topics and members point into these lists
  Numbers all_members_;
};

// The Java client's balance score: the sum of the differences between all pairs of members' counts. 0 is perfect.
inline int64_t imbalance(std::vector<int64_t> counts) {
  std::sort(counts.begin(), counts.end());
  int64_t score = 0, before = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    score += counts[i] * static_cast<int64_t>(i) - before;
    before += counts[i];
  }
  return score;
}

struct AssignorResult {
  // For each partition, the number of its owner, or `NO_MEMBER`.
  std::vector<int32_t> owners;

  explicit AssignorResult(const AssignorInput& in) : owners(in.partition_count, NO_MEMBER) {}

  void write(const AssignorInput& in, GroupAssignment& out) const {
    std::vector<std::vector<TopicPartitions>*> lists;
    out.clear();
    out.reserve(in.members.size());
    for (const AssignorInput::Member& member : in.members) lists.push_back(&out[member.input->member_id]);
    for (const AssignorInput::Topic& topic : in.topics) {
      for (int32_t p = 0; p < topic.count; ++p) {
        int32_t owner = owners[topic.first + static_cast<size_t>(p)];
        if (owner == NO_MEMBER) continue;
        std::vector<TopicPartitions>& list = *lists[static_cast<size_t>(owner)];
        if (list.empty() || list.back().topic != topic.input->topic) list.push_back({topic.input->topic, {}});
        list.back().partitions.push_back(p);
      }
    }
  }
};

}  // namespace kc
