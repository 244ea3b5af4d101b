// Owns: PollIdle, the share of time that the application waits for records (poll-idle-ratio of KIP-517).
// Threads: begin, end A (the exclusive call, before and after its sleep); ratio, waits, total any; shared: the mutex.
// Never: used while records are available, sampled by a timer.
//
// Between two calls only time passes. So the time waited up to any moment since the last call is known exactly: the
// marks for the ratio are set afterwards.
#pragma once
#include <cstdint>
#include <mutex>

namespace kc {

class PollIdle {
 public:
  static constexpr int64_t kWindowUs = 30'000'000;  // as metrics.sample.window.ms; the ratio covers one or two windows

  void start(int64_t now_us) {
    std::lock_guard<std::mutex> hold(mutex_);
    older_ = newer_ = Mark{now_us, 0};
  }
  void begin(int64_t now_us) {
    std::lock_guard<std::mutex> hold(mutex_);
    roll(now_us);
    since_us_ = now_us;
    waits_ += 1;
  }
  void end(int64_t now_us) {
    std::lock_guard<std::mutex> hold(mutex_);
    roll(now_us);
    idle_us_ = idle_at(now_us);
    since_us_ = -1;
  }
  // For the time since the start, or the last 30 to 60 seconds.
  double ratio(int64_t now_us) {
    std::lock_guard<std::mutex> hold(mutex_);
    roll(now_us);
    int64_t span = now_us - older_.at_us;
    return span > 0 ? static_cast<double>(idle_at(now_us) - older_.idle_us) / static_cast<double>(span) : 0;
  }
  int64_t total_us(int64_t now_us) {
    std::lock_guard<std::mutex> hold(mutex_);
    return idle_at(now_us);
  }
  int64_t waits() {
    std::lock_guard<std::mutex> hold(mutex_);
    return waits_;
  }

 private:
  struct Mark {
    int64_t at_us = 0, idle_us = 0;
  };
  std::mutex mutex_;
  Mark older_, newer_;     // shared: mutex_; time waited until then
  int64_t idle_us_ = 0;    // shared: mutex_; of ended waits
  int64_t since_us_ = -1;  // shared: mutex_; start of the current wait, -1: none
  int64_t waits_ = 0;      // shared: mutex_

  // For a moment since the last begin() or end().
  int64_t idle_at(int64_t at_us) const { return idle_us_ + (since_us_ >= 0 ? at_us - since_us_ : 0); }
  void roll(int64_t now_us) {
    int64_t windows = (now_us - newer_.at_us) / kWindowUs;
    if (windows < 1) return;
    int64_t last = newer_.at_us + windows * kWindowUs;
    older_ = windows == 1 ? newer_ : Mark{last - kWindowUs, idle_at(last - kWindowUs)};
    newer_ = Mark{last, idle_at(last)};
  }
};

}  // namespace kc
