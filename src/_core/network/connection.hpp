// Owns: Node and Connection, the data of a broker and of one TCP connection to it.
// Threads: N. Never: decides anything: the logic is in connection.pyx (bytes in and out), connector.pyx (the life of a
// connection) and network_client.pyx (brokers and requests).
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

// In the order they are gone through.
enum ConnectionState : uint8_t {
  CONN_DOWN,          // no socket; next_attempt_ms says when the next may be opened
  CONN_RESOLVING,     // the host's name is being looked up
  CONN_CONNECTING,    // TCP handshake with addresses[address_index]
  CONN_HANDSHAKE,     // the transport's own
  CONN_API_VERSIONS,  // version ranges asked for
  CONN_SASL,          // authenticating for the first time; later times happen in CONN_READY
  CONN_READY,
};

constexpr int kChannels = 4;

// A request on the wire. Responses come in the order of requests, so the front belongs to the next frame.
struct InFlight {
  Request* request = nullptr;  // owned; null for the connection's own ApiVersions and after a timeout that was survived
  int32_t correlation_id = 0;
  int16_t api_key = 0;
  int16_t version = 0;
  int16_t response_header_version = 0;
  bool internal = false;       // the connection's own
  bool bare = false;           // a SASL token without headers, as its response
  bool given_up = false;       // its deadline has passed: the response will be dropped
  int64_t deadline_ms = 0;
  int64_t sent_us = 0;
  size_t expected_bytes = 0;
};

// Descriptors that are open, for the child of a fork: N may have been changing any other container when it was forked,
// so it closes what stands here and looks at nothing else. shared: atomics; written by N.
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

struct Node;
struct SaslSession;

struct Connection {
  Node* node = nullptr;
  Channel channel = CHANNEL_CONTROL;
  ConnectionState state = CONN_DOWN;

  // The socket, and what the selector was last told about it.
  int fd = -1;
  uint8_t interest = 0;
  std::unique_ptr<Transport> transport;

  // The attempt under way.
  std::vector<SocketAddress> addresses;
  size_t address_index = 0;      // kept between attempts at the same addresses, so that the next starts elsewhere
  size_t addresses_tried = 0;
  std::string attempt_errors;    // what each address answered
  int64_t attempt_started_ms = 0;
  int64_t setup_deadline_ms = 0;
  uint64_t credentials = 0;      // the look at the TLS credentials that this attempt waits for
  int16_t api_versions_version = 0;

  // Between attempts.
  int32_t failures = 0;          // since the last success
  int64_t next_attempt_ms = 0;
  Status failure;                // of the latest failed attempt, until taken
  bool refused = false;          // the broker or we rejected an identity: an early retry does not help
  int64_t last_used_ms = 0;
  std::string logged_detail;     // the latest loss that was logged, and when
  int64_t logged_ms = 0;

  // Sending: encoded requests, of which the first out_sent bytes are gone.
  Writer out;
  size_t out_sent = 0;
  std::deque<InFlight> in_flight;
  int32_t next_correlation_id = 1;
  int32_t timeouts = 0;          // since the last response, for socket.max.fails
  bool served = false;           // a request has been answered

  // Receiving: the 4-byte size, then the frame in `frame`.
  uint8_t size_bytes[4] = {};
  size_t size_have = 0;
  size_t frame_length = 0;
  Block* frame = nullptr;

  ApiVersionTable api_versions;
  std::shared_ptr<SaslSession> sasl;  // null without SASL, and before its turn

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
  // Forgets the socket and everything that was learnt over it; in_flight has been emptied by the caller.
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
  void next_address() { address_index = addresses.empty() ? 0 : (address_index + 1) % addresses.size(); }
  // Takes a new answer of the resolver; the turn of the old list goes on only when the list is the same.
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
  int64_t throttled_until_ms = 0;
  bool retiring = false;           // no longer listed: what is in flight may end, then it goes
  std::string refusal;             // the latest told, of any connection, until one is accepted
  bool silent = false;             // a request has timed out, and nothing has come since, over any connection
  std::unique_ptr<Connection> connections[kChannels];

  explicit Node(const NodeAddress& a)
      : id(a.id), host(a.host), port(a.port), rack(a.rack), name(host_and_port(a.host, a.port)) {}
  // Made at the first use: a broker that is only listed costs its address.
  NodeStats* stats() {
    if (!stats_) {
      stats_.reset(new NodeStats());
      stats_->node_id = id;
      stats_->name = name;
    }
    return stats_.get();
  }
  // Appends what is known of it, also where it was never connected to; the windows start again.
  void collect_stats(std::vector<NodeStats>& out) {
    if (stats_) {
      out.push_back(stats_->take());
      return;
    }
    out.emplace_back();
    out.back().node_id = id;
    out.back().name = name;
  }
  // Every change of a connection's state goes through here: the node's own state is that of the furthest.
  void enter(Connection& c, ConnectionState state, int64_t now_ms) {
    int before = furthest();
    c.state = state;
    if (furthest() != before) stats()->state_since_ms = now_ms;
  }
  // The furthest connection's state, -1 where there is none.
  int furthest() const {
    int found = -1;
    for (const auto& c : connections)
      if (c) found = std::max(found, static_cast<int>(c->state));
    return found;
  }
  Connection* connection(Channel c) { return connections[c].get(); }
  Connection* make_connection(Channel c) {
    connections[c].reset(new Connection(this, c));
    return connections[c].get();
  }
  // Hands a connection over from a node at the same address.
  void adopt_connection(Node& other, Channel c) {
    connections[c] = std::move(other.connections[c]);
    if (!connections[c]) return;
    connections[c]->node = this;
    stats()->state_since_ms = other.stats()->state_since_ms;
    stats()->last_tx_us = other.stats()->last_tx_us;
    stats()->last_rx_us = other.stats()->last_rx_us;
  }
  // The broker is known to be there: no connection to it waits beyond `latest_ms` for its next attempt, those it has
  // refused only with `refused`. False where none did.
  bool hurry(int64_t latest_ms, bool refused) {
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
