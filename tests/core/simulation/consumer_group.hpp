// Owns: ConsumerGroup: a group of the consumer protocol (KIP-848) at its coordinator: epochs, a uniform target
// assignment, and a reconciliation that gives a partition to its next owner only after the last owner has released it.
// Threads: the simulation's thread. Never: loses state when the coordinator moves (the log has all of it).
#pragma once
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/consumer_group_heartbeat.hpp"
#include "protocol/messages/describe_configs.hpp"
#include "simulation/group_base.hpp"

namespace kc::sim {

class ConsumerGroup : public Group {
 public:
  int32_t session_timeout_ms = 6000;
  int32_t heartbeat_interval_ms = 1000;

  ConsumerGroup(World& world, Topics& topics, Exchanges& exchanges)
      : Group(world), topics_(topics), exchanges_(exchanges) {}

  // The only configuration that a member asks for.
  void describe_configs(DescribeConfigsResponse& out, const DescribeConfigsRequest& asked) const {
    for (const auto& resource : asked.resources) {
      DescribeConfigsResponse_DescribeConfigsResult result;
      result.resource_type = resource.resource_type;
      result.resource_name = resource.resource_name;
      result.configs.emplace_back();
      result.configs.back().name = "consumer.session.timeout.ms";
      result.configs.back().value.set(std::to_string(session_timeout_ms));
      out.results.push_back(std::move(result));
    }
  }
  void heartbeat(const Exchange& x, const ConsumerGroupHeartbeatRequest& asked) {
    ConsumerGroupHeartbeatResponse out;
    const char* wrong = malformed(asked, x.version);
    if (wrong) {
      world_.violate("client %d: malformed ConsumerGroupHeartbeat: %s", x.connection->client, wrong);
      out.error_code = INVALID_REQUEST;
      return exchanges_.answer(x, out);
    }
    if (asked.member_epoch < 0) {
      leave(asked, out);
      return exchanges_.answer(x, out);
    }
    const std::string id = asked.member_id.empty() ? "server-made-" + std::to_string(++last_member_) : asked.member_id;
    MemberPtr m;
    out.error_code = find_or_create(asked, id, x.connection->client, m);
    if (out.error_code == NONE) beat(x, asked, *m, out);
    exchanges_.answer(x, out);
  }

  Error may_commit(const std::string& member_id, const NullableString&, int32_t epoch, int16_t version) override {
    if (epoch < 0 && members_.empty()) return NONE;
    auto it = members_.find(member_id);
    if (it == members_.end()) return UNKNOWN_MEMBER_ID;
    if (version < 9) return UNSUPPORTED_VERSION;
    return epoch == it->second->epoch ? NONE : STALE_MEMBER_EPOCH;
  }
  Error may_fetch_offsets(const NullableString& member_id, int32_t epoch) const {
    if (member_id.is_null && epoch < 0) return NONE;
    auto it = members_.find(member_id.value);
    if (it == members_.end()) return UNKNOWN_MEMBER_ID;
    return epoch == it->second->epoch ? NONE : STALE_MEMBER_EPOCH;
  }
  std::string owner(const TopicPartition& p) const override {
    auto it = owners_.find(p);
    return it == owners_.end() ? std::string() : it->second;
  }
  int32_t incarnation(const std::string& member_id) const override {
    auto it = members_.find(member_id);
    // A static member that has left temporarily keeps its place, not its partitions.
    return it == members_.end() || it->second->epoch == -2 ? 0 : it->second->incarnation;
  }
  bool stable() const override {
    for (const auto& entry : members_) {
      if (entry.second->state != STABLE || entry.second->epoch != target_epoch_) return false;
    }
    return group_epoch_ == target_epoch_;
  }
  std::string describe() const override {
    std::string text = "epoch " + std::to_string(group_epoch_) + ", target " + std::to_string(target_epoch_) + ":";
    for (const auto& entry : members_) {
      text += " " + entry.first + "@" + std::to_string(entry.second->epoch) + "/" +
              std::to_string(entry.second->assigned.size()) + "-" + std::to_string(entry.second->revoking.size());
    }
    return text;
  }
  void loaded() override {
    for (const MemberPtr& m : in_order()) {  // not in the order of their random ids
      arm_session(*m);
      if (m->state == UNREVOKED) arm_rebalance(*m);
    }
  }
  bool expire_a_member() override {
    if (members_.empty()) return false;
    const MemberPtr m = in_order()[static_cast<size_t>(world_.chance.below(static_cast<int64_t>(members_.size())))];
    world_.trace("group: %s (client %d) is fenced", m->id.c_str(), m->client);
    fence(m->id);
    return true;
  }

