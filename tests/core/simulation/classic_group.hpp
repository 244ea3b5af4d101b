// Owns: ClassicGroup: a group of the classic protocol at its coordinator: Join, Sync, Heartbeat, Leave, Describe,
// generations.
// Threads: the simulation's thread. Never: chooses an assignment (a member does), acts for another coordinator.
//
// State that is only in memory is lost when the coordinator moves: a group that was not stable goes back to the state
// in its log, as ClassicGroup does in Kafka.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/consumer_protocol_assignment.hpp"
#include "protocol/messages/describe_groups.hpp"
#include "protocol/messages/heartbeat.hpp"
#include "protocol/messages/join_group.hpp"
#include "protocol/messages/leave_group.hpp"
#include "protocol/messages/sync_group.hpp"
#include "simulation/group_base.hpp"

namespace kc::sim {

class ClassicGroup : public Group {
 public:
  enum State { EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE };
  int32_t initial_delay_ms = 200;
  int32_t new_member_timeout_ms = 30000;

  ClassicGroup(World& world, Exchanges& exchanges) : Group(world), exchanges_(exchanges) {}

  void join(const Exchange& x, const JoinGroupRequest& asked) {
    if (!asked.member_id.empty()) return join_known(x, asked);
    const std::string id = "member-" + std::to_string(++last_member_) +
                           (asked.group_instance_id.is_null ? "" : "-" + asked.group_instance_id.value);
    if (!supports(asked)) return refuse_join(x, "", INCONSISTENT_GROUP_PROTOCOL);
    if (!asked.group_instance_id.is_null) {
      auto known = instances_.find(asked.group_instance_id.value);
      if (known == instances_.end()) return add(x, asked, id);
      return replace_static(x, asked, known->second, id);
    }
    if (x.version < 4) return add(x, asked, id);
    pending_[id] = ++last_timer_;
    world_.after(asked.session_timeout_ms, [this, id, timer = last_timer_] {
      auto it = pending_.find(id);
      if (it == pending_.end() || it->second != timer) return;
      pending_.erase(it);
      if (state_ == PREPARING_REBALANCE && all_joined()) complete_join();
    });
    refuse_join(x, id, MEMBER_ID_REQUIRED);
  }

  void sync(const Exchange& x, const SyncGroupRequest& asked) {
    SyncGroupResponse out;
    Member* m = nullptr;
    out.error_code = valid(asked.member_id, asked.group_instance_id, &m);
    if (out.error_code == NONE && asked.generation_id != generation_) out.error_code = ILLEGAL_GENERATION;
    if (out.error_code == NONE && x.version >= 5 &&
        ((!asked.protocol_type.is_null && asked.protocol_type.value != "consumer") ||
         (!asked.protocol_name.is_null && asked.protocol_name.value != protocol_))) {
      out.error_code = INCONSISTENT_GROUP_PROTOCOL;
    }
    if (out.error_code == NONE && state_ == PREPARING_REBALANCE) out.error_code = REBALANCE_IN_PROGRESS;
    if (out.error_code == NONE && state_ == EMPTY) out.error_code = UNKNOWN_MEMBER_ID;
    if (out.error_code != NONE) return exchanges_.answer(x, out);
    pending_sync_.erase(m->id);
    if (state_ == STABLE) {
      beat(*m, m->session_timeout_ms);
      return answer_sync(x, *m, NONE);
    }
    answer_sync(m->sync, *m, REBALANCE_IN_PROGRESS);
    m->sync = x;
    if (m->id != leader_) return;
    for (auto& entry : members_) {
      entry.second->assignment.clear();
      for (const auto& given : asked.assignments) {
        if (given.member_id == entry.first) entry.second->assignment = given.assignment;
      }
    }
    become_stable();
  }

  void heartbeat(const Exchange& x, const HeartbeatRequest& asked) {
    HeartbeatResponse out;
    Member* m = nullptr;
    out.error_code = valid(asked.member_id, asked.group_instance_id, &m);
    if (out.error_code == NONE && asked.generation_id != generation_) out.error_code = ILLEGAL_GENERATION;
    if (out.error_code == NONE && state_ == EMPTY) out.error_code = UNKNOWN_MEMBER_ID;
    if (out.error_code == NONE) {
      beat(*m, m->session_timeout_ms);
      if (state_ == PREPARING_REBALANCE) out.error_code = REBALANCE_IN_PROGRESS;
    }
    exchanges_.answer(x, out);
  }

