// Owns: ClientNetwork: one consumer's connections to the simulated brokers: connects, sends, loses, times out.
// Threads: the simulation's thread. Never: knows the meaning of a request, waits.
//
// It keeps TCP's guarantees: the requests of a connection arrive in order and at most once, and so do the answers. Only
// connections break; the broker may or may not have served a request then.
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "network/completion.hpp"
#include "network/connection.hpp"
#include "network/node_loss.hpp"
#include "protocol/messages/consumer_group_heartbeat.hpp"
#include "protocol/messages/heartbeat.hpp"
#include "protocol/messages/offset_commit.hpp"
#include "protocol/messages/sync_group.hpp"
#include "simulation/exchange.hpp"

namespace kc::sim {

class ClientNetwork {
 public:
  // Readiness, with the numbers of network.pxd.
  enum { READY = 0, CONNECTING = 1, BACKOFF = 2, BUSY = 3, UNKNOWN = 4 };

  const int32_t client;
  bool stopped = false;      // its process hangs: nothing is read until it continues
  bool needs_turn = true;    // something happened since the last turn of its loop
  int64_t due_ms = 0;        // when its loop wants to run again without an event
  int64_t heard_ms = -1;     // when its latest heartbeat that a coordinator answered was sent
  int64_t over_ms = -1;      // when its session was over last, as far as a later heartbeat has shown it

  ClientNetwork(World& world, Exchanges& exchanges, int32_t number, const std::map<int32_t, int16_t>& versions,
                const std::vector<NodeAddress>& bootstrap)
      : client(number), world_(world), exchanges_(exchanges), versions_(versions), bootstrap_(bootstrap),
        pool_(BlockPool::create()) {
    use_bootstrap();
  }
  ~ClientNetwork() {
    for (auto& entry : links_) {
      if (entry.second.connection) entry.second.connection->alive = false;
      for (const InFlight& f : entry.second.in_flight) delete f.request;
    }
    for (Completion& c : finished_) {
      if (c.response.block) BlockPool::release(c.response.block);
      delete c.request;
    }
    pool_->unref();
  }
  void use_pool(BlockPool* pool) {
    pool->ref();
    pool_->unref();
    pool_ = pool;
  }

  int ready(int32_t node, int channel) {
    if (closed_ || nodes_.count(node) == 0) return UNKNOWN;
    Link& link = links_[{node, channel}];
    if (link.state == DOWN) {
      if (link.next_attempt_ms > world_.now_ms) return BACKOFF;
      connect(node, channel, link);
      return CONNECTING;
    }
    if (link.state == MAKING) return CONNECTING;
    auto muted = throttled_until_ms_.find({node, channel});
    if (muted != throttled_until_ms_.end() && muted->second > world_.now_ms) return BUSY;
    const bool parks = channel == CHANNEL_FETCH || channel == CHANNEL_JOIN;
    return link.in_flight.size() >= (parks ? 1u : 5u) ? BUSY : READY;
  }

  // From now on nothing is lost, but nothing arrives either, in one direction or in both, until the network is back.
  void cut(bool outbound, bool inbound, int64_t for_ms) {
    if (outbound) cut_out_until_ms_ = world_.now_ms + for_ms;
    if (inbound) cut_in_until_ms_ = world_.now_ms + for_ms;
    world_.trace("client %d: cut off for %lld ms%s%s", client, static_cast<long long>(for_ms), outbound ? " outbound" : "",
                 inbound ? " inbound" : "");
  }
  void end_cuts() { cut_out_until_ms_ = cut_in_until_ms_ = 0; }