 private:
  enum State { STABLE, UNREVOKED, UNRELEASED };
  using Partitions = std::set<TopicPartition>;
  struct Member {
    std::string id;
    NullableString instance;
    int32_t client = 0;
    uint64_t number = 0;             // order of arrival; ids are random and must not decide anything
    int32_t incarnation = 0;
    int32_t epoch = 0;
    int32_t previous_epoch = 0;
    int32_t rebalance_timeout_ms = 0;
    std::vector<std::string> names;
    std::string regex;
    State state = STABLE;
    Partitions assigned;
    Partitions revoking;
    uint64_t session_timer = 0;
    uint64_t rebalance_timer = 0;
  };
  using MemberPtr = std::shared_ptr<Member>;

  static const char* malformed(const ConsumerGroupHeartbeatRequest& asked, int16_t version) {
    if (asked.group_id.empty()) return "no group id";
    if (asked.member_id.empty() && (version >= 1 || asked.member_epoch != 0)) return "no member id";
    if (!asked.instance_id.is_null && asked.instance_id.value.empty()) return "empty instance id";
    if (!asked.rack_id.is_null && asked.rack_id.value.empty()) return "empty rack id";
    if (asked.member_epoch == 0) {
      if (asked.rebalance_timeout_ms <= 0) return "no rebalance timeout when joining";
      if (asked.topic_partitions.is_null || !asked.topic_partitions.value.empty()) return "owns partitions when joining";
      const bool names = !asked.subscribed_topic_names.is_null && !asked.subscribed_topic_names.value.empty();
      const bool regex = !asked.subscribed_topic_regex.is_null && !asked.subscribed_topic_regex.value.empty();
      if (!names && !regex) return "no subscription when joining";
    }
    if (asked.member_epoch == -2 && asked.instance_id.is_null) return "epoch -2 without an instance id";
    return asked.member_epoch < -2 ? "epoch below -2" : nullptr;
  }

