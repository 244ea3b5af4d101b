// Owns: Node and Connection, the data of a broker and of one TCP connection to it.
// Threads: N. Never: contains logic. connection.pxi reads and writes bytes, connector.pxi opens and closes connections,
// network_client.pxi manages brokers and requests.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "network/request.hpp"
#include "network/socket.hpp"
#include "network/transport.hpp"
#include "protocol/api_versions.hpp"
#include "protocol/wire.hpp"

namespace kc {

// A connection passes through the states in this order.
enum ConnectionState : uint8_t {
  CONN_DOWN,          // no socket; the next attempt is possible from next_attempt_ms on
  CONN_RESOLVING,     // resolving the host name
  CONN_CONNECTING,    // TCP handshake with addresses[address_index]
  CONN_HANDSHAKE,     // handshake of the transport (TLS)
  CONN_API_VERSIONS,  // waiting for the response to ApiVersions
  CONN_SASL,          // the first authentication; later ones happen in CONN_READY
  CONN_READY,
};

constexpr int kChannels = 4;

// A sent request. Responses come in the order of requests, so the next frame is the response to the front.
struct InFlight {
  Request* request = nullptr;  // owned; null for an internal request, and after a timeout that keeps the connection
  int32_t correlation_id = 0;
  int16_t api_key = 0;
  int16_t version = 0;
  int16_t response_header_version = 0;
  bool internal = false;       // a request of the connection itself: ApiVersions or SASL
  bool bare = false;           // a SASL token without a header; its response has no header either
  bool given_up = false;       // its deadline has passed: drop the response
  int64_t deadline_ms = 0;
  int64_t wait_ms = 0;         // of its request
  int64_t hold_ms = 0;
  int64_t sent_us = 0;
  size_t expected_bytes = 0;
};

// How long a broker may be silent beyond the wait that a request asked for: then the connection is given up. A dropped
// packet filter or a forgotten NAT entry shows in nothing else. The limit starts short, since a reconnect costs little,
// and doubles with each connection that is given up: a slow disk or a busy broker must not be given up for ever. A minute
// after the latest slow answer it is short again.
class SilenceLimit {
 public:
  int64_t ms(int64_t first_ms, int64_t now_ms) const {
    return now_ms - raised_ms_ < kCalmMs ? std::max(first_ms, ms_) : first_ms;
  }
  void raise(int64_t first_ms, int64_t most_ms, int64_t now_ms) { set(std::min(2 * ms(first_ms, now_ms), most_ms), now_ms); }
  // An answer came late_ms after the wait of its request: the next one may take as long.
  void learn(int64_t late_ms, int64_t first_ms, int64_t most_ms, int64_t now_ms) {
    if (2 * late_ms > first_ms && 2 * late_ms >= ms(first_ms, now_ms)) set(std::min(2 * late_ms, most_ms), now_ms);
  }

 private:
  static constexpr int64_t kCalmMs = 60000;
  void set(int64_t ms, int64_t now_ms) {
    ms_ = ms;
    raised_ms_ = now_ms;
  }
  int64_t ms_ = 0;
  int64_t raised_ms_ = -kCalmMs;
};

// A socket whose TCP handshake runs.
struct Dial {
  int fd = -1;
  size_t address = 0;  // index into Connection.addresses
};

// The open descriptors, for the child of a fork. N may have been changing any other container during the fork, so the
// child closes these descriptors and reads nothing else. shared: atomics; N writes them.
class OpenDescriptors {
 public:
  void add(int fd) {
    Chunk* chunk = &first_;
    for (;; chunk = next_of(chunk)) {
      for (auto& slot : chunk->slots) {
        int expected = -1;
        if (slot.compare_exchange_strong(expected, fd)) return;
      }
    }
  }
  void remove(int fd) {
    for (Chunk* chunk = &first_; chunk; chunk = chunk->next.load()) {
      for (auto& slot : chunk->slots) {
        int expected = fd;
        if (slot.compare_exchange_strong(expected, -1)) return;
      }
    }
  }
  void close_all() {
    for (Chunk* chunk = &first_; chunk; chunk = chunk->next.load()) {
      for (auto& slot : chunk->slots) {
        int fd = slot.exchange(-1);
        if (fd >= 0) ::close(fd);
      }
    }
  }
  ~OpenDescriptors() {
    for (Chunk* chunk = first_.next.load(); chunk;) {
      Chunk* next = chunk->next.load();
      delete chunk;
      chunk = next;
    }
  }

