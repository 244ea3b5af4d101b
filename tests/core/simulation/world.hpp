// Owns: World, the virtual time: the queue of events, random numbers from a seed, the trace of a history.
// Threads: the simulation's thread. Never: reads a clock, is part of a consumer.
#pragma once
#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace kc::sim {

// Kafka's error codes in answers of the simulated brokers.
enum Error : int16_t {
  UNKNOWN_SERVER_ERROR = -1,
  NONE = 0,
  OFFSET_OUT_OF_RANGE = 1,
  CORRUPT_MESSAGE = 2,
  UNKNOWN_TOPIC_OR_PARTITION = 3,
  NOT_LEADER_OR_FOLLOWER = 6,
  COORDINATOR_LOAD_IN_PROGRESS = 14,
  COORDINATOR_NOT_AVAILABLE = 15,
  NOT_COORDINATOR = 16,
  ILLEGAL_GENERATION = 22,
  INCONSISTENT_GROUP_PROTOCOL = 23,
  UNKNOWN_MEMBER_ID = 25,
  REBALANCE_IN_PROGRESS = 27,
  UNSUPPORTED_VERSION = 35,
  INVALID_REQUEST = 42,
  KAFKA_STORAGE_ERROR = 56,
  FETCH_SESSION_ID_NOT_FOUND = 70,
  INVALID_FETCH_SESSION_EPOCH = 71,
  FENCED_LEADER_EPOCH = 74,
  UNKNOWN_LEADER_EPOCH = 75,
  OFFSET_NOT_AVAILABLE = 78,
  MEMBER_ID_REQUIRED = 79,
  FENCED_INSTANCE_ID = 82,
  UNSTABLE_OFFSET_COMMIT = 88,
  UNKNOWN_TOPIC_ID = 100,
  FENCED_MEMBER_EPOCH = 110,
  UNRELEASED_INSTANCE_ID = 111,
  STALE_MEMBER_EPOCH = 113,
};

// splitmix64: every random number of a history follows from its seed.
struct Chance {
  uint64_t state = 0;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return n <= 1 ? 0 : static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool happens(double probability) { return static_cast<double>(next() >> 11) / 9007199254740992.0 < probability; }
};

// How often faults happen, per request unless the line says otherwise; none while inactive.
struct Faults {
  bool active = false;
  double lose_request = 0;      // the connection breaks before the broker has read the request
  double lose_response = 0;     // the broker has served it; the connection breaks before the answer is read
  double hang = 0;              // no answer until the client gives up
  double slow = 0;              // one or two seconds instead of milliseconds
  double refuse = 0;            // a retriable error
  double throttle = 0;
  double evict_session = 0;     // per Fetch
  double spoil = 0;             // a batch is served damaged, or rejected as corrupt
};

class World {
 public:
  int64_t now_ms = 0;
  Chance chance;
  Faults faults;
  int64_t latency_ms = 1;       // one way, upper bound; chosen again each time
  int64_t session_ms = 0;       // of the group's members; 0: there are none
  bool tracing = false;
  std::vector<std::string> lines;
  std::vector<std::string> violations;  // events that must never happen but that brokers saw

  void at(int64_t when_ms, std::function<void()> action) {
    queue_.push_back(Happening{std::max(when_ms, now_ms), next_number_++, std::move(action)});
    std::push_heap(queue_.begin(), queue_.end(), later);
  }
  void after(int64_t ms, std::function<void()> action) { at(now_ms + ms, std::move(action)); }
  int64_t next_ms() const { return queue_.empty() ? INT64_MAX : queue_.front().when_ms; }
  void run_due() {
    while (!queue_.empty() && queue_.front().when_ms <= now_ms) {
      std::pop_heap(queue_.begin(), queue_.end(), later);
      std::function<void()> action = std::move(queue_.back().action);
      queue_.pop_back();
      action();
    }
  }
  bool goes_wrong(double probability) { return faults.active && probability > 0 && chance.happens(probability); }
  int64_t one_way_ms() {
    if (goes_wrong(faults.slow)) return chance.between(200, 2500);
    return chance.between(0, latency_ms);
  }

  __attribute__((format(printf, 2, 3))) void trace(const char* format, ...) {
    if (!tracing) return;
    va_list args;
    va_start(args, format);
    lines.push_back(written(format, args));
    va_end(args);
  }
  __attribute__((format(printf, 2, 3))) void violate(const char* format, ...) {
    va_list args;
    va_start(args, format);
    violations.push_back(written(format, args));
    va_end(args);
    if (tracing) lines.push_back("VIOLATION " + violations.back());
  }

 private:
  struct Happening {
    int64_t when_ms;
    uint64_t number;  // of equal times, the event planned first happens first
    std::function<void()> action;
  };
  static bool later(const Happening& a, const Happening& b) {
    return a.when_ms != b.when_ms ? a.when_ms > b.when_ms : a.number > b.number;
  }
  std::string written(const char* format, va_list args) {
    char text[600];
    int n = std::snprintf(text, sizeof text, "%8.3f ", static_cast<double>(now_ms) / 1000);
    std::vsnprintf(text + n, sizeof text - static_cast<size_t>(n), format, args);
    return text;
  }

  std::vector<Happening> queue_;
  uint64_t next_number_ = 0;
};

}  // namespace kc::sim
