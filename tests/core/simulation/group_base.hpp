// Owns: Group: the common part of the coordinator's two kinds of group: owners of partitions, offsets, commit checks.
// Threads: the simulation's thread. Never: uses the wire format.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulation/topics.hpp"

namespace kc::sim {

using TopicPartition = std::pair<std::string, int32_t>;

struct CommittedOffset {
  int64_t offset = -1;
  int32_t leader_epoch = -1;
  std::string metadata;
};

// A commit that the coordinator accepted, for the checks of a history.
struct AcceptedCommit {
  int64_t time_ms = 0;
  int32_t client = 0;
  std::string member_id;
  std::string topic;
  int32_t partition = 0;
  int64_t offset = -1;
  int64_t before = -1;
};

// The time in which a group had no assignment, because its leader had not sent one. The coordinator refuses commits then.
struct AwaitedAssignment {
  int64_t begin_ms = 0;
  int64_t end_ms = INT64_MAX;
  int32_t leader = -1;  // the client
};

class Group {
 public:
  explicit Group(World& world) : world_(world) {}
  virtual ~Group() = default;
  std::map<TopicPartition, CommittedOffset> offsets;
  std::vector<AcceptedCommit> accepted;
  std::vector<AwaitedAssignment> awaited;
  std::vector<int64_t> forgot_ms;  // when a coordinator took over that does not know the newest state

  // NONE, or the reason why this member may not commit.
  virtual Error may_commit(const std::string& member_id, const NullableString& instance_id, int32_t generation,
                           int16_t version) = 0;
  // The member to which the coordinator assigned a partition in the newest complete assignment; or empty.
  virtual std::string owner(const TopicPartition& p) const = 0;
  // How often a member id was a new member; 0 when it is not a member now.
  virtual int32_t incarnation(const std::string& member_id) const = 0;
  virtual bool stable() const = 0;
  virtual std::string describe() const = 0;
  // Another broker has loaded the group from its log.
  virtual void loaded() = 0;
  // The session of a living member ends. False: there is no member to fence.
  virtual bool expire_a_member() = 0;

  void commit(int32_t client, const std::string& member_id, const TopicPartition& p, const CommittedOffset& offset) {
    const std::string owner_id = owner(p);
    CommittedOffset& kept = offsets[p];
    if (!member_id.empty() && !owner_id.empty() && owner_id != member_id) {
      world_.violate("commit of %s [%d] at %lld by %s (client %d), which has lost it to %s: over %lld", p.first.c_str(),
                     p.second, static_cast<long long>(offset.offset), member_id.c_str(), client, owner_id.c_str(),
                     static_cast<long long>(kept.offset));
    }
    accepted.push_back(
        AcceptedCommit{world_.now_ms, client, member_id, p.first, p.second, offset.offset, kept.offset});
    world_.trace("group: client %d commits %s [%d] at %lld", client, p.first.c_str(), p.second,
                 static_cast<long long>(offset.offset));
    kept = offset;
  }

 protected:
  World& world_;
};

}  // namespace kc::sim