 private:
  struct Chunk {
    std::atomic<int> slots[64];
    std::atomic<Chunk*> next{nullptr};
    Chunk() {
      for (auto& slot : slots) slot.store(-1);
    }
  };
  static Chunk* next_of(Chunk* chunk) {
    if (!chunk->next.load()) chunk->next.store(new Chunk());
    return chunk->next.load();
  }
  Chunk first_;
};

// At most two dials a second to a broker that does not answer, over all its connections.
class DialLimit {
 public:
  int64_t next_ms() const { return failing_ ? before_last_ms_ + kPeriodMs : 0; }
  void dialled(int64_t now_ms) {
    before_last_ms_ = last_ms_;
    last_ms_ = now_ms;
  }
  void set_failing(bool failing) { failing_ = failing; }

 private:
  static constexpr int64_t kPeriodMs = 1000;
  bool failing_ = false;
  int64_t last_ms_ = -kPeriodMs;
  int64_t before_last_ms_ = -kPeriodMs;
};

struct Node;
struct SaslSession;

struct Connection {
  Node* node = nullptr;
  Channel channel = CHANNEL_CONTROL;
  ConnectionState state = CONN_DOWN;

  // The socket, and its registered interest in the selector. In CONN_CONNECTING there are `dials` instead.
  int fd = -1;
  uint8_t interest = 0;
  std::unique_ptr<Transport> transport;

  // The current attempt.
  std::vector<SocketAddress> addresses;
  size_t address_index = 0;      // kept between attempts, so that the next one starts at another address
  size_t addresses_tried = 0;
  std::vector<Dial> dials;       // the first whose handshake ends becomes `fd`
  int64_t next_dial_ms = 0;
  int64_t handshake_ms = 0;      // when the TCP handshake ended
  std::string attempt_errors;    // the error of each address
  bool unreachable = false;      // the network reported that it cannot reach an address, or a name server does not answer
  bool answered = false;         // the host of an address has answered, if only by a refusal
  int64_t attempt_started_ms = 0;
  int64_t setup_deadline_ms = 0;
  uint64_t credentials = 0;      // ticket of the check of the TLS credentials for which this attempt waits
  int16_t api_versions_version = 0;

  // Between attempts.
  int32_t failures = 0;          // since the last success
  int64_t next_attempt_ms = 0;
  Status failure;                // error of the latest failed attempt, until a caller takes it
  bool refused = false;          // one side rejected the other's identity: an early retry does not help
  int64_t last_used_ms = 0;
  int64_t throttled_until_ms = 0;  // the broker reads nothing from this connection until then
  std::string logged_detail;     // text and time of the latest logged loss
  int64_t logged_ms = 0;

  // Sending: encoded requests; the first out_sent bytes are sent.
  Writer out;
  size_t out_sent = 0;
  std::deque<InFlight> in_flight;
  int32_t next_correlation_id = 1;
  int32_t timeouts = 0;          // since the last response, for socket.max.fails
  int64_t last_read_ms = 0;      // when bytes arrived last
  bool served = false;           // the broker has answered a request of a manager

  // Receiving: the 4-byte size, then the frame in `frame`.
  uint8_t size_bytes[4] = {};
  size_t size_have = 0;
  size_t frame_length = 0;
  Block* frame = nullptr;

  ApiVersionTable api_versions;
  std::shared_ptr<SaslSession> sasl;  // null without SASL, and before CONN_SASL

  Connection(Node* n, Channel c) : node(n), channel(c) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    for (auto& f : in_flight) delete f.request;
    if (frame) BlockPool::release(frame);
  }
  void use(Transport* made) { transport.reset(made); }
  int32_t take_correlation_id() {
    int32_t id = next_correlation_id;
    next_correlation_id = id == INT32_MAX ? 1 : id + 1;
    return id;
  }
  Transport* wire() { return transport.get(); }
  // Since when the broker owes bytes. A throttled connection owes none.
  int64_t silent_since_ms() const {
    return std::max({last_read_ms, in_flight.front().sent_us / 1000, throttled_until_ms});
  }
  // Resets all data of the socket and its session. The caller has already emptied in_flight.
  void reset_io() {
    transport.reset();
    fd = -1;
    interest = 0;
    out.clear();
    out_sent = 0;
    size_have = 0;
    frame_length = 0;
    if (frame) BlockPool::release(frame);
    frame = nullptr;
    timeouts = 0;
    served = false;
    api_versions.clear();
    sasl.reset();
  }
  const SocketAddress& address() const { return addresses[address_index]; }
  // Notes the error of an address once, however often it was dialled.
  void address_failed(size_t address, const std::string& why) {
    const std::string text = addresses[address].text() + " failed: " + why;
    if (attempt_errors.find(text) == std::string::npos) attempt_errors += (attempt_errors.empty() ? "" : ", ") + text;
  }
  void next_address() { address_index = addresses.empty() ? 0 : (address_index + 1) % addresses.size(); }
  // Takes the resolver's addresses. If they are new, the attempts start at the first address again.
  void adopt_addresses(const std::vector<SocketAddress>& found, bool all) {
    std::vector<SocketAddress> wanted(found.begin(), all ? found.end() : found.begin() + 1);
    if (!(wanted == addresses)) address_index = 0;
    addresses.swap(wanted);
  }
};

