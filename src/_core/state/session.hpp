// Owns: Session, until when the coordinator certainly keeps this member.
// Threads: N writes; any thread reads (atomics). Never: reads a clock.
//
// The coordinator counts a session from its receipt of a heartbeat. The member counts from the sending, which is earlier:
// at the end of its session the coordinator may still keep it, but never the other way round. All times are of the clock
// that also counts while the machine is suspended (Clock.boot_us), because the coordinator's clock does.
#pragma once
#include <atomic>
#include <cstdint>

namespace kc {

class Session {
 public:
  // The coordinator has answered a heartbeat (or SyncGroup) that was sent at sent_us: it keeps the member until then.
  void heard(int64_t sent_us) {
    if (counts() && sent_us <= heard_us_.load(std::memory_order_relaxed)) return;
    heard_us_.store(sent_us, std::memory_order_relaxed);
    ends_us_.store(sent_us + int64_t{1000} * timeout_ms_.load());
  }
  // The session timeout as the coordinator counts it; also of the session that counts now.
  void set_timeout(int32_t timeout_ms) {
    timeout_ms_.store(timeout_ms);
    if (counts()) ends_us_.store(heard_us_.load(std::memory_order_relaxed) + int64_t{1000} * timeout_ms);
  }
  // 0: no group.
  int32_t timeout_ms() const { return timeout_ms_.load(); }
  // There is no membership: nothing can be over.
  void stop() { ends_us_.store(kNever); }
  bool counts() const { return ends_us_.load() != kNever; }
  bool over(int64_t now_us) const { return now_us >= ends_us_.load(); }
  int64_t left_ms(int64_t now_us) const {
    const int64_t ends_us = ends_us_.load();
    return ends_us == kNever ? kNever : (ends_us - now_us + 999) / 1000;
  }
  // A, before it returns records: whether it must not. Then N wakes it when this has changed (take_held_back). A sets the
  // flag before it looks again, and N changes the end before it looks at the flag: one of them sees the other.
  bool hold_back(int64_t now_us) {
    if (!over(now_us)) return false;
    held_back_.store(true);
    return over(now_us);
  }
  // N: whether A holds records back without a reason.
  bool take_held_back(int64_t now_us) { return held_back_.load() && !over(now_us) && held_back_.exchange(false); }
  // Time since the sending of the latest answered heartbeat; -1 without a membership.
  int64_t age_ms(int64_t now_us) const {
    return counts() ? (now_us - heard_us_.load(std::memory_order_relaxed)) / 1000 : -1;
  }

 private:
  static constexpr int64_t kNever = INT64_MAX;
  std::atomic<int64_t> ends_us_{kNever};
  std::atomic<int64_t> heard_us_{0};
  std::atomic<bool> held_back_{false};
  std::atomic<int32_t> timeout_ms_{0};
};

}  // namespace kc