  void leave(const Exchange& x, const LeaveGroupRequest& asked) {
    LeaveGroupResponse out;
    bool any_left = false;
    std::vector<LeaveGroupRequest_MemberIdentity> leaving = asked.members;
    if (x.version < 3) {
      leaving.emplace_back();
      leaving.back().member_id = asked.member_id;
    }
    for (const auto& leaver : leaving) {
      LeaveGroupResponse_MemberResponse member_out;
      member_out.member_id = leaver.member_id;
      member_out.group_instance_id = leaver.group_instance_id;
      Member* m = nullptr;
      if (pending_.erase(leaver.member_id) == 0) {
        member_out.error_code = valid(leaver.member_id, leaver.group_instance_id, &m);
        if (m) remove(m->id);
      }
      any_left = any_left || member_out.error_code == NONE;
      if (x.version < 3) out.error_code = member_out.error_code;
      out.members.push_back(member_out);
    }
    exchanges_.answer(x, out);
    if (!any_left) return;
    if (state_ == STABLE || state_ == COMPLETING_REBALANCE) prepare("a member left");
    if (state_ == PREPARING_REBALANCE) maybe_complete_join();
  }

  // As in Kafka, only a stable group has assignments in the response.
  void describe(const Exchange& x, const DescribeGroupsRequest& asked, Error refused) {
    DescribeGroupsResponse out;
    for (const std::string& group_id : asked.groups) {
      out.groups.emplace_back();
      auto& described = out.groups.back();
      described.group_id = group_id;
      described.error_code = refused;
      if (refused != NONE) continue;
      described.group_state = state_name();
      described.protocol_type = "consumer";
      if (state_ == STABLE) described.protocol_data = protocol_;
      for (const auto& entry : members_) {
        described.members.emplace_back();
        auto& member_out = described.members.back();
        member_out.member_id = entry.first;
        if (x.version >= 4) member_out.group_instance_id = entry.second->instance;
        if (state_ != STABLE) continue;
        member_out.member_metadata = metadata_of(*entry.second);
        member_out.member_assignment = entry.second->assignment;
      }
    }
    exchanges_.answer(x, out);
  }

  Error may_commit(const std::string& member_id, const NullableString& instance_id, int32_t generation,
                   int16_t) override {
    if (generation < 0 && state_ == EMPTY) return NONE;
    if (generation < 0 && member_id.empty() && instance_id.is_null) return UNKNOWN_MEMBER_ID;
    Member* m = nullptr;
    const Error error = valid(member_id, instance_id, &m);
    if (error != NONE) return error;
    if (generation != generation_) return ILLEGAL_GENERATION;
    if (state_ == COMPLETING_REBALANCE) return REBALANCE_IN_PROGRESS;
    beat(*m, m->session_timeout_ms);
    return NONE;
  }
  std::string owner(const TopicPartition& p) const override {
    auto it = owners_.find(p);
    return it == owners_.end() ? std::string() : it->second;
  }
  // A static member that has not rejoined keeps its place, but its partitions may go to other members.
  int32_t incarnation(const std::string& member_id) const override {
    auto it = members_.find(member_id);
    return it != members_.end() && it->second->generation == generation_ ? 1 : 0;
  }
  bool stable() const override { return state_ == STABLE; }
  std::string describe() const override {
    std::string text = std::string(state_name()) + " generation " + std::to_string(generation_) + ":";
    for (const auto& entry : members_) text += " " + entry.first;
    return text;
  }
  void loaded() override {
    for (auto& entry : members_) {
      entry.second->join = Exchange();
      entry.second->sync = Exchange();
    }
    pending_.clear();
    pending_sync_.clear();
    join_timer_ = sync_timer_ = 0;
    if (state_ != STABLE) restore();
    for (auto& entry : members_) beat(*entry.second, entry.second->session_timeout_ms);
  }
  bool expire_a_member() override {
    if (members_.empty()) return false;
    auto it = members_.begin();
    std::advance(it, world_.chance.below(static_cast<int64_t>(members_.size())));
    fail(it->first);
    return true;
  }
  // Answers parked requests with an error: this broker is no longer the coordinator.
  void dismiss(Error error) {
    for (auto& entry : members_) {
      Member& m = *entry.second;
      if (m.join.open()) refuse_join(m.join, m.id, error);
      answer_sync(m.sync, m, error);
      m.join = m.sync = Exchange();
    }
  }

