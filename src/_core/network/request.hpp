// Owns: the requests and responses between managers and brokers. thread: N.
// Never: interprets a request, touches sockets or Python.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/window_stats.hpp"
#include "network/security.hpp"
#include "protocol/wire.hpp"
#include "records/block.hpp"

namespace kc {

// The purpose of a connection. A broker answers the requests of one connection in order, so a Fetch or JoinGroup that
// waits at the broker must never precede a heartbeat.
enum Channel : uint8_t { CHANNEL_CONTROL = 0, CHANNEL_FETCH = 1, CHANNEL_COORDINATOR = 2, CHANNEL_JOIN = 3 };

constexpr int32_t ANY_NODE = -1;  // the least loaded known broker

// A request body, encoded in one of its versions as soon as the versions of the connection are known.
struct RequestBody {
  virtual ~RequestBody() = default;
  virtual int16_t api_key() const = 0;
  virtual int16_t min_version() const = 0;
  virtual int16_t max_version() const = 0;        // the highest version that the data allow
  virtual int16_t request_header_version(int16_t version) const = 0;
  virtual int16_t response_header_version(int16_t version) const = 0;
  virtual void encode(Writer& w, int16_t version) const = 0;
};

template <class Message>
struct BodyOf : RequestBody {
  Message message;
  int16_t lowest = Message::min_version;
  int16_t highest = Message::max_version;
  int16_t api_key() const override { return Message::api_key; }
  int16_t min_version() const override { return lowest; }
  int16_t max_version() const override { return highest; }
  int16_t request_header_version(int16_t v) const override { return Message::header_version(v); }
  int16_t response_header_version(int16_t v) const override { return Message::response_header_version(v); }
  void encode(Writer& w, int16_t v) const override { message.encode(w, v); }
};

struct Request {
  RequestBody* body = nullptr;      // owned
  int32_t node_id = ANY_NODE;       // ANY_NODE: the delegate chooses a node and sets its id here
  Channel channel = CHANNEL_CONTROL;
  int64_t deadline_ms = 0;          // absolute, monotonic: then it fails with ERR_TIMED_OUT, sent or not
  int64_t wait_ms = 0;              // how long the broker may hold it back by its own wish (Fetch, JoinGroup, SyncGroup)
  int64_t hold_ms = 0;              // the same where a slow replica may hold it back, once it has arrived (writes)
  int64_t created_ms = 0;
  int64_t sent_ms = 0;
  void* handler = nullptr;          // the ResponseHandler that sent it; outlives the request
  int32_t kind = 0;                 // request kind, defined by the handler
  uint64_t cookie = 0;              // data of the handler
  size_t expected_bytes = 0;        // FETCH: the requested max_bytes, a limit for memory allocated before bytes arrive
  ~Request() { delete body; }
};

struct Response {
  Block* block = nullptr;           // contains the frame; the handler may BlockPool::retain it
  const uint8_t* body = nullptr;    // after the response header
  size_t length = 0;
  int16_t version = 0;
  int32_t node_id = -1;
  Channel channel = CHANNEL_CONTROL;
  int64_t received_ms = 0;
};

struct NodeAddress {
  int32_t id = -1;                  // bootstrap addresses get -2, -3, …
  std::string host;
  int32_t port = 0;
  std::string rack;
};

struct NetworkConfig {
  std::string client_id = "kconsumer";
  std::string software_name = "kconsumer";
  std::string software_version;
  std::vector<NodeAddress> bootstrap;
  int32_t reconnect_backoff_ms = 100;
  int32_t reconnect_backoff_max_ms = 10000;
  int32_t socket_timeout_ms = 60000;
  int32_t connection_setup_timeout_ms = 30000;
  int32_t connections_max_idle_ms = 0;          // 0: never
  int32_t socket_send_buffer_bytes = 0;         // 0: the system's default
  int32_t socket_receive_buffer_bytes = 0;
  bool socket_keepalive = false;
  bool socket_nagle_disable = true;
  int32_t socket_max_fails = 1;
  int32_t silence_ms = 1000;                    // the first limit of a SilenceLimit
  int32_t address_family = 0;                   // 0 any, 4, 6
  int32_t broker_address_ttl_ms = 1000;
  bool use_all_dns_ips = true;
  bool canonical_bootstrap = false;             // client.dns.lookup=resolve_canonical_bootstrap_servers_only
  bool api_version_request = true;
  bool cluster_check = true;                    // brokers check that a connection is meant for them (KIP-1242)
  bool log_connection_close = true;
  int32_t api_version_request_timeout_ms = 10000;
  int64_t receive_message_max_bytes = 100000000;
  SecurityConfig security;
};

// The counters for metrics() and stats_cb. N writes them; any thread reads copies.
struct NodeCounters {
  int32_t node_id = -1;
  std::string name;                 // host:port
  std::string state;                // librdkafka's names: INIT, DOWN, TRY_CONNECT, CONNECT, APIVERSION_QUERY, UP
  int64_t tx = 0, tx_bytes = 0, rx = 0, rx_bytes = 0;
  int64_t connects = 0, disconnects = 0, tx_errors = 0, rx_errors = 0, req_timeouts = 0;
  int64_t unmatched = 0;            // responses with an unexpected correlation id
  int64_t wakeups = 0;              // number of socket events of its connections
  int32_t waitresp_count = 0;
  int64_t state_since_ms = 0;
  int64_t last_tx_us = -1, last_rx_us = -1;
  int64_t throttle_ms = 0;
  std::map<int16_t, int64_t> requests;  // number of sent requests, by API key
};

struct NodeStats : NodeCounters {
  // Windows since the last take().
  WindowStats rtt_us, outbuf_latency_us, throttles_ms;

  // Returns the counters and the windows, and starts new windows.
  NodeStats take() {
    NodeStats taken;
    static_cast<NodeCounters&>(taken) = *this;
    taken.rtt_us = rtt_us.take();
    taken.outbuf_latency_us = outbuf_latency_us.take();
    taken.throttles_ms = throttles_ms.take();
    return taken;
  }
};

}  // namespace kc