  Error find_or_create(const ConsumerGroupHeartbeatRequest& asked, const std::string& id, int32_t client, MemberPtr& m) {
    const bool joins = asked.member_epoch == 0;
    if (asked.instance_id.is_null) {
      auto it = members_.find(id);
      if (it != members_.end()) {
        m = it->second;
        return check_epoch(*m, asked);
      }
      if (!joins) return UNKNOWN_MEMBER_ID;
      m = create(id, asked, client);
      return NONE;
    }
    auto known = instances_.find(asked.instance_id.value);
    if (!joins) {
      if (known == instances_.end()) return UNKNOWN_MEMBER_ID;
      if (known->second != id) return FENCED_INSTANCE_ID;
      m = members_[id];
      return check_epoch(*m, asked);
    }
    if (known == instances_.end()) {
      m = create(id, asked, client);
      return NONE;
    }
    const MemberPtr old = members_[known->second];
    if (old->epoch != -2) return UNRELEASED_INSTANCE_ID;
    replace(old, id, client, m);
    return NONE;
  }
  Error check_epoch(const Member& m, const ConsumerGroupHeartbeatRequest& asked) const {
    if (asked.member_epoch == m.epoch) return NONE;
    if (asked.member_epoch > m.epoch || asked.member_epoch != m.previous_epoch) return FENCED_MEMBER_EPOCH;
    if (asked.topic_partitions.is_null) return FENCED_MEMBER_EPOCH;
    for (const TopicPartition& p : owned(asked)) {
      if (m.assigned.count(p) == 0) return FENCED_MEMBER_EPOCH;
    }
    return NONE;
  }
  MemberPtr create(const std::string& id, const ConsumerGroupHeartbeatRequest& asked, int32_t client) {
    auto m = std::make_shared<Member>();
    m->id = id;
    m->instance = asked.instance_id;
    m->client = client;
    m->number = ++last_number_;
    m->incarnation = ++last_incarnation_;
    members_[id] = m;
    if (!m->instance.is_null) instances_[m->instance.value] = id;
    bump_ = true;
    world_.trace("group: client %d joins as %s", client, id.c_str());
    return m;
  }
  // A static member that had left temporarily returns with another id.
  void replace(const MemberPtr& old, const std::string& id, int32_t client, MemberPtr& m) {
    m = std::make_shared<Member>(*old);
    members_.erase(old->id);
    m->id = id;
    m->client = client;
    m->incarnation = ++last_incarnation_;
    m->epoch = m->previous_epoch = 0;
    m->state = STABLE;
    m->revoking.clear();
    members_[id] = m;
    instances_[m->instance.value] = id;
    const Partitions target = target_[old->id];
    target_.erase(old->id);
    target_[id] = target;
    for (auto& entry : owners_) {
      if (entry.second == old->id) entry.second = id;
    }
    world_.trace("group: client %d takes the static place of %s as %s", client, old->id.c_str(), id.c_str());
  }

  void beat(const Exchange& x, const ConsumerGroupHeartbeatRequest& asked, Member& m,
            ConsumerGroupHeartbeatResponse& out) {
    m.client = x.connection->client;
    if (asked.rebalance_timeout_ms > 0) m.rebalance_timeout_ms = asked.rebalance_timeout_ms;
    if (!asked.subscribed_topic_names.is_null && asked.subscribed_topic_names.value != m.names) {
      m.names = asked.subscribed_topic_names.value;
      bump_ = true;
    }
    if (!asked.subscribed_topic_regex.is_null && asked.subscribed_topic_regex.value != m.regex) {
      m.regex = asked.subscribed_topic_regex.value;
      bump_ = true;
    }
    retarget();
    const Partitions before = m.assigned;
    reconcile(m, asked);
    arm_session(m);
    const bool full = asked.member_epoch == 0 || (asked.rebalance_timeout_ms != -1 && !asked.topic_partitions.is_null);
    out.member_id.set(m.id);
    out.member_epoch = m.epoch;
    out.heartbeat_interval_ms = heartbeat_interval_ms;
    if (full || before != m.assigned) write_assignment(m, out);
  }
  void write_assignment(const Member& m, ConsumerGroupHeartbeatResponse& out) {
    std::map<std::string, std::vector<int32_t>> by_topic;
    for (const TopicPartition& p : m.assigned) by_topic[p.first].push_back(p.second);
    out.assignment.set_present();
    for (const auto& entry : by_topic) {
      ConsumerGroupHeartbeatResponse_TopicPartitions listed;
      listed.topic_id = topics_.by_name(entry.first)->id;
      listed.partitions = entry.second;
      out.assignment.value.topic_partitions.push_back(listed);
    }
  }
  Partitions owned(const ConsumerGroupHeartbeatRequest& asked) const {
    Partitions out;
    for (const auto& topic : asked.topic_partitions.value) {
      Topic* known = topics_.by_id(topic.topic_id);
      for (int32_t p : topic.partitions) out.insert(TopicPartition(known ? known->name : std::string(), p));
    }
    return out;
  }

  // -- reconciliation: partitions that the member has, must release and may get