 private:
  struct Member {
    std::string id;
    NullableString instance;
    int32_t client = 0;
    int32_t session_timeout_ms = 0;
    int32_t rebalance_timeout_ms = 0;
    std::vector<std::pair<std::string, std::string>> protocols;
    std::string assignment;
    int32_t generation = 0;          // its newest generation
    bool is_new = true;
    uint64_t timer = 0;
    Exchange join;
    Exchange sync;
    bool awaiting_join() const { return join.connection != nullptr; }
    bool awaiting_sync() const { return sync.connection != nullptr; }
  };
  using Members = std::map<std::string, std::shared_ptr<Member>>;
  struct Logged {
    int32_t generation = 0;
    std::string protocol, leader;
    std::vector<Member> members;
    std::map<TopicPartition, std::string> owners;
  };

  static std::vector<std::pair<std::string, std::string>> protocols_of(const JoinGroupRequest& asked) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& p : asked.protocols) out.emplace_back(p.name, p.metadata);
    return out;
  }
  bool supports(const JoinGroupRequest& asked) const {
    if (asked.protocol_type != "consumer" || asked.protocols.empty()) return false;
    if (state_ == EMPTY) return true;
    for (const auto& p : asked.protocols) {
      if (all_support(p.name)) return true;
    }
    return false;
  }
  bool all_support(const std::string& name) const {
    for (const auto& entry : members_) {
      bool found = false;
      for (const auto& p : entry.second->protocols) found = found || p.first == name;
      if (!found) return false;
    }
    return true;
  }
  Error valid(const std::string& id, const NullableString& instance, Member** out) {
    if (!instance.is_null) {
      auto known = instances_.find(instance.value);
      if (known == instances_.end()) return UNKNOWN_MEMBER_ID;
      if (known->second != id) return FENCED_INSTANCE_ID;
    }
    auto it = members_.find(id);
    if (it == members_.end()) return UNKNOWN_MEMBER_ID;
    *out = it->second.get();
    return NONE;
  }
  void refuse_join(const Exchange& x, const std::string& id, Error error) {
    JoinGroupResponse out;
    out.error_code = error;
    out.member_id = id;
    if (x.version < 7) out.protocol_name.set("");
    else out.protocol_name.set_null();
    exchanges_.answer(x, out);
  }
  void answer_join(const Exchange& x, Member& m, bool skip_assignment = false) {
    m.generation = generation_;
    JoinGroupResponse out;
    out.generation_id = generation_;
    out.protocol_type.set("consumer");
    out.protocol_name.set(protocol_);
    out.leader = leader_;
    out.member_id = m.id;
    if (x.version >= 9) out.skip_assignment = skip_assignment;
    if (m.id == leader_) {
      for (auto& entry : members_) {
        JoinGroupResponse_JoinGroupResponseMember member_out;
        member_out.member_id = entry.first;
        member_out.group_instance_id = entry.second->instance;
        member_out.metadata = metadata_of(*entry.second);
        out.members.push_back(member_out);
      }
    }
    exchanges_.answer(x, out);
  }
  const char* state_name() const {
    static const char* const kNames[] = {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"};
    return kNames[state_];
  }
  std::string metadata_of(const Member& m) const {
    for (const auto& p : m.protocols) {
      if (p.first == protocol_) return p.second;
    }
    return "";
  }
  void answer_sync(const Exchange& x, const Member& m, Error error) {
    if (!x.open()) return;
    SyncGroupResponse out;
    out.error_code = error;
    if (error == NONE) {
      out.protocol_type.set("consumer");
      out.protocol_name.set(protocol_);
      out.assignment = m.assignment;
    }
    exchanges_.answer(x, out);
  }

  void join_known(const Exchange& x, const JoinGroupRequest& asked) {
    if (!supports(asked)) return refuse_join(x, asked.member_id, INCONSISTENT_GROUP_PROTOCOL);
    if (pending_.erase(asked.member_id) > 0) return add(x, asked, asked.member_id);
    Member* m = nullptr;
    const Error error = valid(asked.member_id, asked.group_instance_id, &m);
    if (error != NONE) return refuse_join(x, asked.member_id, error);
    const bool same = m->protocols == protocols_of(asked);
    if (state_ == EMPTY) return refuse_join(x, asked.member_id, UNKNOWN_MEMBER_ID);
    if ((state_ == COMPLETING_REBALANCE && same) || (state_ == STABLE && same && m->id != leader_)) {
      return answer_join(x, *m);
    }
    update(*m, x, asked);
    rebalance("a member rejoins");
  }
  void update(Member& m, const Exchange& x, const JoinGroupRequest& asked) {
    if (m.join.open() && m.join.number != x.number) refuse_join(m.join, m.id, UNKNOWN_MEMBER_ID);
    m.protocols = protocols_of(asked);
    m.session_timeout_ms = asked.session_timeout_ms;
    m.rebalance_timeout_ms = asked.rebalance_timeout_ms > 0 ? asked.rebalance_timeout_ms : asked.session_timeout_ms;
    m.join = x;
    m.client = x.connection->client;
  }
  void add(const Exchange& x, const JoinGroupRequest& asked, const std::string& id) {
    auto m = std::make_shared<Member>();
    m->id = id;
    m->instance = asked.group_instance_id;
    update(*m, x, asked);
    if (members_.empty()) leader_ = id;
    members_[id] = m;
    if (!m->instance.is_null) instances_[m->instance.value] = id;
    if (state_ == PREPARING_REBALANCE && was_empty_) new_member_added_ = true;
    beat(*m, new_member_timeout_ms);
    world_.trace("group: %s joins (client %d)", id.c_str(), m->client);
    rebalance("a new member");
  }
  void replace_static(const Exchange& x, const JoinGroupRequest& asked, const std::string old_id,
                      const std::string& id) {
    std::shared_ptr<Member> m = members_[old_id];
    members_.erase(old_id);
    if (m->join.open()) refuse_join(m->join, old_id, FENCED_INSTANCE_ID);
    answer_sync(m->sync, *m, FENCED_INSTANCE_ID);
    m->sync = Exchange();
    m->id = id;
    members_[id] = m;
    instances_[m->instance.value] = id;
    const bool led = leader_ == old_id;
    if (led) leader_ = id;
    pending_sync_.erase(old_id);
    for (auto& entry : owners_) {
      if (entry.second == old_id) entry.second = id;
    }
    update(*m, x, asked);
    beat(*m, m->session_timeout_ms);
    world_.trace("group: static member %s takes the place of %s (client %d)", id.c_str(), old_id.c_str(), m->client);
    if (state_ == STABLE && select_protocol() == protocol_) {
      log();
      m->join = Exchange();
      if (x.version < 9 && led) {
        // An old member does not support "skip the assignment"; so it does not learn either that it is the leader.
        leader_ = old_id;
        answer_join(x, *m);
        leader_ = id;
        return;
      }
      return answer_join(x, *m, led);
    }
    if (state_ == STABLE || state_ == COMPLETING_REBALANCE) return prepare("a static member changed");
    maybe_complete_join();
  }

  void rebalance(const char* why) {
    if (state_ == PREPARING_REBALANCE) {
      maybe_complete_join();
    } else {
      prepare(why);
    }
  }
  void prepare(const char* why) {
    if (state_ == COMPLETING_REBALANCE) {
      for (auto& entry : members_) {
        entry.second->assignment.clear();
        answer_sync(entry.second->sync, *entry.second, REBALANCE_IN_PROGRESS);
        entry.second->sync = Exchange();
      }
    }
    sync_timer_ = 0;
    pending_sync_.clear();
    was_empty_ = state_ == EMPTY;
    enter(PREPARING_REBALANCE);
    world_.trace("group: rebalance of generation %d: %s", generation_, why);
    if (was_empty_) {
      new_member_added_ = false;
      extend(initial_delay_ms, std::max(longest_rebalance_ms() - initial_delay_ms, 0));
    } else if (all_joined()) {
      complete_join();
    } else {
      wait_for_members();
    }
  }
  void extend(int32_t delay_ms, int32_t left_ms) {
    join_timer_ = ++last_timer_;
    world_.after(delay_ms, [this, timer = join_timer_, delay_ms, left_ms] {
      if (join_timer_ != timer) return;
      if (!new_member_added_ || left_ms == 0) return complete_join();
      new_member_added_ = false;
      extend(std::min(initial_delay_ms, left_ms), std::max(left_ms - delay_ms, 0));
    });
  }
  void wait_for_members() {
    join_timer_ = ++last_timer_;
    world_.after(longest_rebalance_ms(), [this, timer = join_timer_] {
      if (join_timer_ == timer) complete_join();
    });
  }
  int32_t longest_rebalance_ms() const {
    int32_t longest = 0;
    for (const auto& entry : members_) longest = std::max(longest, entry.second->rebalance_timeout_ms);
    return longest;
  }
  bool all_joined() const {
    if (!pending_.empty()) return false;
    for (const auto& entry : members_) {
      if (!entry.second->awaiting_join()) return false;
    }
    return true;
  }
  void maybe_complete_join() {
    if (state_ == PREPARING_REBALANCE && !was_empty_ && all_joined()) complete_join();
  }
  void enter(State state) {
    if (state_ == COMPLETING_REBALANCE) awaited.back().end_ms = world_.now_ms;
    state_ = state;
    if (state_ == COMPLETING_REBALANCE) awaited.push_back({world_.now_ms, INT64_MAX, members_.at(leader_)->client});
  }

  void complete_join() {
    join_timer_ = 0;
    for (auto it = members_.begin(); it != members_.end();) {
      Member& m = *it->second;
      ++it;
      if (!m.awaiting_join() && m.instance.is_null) {
        world_.trace("group: %s has not rejoined in time", m.id.c_str());
        remove(m.id);
      }
    }
    if (!members_.empty() && !elect_joined_leader()) return wait_for_members();
    generation_ += 1;
    if (members_.empty()) {
      enter(EMPTY);
      protocol_.clear();
      leader_.clear();
      owners_.clear();
      return log();
    }
    protocol_ = select_protocol();
    enter(COMPLETING_REBALANCE);
    world_.trace("group: generation %d with %zu members, leader %s", generation_, members_.size(), leader_.c_str());
    // An answer may cause the next request of a member immediately.
    const Members current_members = members_;
    for (auto& entry : current_members) {
      const Exchange x = std::exchange(entry.second->join, Exchange());
      entry.second->is_new = false;
      pending_sync_.insert(entry.first);
      beat(*entry.second, entry.second->session_timeout_ms);
      if (x.open()) answer_join(x, *entry.second);
    }
    sync_timer_ = ++last_timer_;
    world_.after(longest_rebalance_ms(), [this, timer = sync_timer_, generation = generation_] {
      if (sync_timer_ == timer && generation == generation_) expire_sync();
    });
  }
  bool elect_joined_leader() {
    auto it = members_.find(leader_);
    if (it != members_.end() && it->second->awaiting_join()) return true;
    for (auto& entry : members_) {
      if (entry.second->awaiting_join()) {
        leader_ = entry.first;
        return true;
      }
    }
    return false;
  }
  // The protocol that all members support and most prefer.
  std::string select_protocol() const {
    std::map<std::string, int> votes;
    for (const auto& entry : members_) {
      for (const auto& p : entry.second->protocols) {
        if (all_support(p.first)) {
          votes[p.first] += 1;
          break;
        }
      }
    }
    std::string best;
    for (const auto& vote : votes) {
      if (best.empty() || vote.second > votes[best]) best = vote.first;
    }
    return best;
  }
  void expire_sync() {
    const std::set<std::string> late = pending_sync_;
    if (late.empty() || (state_ != COMPLETING_REBALANCE && state_ != STABLE)) return;
    for (const std::string& id : late) {
      world_.trace("group: %s has not asked for its assignment", id.c_str());
      remove(id);
    }
    prepare("members did not synchronise");
  }
  void become_stable() {
    enter(STABLE);
    owners_.clear();
    for (auto& entry : members_) take_ownership(*entry.second);
    log();
    world_.trace("group: generation %d is stable", generation_);
    const Members current_members = members_;
    for (auto& entry : current_members) {
      if (!entry.second->awaiting_sync()) continue;
      const Exchange x = std::exchange(entry.second->sync, Exchange());
      beat(*entry.second, entry.second->session_timeout_ms);
      answer_sync(x, *entry.second, NONE);
    }
  }
  void take_ownership(const Member& m) {
    if (m.assignment.size() < 2) return;
    Reader r(reinterpret_cast<const uint8_t*>(m.assignment.data()), m.assignment.size());
    const int16_t version = r.read_int16("version");
    ConsumerProtocolAssignment given;
    given.decode(r, std::min<int16_t>(version, ConsumerProtocolAssignment::max_version));
    if (!r.ok()) return world_.violate("the assignment of %s cannot be read", m.id.c_str());
    for (const auto& topic : given.assigned_partitions) {
      for (int32_t p : topic.partitions) {
        std::string& owner = owners_[TopicPartition(topic.topic, p)];
        if (!owner.empty()) {
          world_.violate("generation %d gives %s [%d] to %s and to %s", generation_, topic.topic.c_str(), p,
                         owner.c_str(), m.id.c_str());
        }
        owner = m.id;
      }
    }
  }

  void beat(Member& m, int32_t timeout_ms) {
    m.timer = ++last_timer_;
    const std::string id = m.id;
    world_.after(timeout_ms, [this, id, timer = m.timer] {
      auto it = members_.find(id);
      if (it == members_.end() || it->second->timer != timer) return;
      if (!it->second->is_new && (it->second->awaiting_join() || it->second->awaiting_sync())) return;
      world_.trace("group: session of %s has expired", id.c_str());
      fail(id);
    });
  }
  // By value: the argument may refer to a member that the function removes.
  void fail(const std::string id) {
    remove(id);
    if (state_ == STABLE || state_ == COMPLETING_REBALANCE) {
      prepare("a member failed");
    } else if (state_ == PREPARING_REBALANCE && all_joined()) {
      complete_join();
    }
  }
  void remove(const std::string id) {
    auto it = members_.find(id);
    if (it == members_.end()) return;
    const std::shared_ptr<Member> m = it->second;
    members_.erase(it);
    pending_sync_.erase(id);
    if (!m->instance.is_null && instances_[m->instance.value] == id) instances_.erase(m->instance.value);
    for (auto o = owners_.begin(); o != owners_.end();) o = o->second == id ? owners_.erase(o) : std::next(o);
    if (leader_ == id) leader_ = members_.empty() ? std::string() : members_.begin()->first;
    world_.trace("group: %s is not a member any more", id.c_str());
    if (m->join.open()) refuse_join(m->join, std::string(), UNKNOWN_MEMBER_ID);
    answer_sync(m->sync, *m, UNKNOWN_MEMBER_ID);
  }

  void log() {
    logged_.generation = generation_;
    logged_.protocol = protocol_;
    logged_.leader = leader_;
    logged_.owners = owners_;
    logged_.members.clear();
    for (const auto& entry : members_) logged_.members.push_back(*entry.second);
  }
  void restore() {
    const bool is_logged = state_ == EMPTY && generation_ == logged_.generation && logged_.members.empty();
    if (!is_logged) forgot_ms.push_back(world_.now_ms);
    generation_ = logged_.generation;
    protocol_ = logged_.protocol;
    leader_ = logged_.leader;
    owners_ = logged_.owners;
    members_.clear();
    instances_.clear();
    for (const Member& m : logged_.members) {
      auto copy = std::make_shared<Member>(m);
      copy->join = copy->sync = Exchange();
      copy->is_new = false;
      members_[m.id] = copy;
      if (!m.instance.is_null) instances_[m.instance.value] = m.id;
    }
    enter(members_.empty() ? EMPTY : STABLE);
    world_.trace("group: loaded as %s", describe().c_str());
  }

  Exchanges& exchanges_;
  State state_ = EMPTY;
  bool was_empty_ = false;
  bool new_member_added_ = false;
  int32_t generation_ = 0;
  std::string protocol_;
  std::string leader_;
  Members members_;
  std::map<std::string, uint64_t> pending_;
  std::set<std::string> pending_sync_;
  std::map<std::string, std::string> instances_;
  std::map<TopicPartition, std::string> owners_;
  uint64_t join_timer_ = 0;
  uint64_t sync_timer_ = 0;
  uint64_t last_timer_ = 0;
  int32_t last_member_ = 0;
  Logged logged_;
};

}  // namespace kc::sim
