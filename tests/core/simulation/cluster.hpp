// Owns: Cluster: all simulated brokers: writes to them, their faults, and the choice of the broker for a request.
// Threads: the simulation's thread. Never: reads the state of a consumer.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulation/client_network.hpp"
#include "simulation/coordinator.hpp"
#include "simulation/fetches.hpp"

namespace kc::sim {

// How often an event happens, per second of virtual time.
struct Rates {
  double appends = 0;
  double transactions = 0;      // share of the appends
  double gaps = 0;              // share of the appends with gaps from compaction
  double leader_moves = 0;
  double coordinator_moves = 0;
  double outages = 0;
  double fences = 0;            // the session of a living member ends
  double trims = 0;
};

class Cluster {
 public:
  World world;
  Topics topics;
  Exchanges exchanges;
  Fetches fetches;
  Coordinator coordinator;
  Rates rates;
  std::map<int32_t, int16_t> versions;   // the highest version that brokers support, by API; all versions if not listed
  std::vector<ClientNetwork*> clients;

  explicit Cluster(uint64_t seed)
      : topics(world), exchanges(world), fetches(world, topics, exchanges), coordinator(world, topics, exchanges) {
    world.chance.state = seed;
    for (int32_t id = 1; id <= 3; ++id) topics.brokers.push_back(Broker{id, true, world.chance.between(0, 150)});
    exchanges.is_up = [this](int32_t node) { return topics.broker(node) && topics.broker(node)->up; };
    exchanges.serve = [this](const Exchange& x, const std::string& body) { serve(x, body); };
    topics.changed = [this](const Topic& topic, int32_t p) { fetches.look_again(topic, p); };
  }

  std::vector<NodeAddress> bootstrap() const {
    std::vector<NodeAddress> out;
    for (const Broker& b : topics.brokers) {
      out.emplace_back();
      out.back().id = -1 - b.id;
      out.back().host = Topics::host(b.id);
      out.back().port = 9092;
    }
    return out;
  }

  // From now on records are written and faults happen.
  void live() {
    world.after(kTickMs, [this] {
      tick();
      live();
    });
  }
  // Ends every fault; all brokers are up.
  void settle() {
    world.faults.active = false;
    rates.leader_moves = rates.coordinator_moves = rates.outages = rates.fences = rates.trims = 0;
    for (Broker& b : topics.brokers) b.up = true;
    for (ClientNetwork* c : clients) c->end_cuts();
  }
  void finish_transactions() {
    for (const OpenTransaction& t : open_) {
      t.partition->log.end_transaction(t.partition->epoch, t.producer_id, true, world.now_ms);
      topics.changed(*t.topic, t.index);
    }
    open_.clear();
  }
  void stop_broker(int32_t id, int64_t for_ms) {
    topics.broker(id)->up = false;
    exchanges.stops[id] += 1;
    world.trace("cluster: broker %d stops", id);
    fetches.broker_stopped(id);
    for (ClientNetwork* c : clients) c->broker_stopped(id);
    for (auto& topic : topics.topics) {
      for (size_t i = 0; i < topic->partitions.size(); ++i) {
        if (topic->partitions[i]->leader == id) topics.move_leader(*topic, static_cast<int32_t>(i), topics.live_broker());
      }
    }
    if (coordinator.node == id) coordinator.move_to(topics.live_broker());
    world.after(for_ms, [this, id] {
      topics.broker(id)->up = true;
      world.trace("cluster: broker %d is back", id);
    });
  }

 private:
  static constexpr int64_t kTickMs = 50;
  struct OpenTransaction {
    Topic* topic = nullptr;
    Partition* partition = nullptr;
    int32_t index = 0;
    int64_t producer_id = 0;
  };

  bool now_and_then(double per_second) {
    return per_second > 0 && world.chance.happens(per_second * kTickMs / 1000);
  }
  void tick() {
    for (double left = rates.appends * kTickMs / 1000; left > 0; left -= 1) {
      if (left >= 1 || world.chance.happens(left)) append();
    }
    if (!open_.empty() && world.chance.happens(0.15)) end_one();
    if (now_and_then(rates.leader_moves)) {
      Topic& t = any_topic();
      const int32_t index = static_cast<int32_t>(world.chance.below(static_cast<int64_t>(t.partitions.size())));
      topics.move_leader(t, index, topics.live_broker());
    }
    if (now_and_then(rates.coordinator_moves)) coordinator.move_to(topics.live_broker());
    if (now_and_then(rates.outages) && all_up()) {
      stop_broker(static_cast<int32_t>(world.chance.between(1, 3)), world.chance.between(200, 4000));
    }
    if (now_and_then(rates.fences)) coordinator.group().expire_a_member();
    if (now_and_then(rates.trims)) trim();
  }
  bool all_up() const {
    for (const Broker& b : topics.brokers) {
      if (!b.up) return false;
    }
    return true;
  }
  Topic& any_topic() {
    return *topics.topics[static_cast<size_t>(world.chance.below(static_cast<int64_t>(topics.topics.size())))];
  }
  void append() {
    Topic& topic = any_topic();
    const int32_t index = static_cast<int32_t>(world.chance.below(static_cast<int64_t>(topic.partitions.size())));
    Partition& p = *topic.partitions[static_cast<size_t>(index)];
    const int64_t count = world.chance.between(1, 6);
    const uint64_t missing = world.chance.happens(rates.gaps) ? world.chance.next() & ((1u << count) - 1) : 0;
    int64_t producer_id = -1;
    if (world.chance.happens(rates.transactions)) {
      producer_id = ++last_producer_;
      open_.push_back(OpenTransaction{&topic, &p, index, producer_id});
    }
    p.log.append(p.epoch, count, missing, producer_id, world.now_ms,
                 topic.name + ":" + std::to_string(index) + ":");
    topics.changed(topic, index);
  }
  void end_one() {
    const size_t which = static_cast<size_t>(world.chance.below(static_cast<int64_t>(open_.size())));
    const OpenTransaction t = open_[which];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
    t.partition->log.end_transaction(t.partition->epoch, t.producer_id, world.chance.happens(0.6), world.now_ms);
    topics.changed(*t.topic, t.index);
  }
  void trim() {
    Topic& topic = any_topic();
    const int32_t index = static_cast<int32_t>(world.chance.below(static_cast<int64_t>(topic.partitions.size())));
    PartitionLog& log = topic.partitions[static_cast<size_t>(index)]->log;
    if (log.last_stable_offset() == log.start) return;
    log.trim(world.chance.between(log.start, log.last_stable_offset()));
    world.trace("cluster: %s [%d] begins at %lld", topic.name.c_str(), index, static_cast<long long>(log.start));
  }