  void reconcile(Member& m, const ConsumerGroupHeartbeatRequest& asked) {
    if (m.state == STABLE && m.epoch == target_epoch_) return;
    if (m.state == UNREVOKED) {
      if (still_owns(asked, m.revoking)) return;
      let_go(m, m.revoking);
      m.revoking.clear();
      advance(m, m.epoch + 1, asked);
    } else {
      advance(m, m.epoch, asked);
    }
  }
  void advance(Member& m, int32_t epoch, const ConsumerGroupHeartbeatRequest& asked) {
    const Partitions& target = target_[m.id];
    Partitions keep, revoke, get;
    bool unreleased = false;
    for (const TopicPartition& p : m.assigned) (target.count(p) ? keep : revoke).insert(p);
    for (const TopicPartition& p : target) {
      if (keep.count(p)) continue;
      // A partition that it releases itself counts as taken too: it asks for it again in the next round.
      if (owners_.count(p)) {
        unreleased = true;
      } else {
        get.insert(p);
      }
    }
    const int32_t old_epoch = m.epoch;
    if (!revoke.empty() && still_owns(asked, revoke)) {
      m.state = UNREVOKED;
      m.epoch = epoch;
      m.assigned = keep;
      m.revoking = revoke;
      arm_rebalance(m);
    } else {
      let_go(m, revoke);
      m.state = unreleased ? UNRELEASED : STABLE;
      m.epoch = target_epoch_;
      m.assigned = keep;
      m.assigned.insert(get.begin(), get.end());
      m.revoking.clear();
      m.rebalance_timer = 0;
      for (const TopicPartition& p : get) owners_[p] = m.id;
    }
    if (m.epoch != old_epoch) m.previous_epoch = old_epoch;
    world_.trace("group: client %d is at epoch %d with %zu, revoking %zu%s", m.client, m.epoch, m.assigned.size(),
                 m.revoking.size(), m.state == UNRELEASED ? ", some not free yet" : "");
  }
  bool still_owns(const ConsumerGroupHeartbeatRequest& asked, const Partitions& which) const {
    if (asked.topic_partitions.is_null) return true;
    for (const TopicPartition& p : owned(asked)) {
      if (which.count(p)) return true;
    }
    return false;
  }
  void let_go(const Member& m, const Partitions& which) {
    for (const TopicPartition& p : which) {
      auto it = owners_.find(p);
      if (it != owners_.end() && it->second == m.id) owners_.erase(it);
    }
  }

  // -- the target

  void retarget() {
    std::map<std::string, size_t> sizes;
    for (const auto& entry : members_) {
      for (const std::string& name : subscribed(*entry.second)) sizes[name] = topics_.by_name(name)->partitions.size();
    }
    if (!bump_ && sizes == sizes_) return;
    bump_ = false;
    sizes_ = sizes;
    group_epoch_ += 1;
    target_epoch_ = group_epoch_;
    assign();
    world_.trace("group: epoch %d", group_epoch_);
  }
  std::vector<std::string> subscribed(const Member& m) const {
    std::vector<std::string> out;
    for (const auto& topic : topics_.topics) {
      bool wanted = std::find(m.names.begin(), m.names.end(), topic->name) != m.names.end();
      if (!m.regex.empty()) wanted = wanted || std::regex_match(topic->name, std::regex(m.regex));
      if (wanted) out.push_back(topic->name);
    }
    return out;
  }
  std::vector<MemberPtr> in_order() const {
    std::vector<MemberPtr> out;
    for (const auto& entry : members_) out.push_back(entry.second);
    std::sort(out.begin(), out.end(), [](const MemberPtr& a, const MemberPtr& b) { return a->number < b->number; });
    return out;
  }
  // As even as the subscriptions allow, with as few moves as possible.
  void assign() {
    const std::map<std::string, Partitions> before = std::exchange(target_, {});
    const std::vector<MemberPtr> all_members = in_order();
    std::map<std::string, std::vector<MemberPtr>> subscribers;
    for (const MemberPtr& m : all_members) {
      target_[m->id];
      for (const std::string& name : subscribed(*m)) subscribers[name].push_back(m);
    }
    size_t total = 0, members = 0;
    for (const auto& entry : sizes_) total += entry.second;
    for (const MemberPtr& m : all_members) members += subscribed(*m).empty() ? 0 : 1;
    const size_t most = members == 0 ? 0 : (total + members - 1) / members;
    std::vector<TopicPartition> free;
    for (const auto& entry : sizes_) {
      for (size_t i = 0; i < entry.second; ++i) {
        const TopicPartition p(entry.first, static_cast<int32_t>(i));
        const MemberPtr kept = member_that_keeps(p, subscribers[entry.first], before, most);
        if (kept) {
          target_[kept->id].insert(p);
        } else {
          free.push_back(p);
        }
      }
    }
    for (const TopicPartition& p : free) {
      MemberPtr least;
      for (const MemberPtr& m : subscribers[p.first]) {
        if (!least || target_[m->id].size() < target_[least->id].size()) least = m;
      }
      if (least) target_[least->id].insert(p);
    }
  }
  MemberPtr member_that_keeps(const TopicPartition& p, const std::vector<MemberPtr>& subscribers,
                   const std::map<std::string, Partitions>& before, size_t most) {
    for (const MemberPtr& m : subscribers) {
      auto it = before.find(m->id);
      if (it != before.end() && it->second.count(p) && target_[m->id].size() < most) return m;
    }
    return nullptr;
  }