struct Node {
  int32_t id = -1;
  std::string host;
  int32_t port = 0;
  std::string rack;
  std::string name;                // host:port
  bool retiring = false;           // no longer in the broker list: to be freed after the requests in flight
  std::string refusal;             // the latest reported refusal, of any connection, until the broker accepts one
  bool silent = false;             // a request has timed out, and no response has come since, on any connection
  SilenceLimit silence;
  DialLimit dials;
  std::unique_ptr<Connection> connections[kChannels];

  explicit Node(const NodeAddress& a)
      : id(a.id), host(a.host), port(a.port), rack(a.rack), name(host_and_port(a.host, a.port)) {}
  // Allocates the statistics at the first use, so that a broker without connections costs little memory.
  NodeStats* stats() {
    if (!stats_) {
      stats_.reset(new NodeStats());
      stats_->node_id = id;
      stats_->name = name;
    }
    return stats_.get();
  }
  // Appends the statistics, also of a broker without connections, and starts new windows.
  void collect_stats(std::vector<NodeStats>& out) {
    if (stats_) {
      out.push_back(stats_->take());
      return;
    }
    out.emplace_back();
    out.back().node_id = id;
    out.back().name = name;
  }
  // Sets a connection's state; all changes use this method. The node's state is that of its furthest connection.
  void enter(Connection& c, ConnectionState state, int64_t now_ms) {
    int before = furthest();
    c.state = state;
    if (furthest() != before) stats()->state_since_ms = now_ms;
  }
  // Returns the state of the furthest connection; -1 without connections.
  int furthest() const {
    int found = -1;
    for (const auto& c : connections)
      if (c) found = std::max(found, static_cast<int>(c->state));
    return found;
  }
  // Returns librdkafka's name for the state of the furthest connection.
  const char* state_word() const {
    switch (furthest()) {
      case CONN_DOWN: return "DOWN";
      case CONN_RESOLVING: return "TRY_CONNECT";
      case CONN_CONNECTING:
      case CONN_HANDSHAKE: return "CONNECT";
      case CONN_API_VERSIONS: return "APIVERSION_QUERY";
      case CONN_SASL: return "AUTH_REQ";
      case CONN_READY: return "UP";
      default: return "INIT";
    }
  }
  Connection* connection(Channel c) { return connections[c].get(); }
  Connection* make_connection(Channel c) {
    connections[c].reset(new Connection(this, c));
    return connections[c].get();
  }
  // Takes the connections of a node with the same address.
  void adopt_connections(Node& other) {
    for (int c = 0; c < kChannels; ++c) {
      connections[c] = std::move(other.connections[c]);
      if (!connections[c]) continue;
      connections[c]->node = this;
      stats()->state_since_ms = other.stats()->state_since_ms;
      stats()->last_tx_us = other.stats()->last_tx_us;
      stats()->last_rx_us = other.stats()->last_rx_us;
    }
  }
  // Moves the next attempt of each connection to at most `latest_ms`, because the broker is known to be up. Skips
  // refused connections unless `refused`. Returns whether it moved any.
  bool retry_by(int64_t latest_ms, bool refused) {
    bool any = false;
    for (auto& c : connections) {
      if (!c || c->state != CONN_DOWN || c->next_attempt_ms <= latest_ms || (c->refused && !refused)) continue;
      c->next_attempt_ms = latest_ms;
      any = true;
    }
    return any;
  }
  bool at(const NodeAddress& a) const { return host == a.host && port == a.port; }

 private:
  std::unique_ptr<NodeStats> stats_;
};

}  // namespace kc