  void send(Request* request) {
    Link& link = links_[{request->node_id, request->channel}];
    const int16_t api = request->body->api_key();
    const int32_t version = common_version(api, request->body->min_version(), request->body->max_version());
    if (link.state != UP) return finish_failed(request, ERR_TRANSPORT, "not connected");
    if (version < 0) return finish_failed(request, ERR_UNSUPPORTED_FEATURE, std::string("no common version of ") + api_name(api));
    Writer w;
    request->body->encode(w, static_cast<int16_t>(version));
    Arrived arrived;
    arrived.number = ++last_number_;
    arrived.api = api;
    arrived.version = static_cast<int16_t>(version);
    arrived.body.assign(reinterpret_cast<const char*>(w.data()), w.size());
    request->sent_ms = world_.now_ms;
    link.in_flight.push_back(InFlight{arrived.number, request, arrived.version});
    check_session(*request, arrived);
    const Faults& f = world_.faults;
    const bool lost = world_.goes_wrong(f.lose_request);
    arrived.lose_response = world_.goes_wrong(f.lose_response);
    arrived.swallow = world_.goes_wrong(f.hang);
    const ConnectionPtr c = link.connection;
    const bool held = world_.now_ms < cut_out_until_ms_;
    const int64_t when = std::max({link.last_arrival_ms, c->last_arrival_ms,
                                   after_cut(cut_out_until_ms_, world_.now_ms + world_.one_way_ms())});
    c->last_arrival_ms = when;
    if (!held) link.last_arrival_ms = when;
    world_.trace("client %d: %s v%d to %d/%d%s%s%s", client, api_name(api), version, request->node_id,
                 static_cast<int>(request->channel), lost ? " (lost)" : "", arrived.lose_response ? " (answer lost)" : "",
                 arrived.swallow ? " (swallowed)" : "");
    if (lost) {
      world_.at(when, [c] {
        if (c->alive) c->broken();
      });
    } else {
      world_.at(when, [this_ = &exchanges_, c, held, arrived = std::move(arrived)]() mutable {
        // A connection that was given up is reset: its kernel drops what it could not send.
        if (c->alive || !held) this_->arrive(c, std::move(arrived));
      });
    }
  }

  void poll(int64_t timeout_ms, std::vector<Completion>& done) {
    expire();
    const bool anything = !finished_.empty();
    for (Completion& c : finished_) {
      c.response.received_ms = world_.now_ms;
      done.push_back(c);
    }
    finished_.clear();
    needs_turn = anything;
    due_ms = timeout_ms > INT64_MAX / 2 ? INT64_MAX : world_.now_ms + std::max<int64_t>(timeout_ms, 0);
  }
  int64_t next_timeout_ms() const {
    if (!finished_.empty()) return 0;
    int64_t due = INT64_MAX;
    for (const auto& entry : links_) {
      for (const InFlight& f : entry.second.in_flight) due = std::min(due, f.request->deadline_ms);
      if (entry.second.state == UP && !entry.second.in_flight.empty()) due = std::min(due, silent_due_ms(entry.first, entry.second));
      if (entry.second.state == MAKING) due = std::min(due, entry.second.slow_due_ms);
      if (entry.second.state == DOWN && entry.second.next_attempt_ms > world_.now_ms) {
        due = std::min(due, entry.second.next_attempt_ms);
      }
    }
    for (const auto& entry : throttled_until_ms_) {
      if (entry.second > world_.now_ms) due = std::min(due, entry.second);
    }
    return due == INT64_MAX ? due : std::max<int64_t>(0, due - world_.now_ms);
  }

