// Owns: RequestState: the in-flight flag, the number of failures in a row and the exponential backoff of one kind of
// request, for every manager. thread: N. Never: reads a clock (the caller passes `now_ms`), sends.
#pragma once
#include <cstdint>

namespace kc {

struct BackoffConfig {
  int32_t retry_backoff_ms = 100;
  int32_t retry_backoff_max_ms = 1000;
  int32_t request_timeout_ms = 30000;
  uint64_t jitter_seed = 0;  // differs in every consumer; 0 in tests, which repeat the same waits
};

// xorshift64*: good enough for jitter.
struct Jitter {
  uint64_t state = 0;        // 0: not seeded yet
  double next(uint64_t seed) {  // [0, 1)
    if (state == 0) state = 0x9e3779b97f4a7c15ull ^ seed;
    if (state == 0) state = 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return static_cast<double>((state * 0x2545f4914f6cdd1dull) >> 11) / 9007199254740992.0;
  }
};

// Backoff before attempt `attempts` + 1: base · 2^(attempts-1) with a limit, ±20 % (as in KIP-580).
inline int64_t backoff_ms(const BackoffConfig& c, int32_t attempts, Jitter& jitter) {
  if (attempts <= 0) return 0;
  double term = static_cast<double>(c.retry_backoff_ms);
  for (int i = 1; i < attempts && term < c.retry_backoff_max_ms; i++) term *= 2;
  if (term > c.retry_backoff_max_ms) term = c.retry_backoff_max_ms;
  double with_jitter = term * (0.8 + 0.4 * jitter.next(c.jitter_seed));
  return static_cast<int64_t>(with_jitter);
}

struct RequestState {
  bool in_flight = false;
  int32_t attempts = 0;         // failures in a row
  int64_t not_before_ms = 0;    // the next attempt

  void on_send() { in_flight = true; }
  // The request succeeded, or it has a new cause: no failure counts.
  void on_success() { *this = RequestState(); }
  // The first `free` failures in a row cause no wait.
  void on_failure(int64_t now_ms, const BackoffConfig& c, Jitter& jitter, int32_t free = 0) {
    in_flight = false;
    attempts++;
    not_before_ms = attempts <= free ? 0 : now_ms + backoff_ms(c, attempts - free, jitter);
  }
  // The request in flight has become obsolete. It counts neither as a success nor as a failure.
  void on_given_up() { in_flight = false; }
  // Something has changed: the next attempt need not wait. Later attempts wait as before.
  void clear_backoff() { not_before_ms = 0; }
  bool may_send(int64_t now_ms) const { return !in_flight && now_ms >= not_before_ms; }
  int64_t wait_ms(int64_t now_ms) const { return now_ms >= not_before_ms ? 0 : not_before_ms - now_ms; }
};

}  // namespace kc