  template <class M>
  bool read(const Exchange& x, const std::string& body, M& message) {
    Reader r(reinterpret_cast<const uint8_t*>(body.data()), body.size());
    message.decode(r, x.version);
    if (r.ok() && r.remaining() == 0) return true;
    world.violate("client %d: %s v%d cannot be read: %s", x.connection->client, api_name(x.api), x.version,
                  r.ok() ? "bytes are left over" : r.status().detail.c_str());
    return false;
  }
  void serve(const Exchange& x, const std::string& body) {
    switch (x.api) {
      case API_FETCH: {
        FetchRequest asked;
        if (read(x, body, asked)) fetches.serve(x, asked);
        break;
      }
      case API_METADATA:
        answer<MetadataRequest, MetadataResponse>(x, body, [this, &x](auto& out, const auto& asked) {
          topics.describe(out, asked, x.version, x.connection->node);
        });
        break;
      case API_LIST_OFFSETS:
        answer<ListOffsetsRequest, ListOffsetsResponse>(x, body, [this, &x](auto& out, const auto& asked) {
          topics.list_offsets(out, asked, x.connection->node);
        });
        break;
      case API_OFFSET_FOR_LEADER_EPOCH:
        answer<OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse>(x, body, [this, &x](auto& out, const auto& asked) {
          topics.epoch_ends(out, asked, x.connection->node);
        });
        break;
      case API_FIND_COORDINATOR: {
        FindCoordinatorRequest asked;
        if (read(x, body, asked)) coordinator.find(x, asked);
        break;
      }
      case API_OFFSET_COMMIT: {
        OffsetCommitRequest asked;
        if (read(x, body, asked)) coordinator.commit(x, asked, coordinator.refusal(x.connection->node));
        break;
      }
      case API_OFFSET_FETCH: {
        OffsetFetchRequest asked;
        if (read(x, body, asked)) coordinator.fetch_offsets(x, asked, coordinator.refusal(x.connection->node));
        break;
      }
      default:
        serve_group(x, body);
    }
  }
  void serve_group(const Exchange& x, const std::string& body) {
    switch (x.api) {
      case API_JOIN_GROUP:
        return group<JoinGroupRequest, JoinGroupResponse>(
            x, body, [this, &x](const auto& asked) { coordinator.classic.join(x, asked); });
      case API_SYNC_GROUP:
        return group<SyncGroupRequest, SyncGroupResponse>(
            x, body, [this, &x](const auto& asked) { coordinator.classic.sync(x, asked); });
      case API_HEARTBEAT:
        return group<HeartbeatRequest, HeartbeatResponse>(
            x, body, [this, &x](const auto& asked) { coordinator.classic.heartbeat(x, asked); });
      case API_LEAVE_GROUP:
        return group<LeaveGroupRequest, LeaveGroupResponse>(
            x, body, [this, &x](const auto& asked) { coordinator.classic.leave(x, asked); });
      case API_DESCRIBE_GROUPS: {
        DescribeGroupsRequest asked;
        if (read(x, body, asked)) coordinator.classic.describe(x, asked, coordinator.refusal(x.connection->node));
        return;
      }
      case API_CONSUMER_GROUP_HEARTBEAT:
        return group<ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse>(
            x, body, [this, &x](const auto& asked) { coordinator.modern.heartbeat(x, asked); });
      case API_DESCRIBE_CONFIGS:
        return answer<DescribeConfigsRequest, DescribeConfigsResponse>(
            x, body, [this](auto& out, const auto& asked) { coordinator.modern.describe_configs(out, asked); });
      default:
        world.violate("client %d asks %s, which these brokers do not speak", x.connection->client, api_name(x.api));
    }
  }
  template <class Asked, class Out, class F>
  void answer(const Exchange& x, const std::string& body, F&& fill) {
    Asked asked;
    if (!read(x, body, asked)) return;
    Out out;
    fill(out, asked);
    exchanges.answer(x, out);
  }
  template <class Asked, class Out, class F>
  void group(const Exchange& x, const std::string& body, F&& serve_it) {
    Asked asked;
    if (!read(x, body, asked)) return;
    const Error refused = coordinator.refusal(x.connection->node);
    if (refused == NONE) return serve_it(asked);
    Out out;
    out.error_code = refused;
    if constexpr (std::is_same_v<Out, JoinGroupResponse>) {
      out.member_id = asked.member_id;
      if (x.version >= 7) out.protocol_name.set_null();
    }
    exchanges.answer(x, out);
  }

  std::vector<OpenTransaction> open_;
  int64_t last_producer_ = 0;
};

}  // namespace kc::sim