  void set_nodes(const std::vector<NodeAddress>& nodes) {
    if (nodes.empty()) return rebootstrap();
    std::map<int32_t, NodeAddress> before;
    before.swap(nodes_);
    for (const NodeAddress& n : nodes) nodes_[n.id] = n;
    for (const auto& entry : before) {
      if (entry.first >= 0 && nodes_.count(entry.first) == 0) lose_node(entry.first, "the broker is gone");
    }
  }
  void rebootstrap() {
    for (const auto& entry : std::map<int32_t, NodeAddress>(nodes_)) lose_node(entry.first, "back to the bootstrap list");
    nodes_.clear();
    use_bootstrap();
  }
  void throttle(int32_t node, int channel, int32_t ms) {
    if (ms <= 0) return;
    int64_t& until_ms = throttled_until_ms_[{node, channel}];
    until_ms = std::max(until_ms, world_.now_ms + ms);
  }
  void disconnect(int32_t node, int channel) { lose(node, channel, ERR_TRANSPORT, "disconnected by the client", false); }
  void renew(int32_t node, int channel) {
    lose(node, channel, ERR_INTR, "given up for another", false);
    links_[{node, channel}].next_attempt_ms = 0;
  }
  void close_all() {
    closed_ = true;
    for (auto& entry : links_) lose(entry.first.first, entry.first.second, ERR_TRANSPORT, "the client is closing", false);
  }
  bool take_failure(int32_t node, int channel, Status* out) {
    auto it = links_.find({node, channel});
    if (it == links_.end() || it->second.failure.ok()) return false;
    *out = it->second.failure;
    it->second.failure = Status();
    return true;
  }
  int32_t least_loaded() {
    std::vector<int32_t> best;
    size_t best_rank = SIZE_MAX;
    for (const auto& entry : nodes_) {
      auto it = links_.find({entry.first, CHANNEL_CONTROL});
      size_t rank = 2000;
      if (it != links_.end()) {
        const Link& link = it->second;
        if (link.state == DOWN && link.next_attempt_ms > world_.now_ms) continue;
        if (link.state == UP) rank = link.in_flight.size();
        if (link.state == MAKING) rank = 1000;
      }
      if (rank < best_rank) best.clear();
      if (rank <= best_rank) best.push_back(entry.first);
      best_rank = std::min(rank, best_rank);
    }
    return best.empty() ? -1 : best[static_cast<size_t>(world_.chance.below(static_cast<int64_t>(best.size())))];
  }
  int32_t usable_version(int32_t node, int channel, int32_t api, int32_t low, int32_t high) const {
    auto it = links_.find({node, channel});
    return it != links_.end() && it->second.state == UP ? common_version(api, low, high) : -1;
  }
  int32_t in_flight() const {
    size_t n = finished_.size();
    for (const auto& entry : links_) n += entry.second.in_flight.size();
    return static_cast<int32_t>(n);
  }
  bool any_connected() const {
    for (const auto& entry : links_) {
      if (entry.second.state == UP) return true;
    }
    return false;
  }
  std::string name(int32_t node) const {
    auto it = nodes_.find(node);
    return it == nodes_.end() ? std::string() : it->second.host + ":" + std::to_string(it->second.port);
  }
  void take_losses(std::vector<NodeLoss>& out) {
    out.swap(losses_);
    losses_.clear();
  }
  // A broker stops, or the process of this network: every connection to it breaks.
  void broker_stopped(int32_t broker) {
    for (auto& entry : links_) {
      if (entry.second.connection && entry.second.connection->node == broker && entry.second.state != DOWN) {
        lose(entry.first.first, entry.first.second, ERR_TRANSPORT, "connection reset", true);
      }
    }
  }

 private:
  enum State { DOWN, MAKING, UP };
  struct InFlight {
    uint64_t number = 0;
    Request* request = nullptr;
    int16_t version = 0;
  };
  struct Link {
    State state = DOWN;
    ConnectionPtr connection;
    std::deque<InFlight> in_flight;
    int64_t next_attempt_ms = 0;
    int64_t last_read_ms = 0;
    int64_t slow_due_ms = 0;       // MAKING: when the requests that wait for it fail
    int64_t last_arrival_ms = 0;   // across its connections: data sent on an older one does not arrive later
    int32_t attempts = 0;
    Status failure;
  };