  // -- leaving and fencing

  void leave(const ConsumerGroupHeartbeatRequest& asked, ConsumerGroupHeartbeatResponse& out) {
    out.member_id.set(asked.member_id);
    out.member_epoch = asked.member_epoch;
    std::string id = asked.member_id;
    if (!asked.instance_id.is_null) {
      auto known = instances_.find(asked.instance_id.value);
      if (known == instances_.end()) {
        out.error_code = UNKNOWN_MEMBER_ID;
        return;
      }
      if (known->second != id) {
        out.error_code = FENCED_INSTANCE_ID;
        return;
      }
    }
    auto it = members_.find(id);
    if (it == members_.end()) {
      out.error_code = UNKNOWN_MEMBER_ID;
      return;
    }
    world_.trace("group: client %d leaves (%d)", it->second->client, asked.member_epoch);
    if (asked.member_epoch == -2) {
      it->second->epoch = -2;
      let_go(*it->second, it->second->revoking);
      it->second->revoking.clear();
      return;
    }
    fence(id);
  }
  void fence(const std::string& id) {
    auto it = members_.find(id);
    if (it == members_.end()) return;
    const MemberPtr m = it->second;
    let_go(*m, m->assigned);
    let_go(*m, m->revoking);
    target_.erase(id);
    if (!m->instance.is_null && instances_[m->instance.value] == id) instances_.erase(m->instance.value);
    members_.erase(it);
    bump_ = true;
  }
  void arm_session(Member& m) {
    m.session_timer = ++last_timer_;
    const std::string id = m.id;
    world_.after(session_timeout_ms, [this, id, timer = m.session_timer] {
      auto it = members_.find(id);
      if (it == members_.end() || it->second->session_timer != timer) return;
      world_.trace("group: session of client %d has expired", it->second->client);
      fence(id);
    });
  }
  void arm_rebalance(Member& m) {
    m.rebalance_timer = ++last_timer_;
    const std::string id = m.id;
    world_.after(m.rebalance_timeout_ms, [this, id, timer = m.rebalance_timer] {
      auto it = members_.find(id);
      if (it == members_.end() || it->second->rebalance_timer != timer) return;
      world_.trace("group: client %d did not revoke in time", it->second->client);
      fence(id);
    });
  }

  Topics& topics_;
  Exchanges& exchanges_;
  int32_t group_epoch_ = 0;
  int32_t target_epoch_ = 0;
  bool bump_ = false;
  std::map<std::string, MemberPtr> members_;
  std::map<std::string, std::string> instances_;
  std::map<std::string, Partitions> target_;
  std::map<TopicPartition, std::string> owners_;
  std::map<std::string, size_t> sizes_;
  uint64_t last_timer_ = 0;
  uint64_t last_number_ = 0;
  int32_t last_incarnation_ = 0;
  int32_t last_member_ = 0;
};

}  // namespace kc::sim
