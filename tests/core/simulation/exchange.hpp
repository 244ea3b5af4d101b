// Owns: the brokers' side of a connection: it serves requests one after another in order, and answers each once.
// Threads: the simulation's thread. Never: interprets a request.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "protocol/api_keys.hpp"
#include "protocol/wire.hpp"
#include "simulation/world.hpp"

namespace kc::sim {

struct Arrived {
  uint64_t number = 0;
  int16_t api = 0;
  int16_t version = 0;
  std::string body;
  bool lose_response = false;  // the connection breaks instead
  bool swallow = false;        // no answer
};

// A connection with both ends. It ends on the client's side; the broker still finishes the request that it has begun.
struct Connection {
  int32_t client = 0;
  int32_t node = 0;
  int32_t channel = 0;
  uint64_t stops = 0;          // of the broker, when the connection was made
  bool alive = true;
  bool busy = false;           // a request is being served (or is parked)
  bool swallowed = false;      // from here on the client receives nothing
  Arrived serving;
  std::deque<Arrived> waiting;
  int64_t last_arrival_ms = 0;
  int64_t last_delivery_ms = 0;
  std::function<void(uint64_t number, std::string body)> deliver;
  std::function<void()> broken;
  std::function<int64_t(int64_t when_ms)> arrives_ms;  // later than sent, while the client is cut off
};
using ConnectionPtr = std::shared_ptr<Connection>;

// A request being served. It is copied often: a parked JoinGroup keeps it until it can be answered.
struct Exchange {
  ConnectionPtr connection;
  uint64_t number = 0;
  int16_t api = 0;
  int16_t version = 0;
  bool open() const { return connection && connection->busy && connection->serving.number == number; }
};

template <class M, class = void>
struct HasThrottle : std::false_type {};
template <class M>
struct HasThrottle<M, std::void_t<decltype(std::declval<M&>().throttle_time_ms)>> : std::true_type {};

class Exchanges {
 public:
  explicit Exchanges(World& world) : world_(world) {}
  std::function<bool(int32_t node)> is_up;
  std::map<int32_t, uint64_t> stops;  // how often each broker has stopped
  std::function<void(const Exchange&, const std::string& body)> serve;

  void arrive(const ConnectionPtr& c, Arrived request) {
    // A broker that is back reads nothing from the connections before it stopped.
    if (!is_up(c->node) || c->stops != stops[c->node]) return;
    // The broker may or may not read the remaining data of a dead connection.
    if (!c->alive && !world_.chance.happens(0.5)) return;
    c->waiting.push_back(std::move(request));
    if (!c->busy) next(c);
  }

  template <class M>
  void answer(const Exchange& x, M& message) {
    if (!x.open()) return;
    if constexpr (HasThrottle<M>::value) {
      if (world_.goes_wrong(world_.faults.throttle)) {
        message.throttle_time_ms = static_cast<int32_t>(world_.chance.between(20, 800));
      }
    }
    Writer w;
    message.encode(w, x.version);
    finish(x.connection, std::string(reinterpret_cast<const char*>(w.data()), w.size()));
  }

 private:
  void next(const ConnectionPtr& c) {
    if (c->waiting.empty() || c->busy) return;
    c->serving = std::move(c->waiting.front());
    c->waiting.pop_front();
    c->busy = true;
    Exchange x{c, c->serving.number, c->serving.api, c->serving.version};
    const std::string body = c->serving.body;
    serve(x, body);
  }
  void finish(const ConnectionPtr& c, std::string body) {
    const Arrived done = std::move(c->serving);
    c->serving = Arrived();
    c->busy = false;
    if (done.swallow) c->swallowed = true;
    const int64_t when = c->arrives_ms(std::max(c->last_delivery_ms, world_.now_ms + world_.one_way_ms()));
    c->last_delivery_ms = when;
    const bool breaks = done.lose_response;
    if (!c->swallowed) {
      world_.at(when, [c, number = done.number, body = std::move(body), breaks]() mutable {
        if (!c->alive) return;
        if (breaks) return c->broken();
        c->deliver(number, std::move(body));
      });
    }
    if (!c->alive) {
      c->waiting.clear();
      return;
    }
    next(c);
  }

  World& world_;
};

}  // namespace kc::sim