  void use_bootstrap() {
    for (const NodeAddress& n : bootstrap_) nodes_[n.id] = n;
  }
  static int32_t broker_of(const NodeAddress& node) { return std::atoi(node.host.c_str() + node.host.rfind('-') + 1); }
  int32_t common_version(int32_t api, int32_t low, int32_t high) const {
    auto it = versions_.find(api);
    if (it != versions_.end()) high = std::min<int32_t>(high, it->second);
    return high >= low ? high : -1;
  }
  void connect(int32_t node, int channel, Link& link) {
    auto c = std::make_shared<Connection>();
    c->client = client;
    c->node = broker_of(nodes_[node]);
    c->channel = channel;
    c->stops = exchanges_.stops[c->node];
    c->deliver = [this, node, channel](uint64_t number, std::string body) { take(node, channel, number, body); };
    c->broken = [this, node, channel] { lose(node, channel, ERR_TRANSPORT, "connection lost", true); };
    c->arrives_ms = [this](int64_t when_ms) {
      return world_.now_ms < cut_in_until_ms_ ? after_cut(cut_in_until_ms_, when_ms) : when_ms;
    };
    link.connection = c;
    link.state = MAKING;
    link.slow_due_ms = world_.now_ms + kSlowMs;
    const bool fails = world_.goes_wrong(world_.faults.lose_request);
    const int64_t when = std::max(world_.now_ms + 2 * world_.one_way_ms(), link.last_arrival_ms + 1);
    world_.at(when, [this, c, node, channel, fails] { connected(c, node, channel, fails); });
  }
  void connected(const ConnectionPtr& c, int32_t node, int channel, bool fails) {
    if (!c->alive) return;
    if (world_.now_ms < std::max(cut_out_until_ms_, cut_in_until_ms_)) {
      // It dials again every second.
      world_.after(world_.chance.between(1, 1000), [this, c, node, channel, fails] { connected(c, node, channel, fails); });
      return;
    }
    Link& l = links_[{node, channel}];
    if (fails || !exchanges_.is_up(c->node)) return lose(node, channel, ERR_TRANSPORT, "connection refused", true);
    l.state = UP;
    l.attempts = 0;
    l.last_read_ms = world_.now_ms;
    l.last_arrival_ms = std::max(l.last_arrival_ms, world_.now_ms);
    needs_turn = true;
  }
  void take(int32_t node, int channel, uint64_t number, const std::string& body) {
    Link& link = links_[{node, channel}];
    if (link.in_flight.empty() || link.in_flight.front().number != number) {
      return world_.violate("client %d: an answer out of order", client);
    }
    const InFlight asked = link.in_flight.front();
    const int64_t late_ms = world_.now_ms - silent_since_ms({node, channel}, link) - asked.request->wait_ms;
    silence_[node].learn(late_ms, kSlowMs, kMostSilentMs, world_.now_ms);
    link.in_flight.pop_front();
    link.last_read_ms = world_.now_ms;
    note_heard(*asked.request, asked.version, body);
    Completion ended;
    Block* block = pool_->take(std::max<size_t>(body.size(), 1));
    std::memcpy(block->data, body.data(), body.size());
    block->size = body.size();
    ended.request = asked.request;
    ended.response.block = block;
    ended.response.body = block->data;
    ended.response.length = block->size;
    ended.response.version = asked.version;
    ended.response.node_id = node;
    ended.response.channel = asked.request->channel;
    finished_.push_back(ended);
    needs_turn = true;
  }
  void finish_failed(Request* request, int32_t code, const std::string& why) {
    Completion ended;
    ended.request = request;
    ended.failed = true;
    ended.status = Status(code, why);
    finished_.push_back(ended);
    needs_turn = true;
  }
  void lose(int32_t node, int channel, int32_t code, const char* why, bool unwanted) {
    Link& link = links_[{node, channel}];
    if (link.state == DOWN) return;
    const bool was_ready = link.state == UP;
    link.state = DOWN;
    link.connection->alive = false;
    link.attempts += 1;
    link.next_attempt_ms = world_.now_ms + std::min<int64_t>(50ll << std::min(link.attempts, 5), 1000);
    std::deque<InFlight> ended;
    ended.swap(link.in_flight);
    for (const InFlight& f : ended) finish_failed(f.request, code, why);
    needs_turn = true;
    if (!unwanted) return;
    if (!was_ready) link.failure = Status(code, why);
    NodeLoss loss;
    loss.node_id = node;
    loss.was_ready = was_ready;
    loss.repeated = !was_ready && link.attempts > 1;
    loss.status = Status(code, why);
    losses_.push_back(loss);
  }
  void lose_node(int32_t node, const char* why) {
    for (int channel = 0; channel < 4; ++channel) {
      if (links_.count({node, channel})) lose(node, channel, ERR_TRANSPORT, why, false);
    }
  }
  // Answers come in order, so a missing one delays all later ones: only a new connection helps.
  void expire() {
    for (auto& entry : links_) {
      for (const InFlight& f : entry.second.in_flight) {
        if (f.request->deadline_ms > world_.now_ms) continue;
        world_.trace("client %d: %s timed out", client, api_name(f.request->body->api_key()));
        lose(entry.first.first, entry.first.second, ERR_TIMED_OUT, "timed out", true);
        break;
      }
      expire_silence(entry.first, entry.second);
    }
  }
  // As NetworkClient.expire_silence() and report_slow().
  void expire_silence(const std::pair<int32_t, int>& where, Link& link) {
    if (link.state == MAKING && link.slow_due_ms <= world_.now_ms) {
      link.slow_due_ms = world_.now_ms + kSlowMs;
      link.failure = Status(ERR_TRANSPORT, "no answer yet");
    }
    if (link.state != UP || link.in_flight.empty() || silent_due_ms(where, link) > world_.now_ms) return;
    const int64_t since_ms = silent_since_ms(where, link);
    world_.trace("client %d: %d/%d is silent", client, where.first, where.second);
    silence_[where.first].raise(kSlowMs, kMostSilentMs, world_.now_ms);
    for (auto& other : links_) {
      if (other.first.first == where.first && other.second.state == UP && &other.second != &link &&
          other.second.last_read_ms < since_ms) {
        lose(other.first.first, other.first.second, ERR_TIMED_OUT, "silent", true);
      }
    }
    lose(where.first, where.second, ERR_TIMED_OUT, "silent", true);
  }
  int64_t silent_since_ms(const std::pair<int32_t, int>& where, const Link& link) const {
    auto muted = throttled_until_ms_.find(where);
    return std::max({link.last_read_ms, link.in_flight.front().request->sent_ms,
                     muted == throttled_until_ms_.end() ? 0 : muted->second});
  }
  int64_t silent_due_ms(const std::pair<int32_t, int>& where, const Link& link) const {
    auto limit = silence_.find(where.first);
    return silent_since_ms(where, link) + link.in_flight.front().request->wait_ms +
           (limit == silence_.end() ? kSlowMs : limit->second.ms(kSlowMs, world_.now_ms));
  }
  // What a cut holds back comes a while after its end: the sender's kernel repeats it then.
  int64_t after_cut(int64_t until_ms, int64_t when_ms) {
    return world_.now_ms < until_ms ? std::max(when_ms, until_ms + world_.chance.between(0, 1000)) : when_ms;
  }
  // The invariants of a session, which counts from the sending of the latest answered heartbeat.
  void note_heard(const Request& asked, int16_t version, const std::string& body) {
    Reader r(reinterpret_cast<const uint8_t*>(body.data()), body.size());
    int16_t error = -1;
    if (asked.body->api_key() == API_HEARTBEAT) {
      HeartbeatResponse message;
      message.decode(r, version);
      error = message.error_code;
    } else if (asked.body->api_key() == API_SYNC_GROUP) {
      SyncGroupResponse message;
      message.decode(r, version);
      error = message.error_code;
    } else if (asked.body->api_key() == API_CONSUMER_GROUP_HEARTBEAT) {
      ConsumerGroupHeartbeatResponse message;
      message.decode(r, version);
      error = message.error_code;
    }
    // A coordinator that holds a JoinGroup back knows its member, though at a later generation.
    const bool held = error == ILLEGAL_GENERATION && asked.body->api_key() == API_HEARTBEAT && awaits(API_JOIN_GROUP);
    if (error == NONE || error == REBALANCE_IN_PROGRESS || error == COORDINATOR_LOAD_IN_PROGRESS || held) {
      if (heard_ms >= 0 && world_.now_ms > heard_ms + world_.session_ms) over_ms = world_.now_ms;
      heard_ms = std::max(heard_ms, asked.sent_ms);
    }
  }
  bool awaits(int16_t api) const {
    for (const auto& entry : links_) {
      for (const InFlight& f : entry.second.in_flight) {
        if (f.request->body->api_key() == api) return true;
      }
    }
    return false;
  }
  void check_session(const Request& request, const Arrived& sent) {
    if (sent.api != API_OFFSET_COMMIT || world_.session_ms == 0 || heard_ms < 0) return;
    OffsetCommitRequest message;
    Reader r(reinterpret_cast<const uint8_t*>(sent.body.data()), sent.body.size());
    message.decode(r, sent.version);
    if (message.generation_id_or_member_epoch >= 0 && world_.now_ms > heard_ms + world_.session_ms) {
      world_.violate("client %d commits although it could know that its session is over: heard %.3f", client,
                     static_cast<double>(heard_ms) / 1000);
    }
  }

  static constexpr int64_t kSlowMs = 1000;
  static constexpr int64_t kMostSilentMs = 60000;

  World& world_;
  Exchanges& exchanges_;
  int64_t cut_out_until_ms_ = 0;
  int64_t cut_in_until_ms_ = 0;
  std::map<int32_t, SilenceLimit> silence_;
  const std::map<int32_t, int16_t>& versions_;
  const std::vector<NodeAddress> bootstrap_;
  BlockPool* pool_;
  bool closed_ = false;
  std::map<int32_t, NodeAddress> nodes_;
  std::map<std::pair<int32_t, int>, Link> links_;
  std::map<std::pair<int32_t, int>, int64_t> throttled_until_ms_;
  std::vector<Completion> finished_;
  std::vector<NodeLoss> losses_;
  uint64_t last_number_ = 0;
};

}  // namespace kc::sim
