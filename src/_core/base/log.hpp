// Owns: the bounded queue of log lines from the network thread to the application thread that serves callbacks.
// Threads: push on N and R, drain on A; shared: its mutex. Never: formats with locale, blocks on I/O, keeps a control
// character (many log lines contain text from brokers).
#pragma once
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>

#include "base/printable.hpp"

namespace kc {

struct LogLine {
  int level = 6;             // syslog: 3 error, 4 warning, 5 notice, 6 info, 7 debug
  const char* facility = ""; // librdkafka's FAC word; a string literal
  std::string text;
};

// `debug` contexts, as librdkafka names them.
enum DebugContext : uint32_t {
  DBG_GENERIC = 1, DBG_BROKER = 2, DBG_TOPIC = 4, DBG_METADATA = 8, DBG_FEATURE = 16, DBG_QUEUE = 32, DBG_MSG = 64,
  DBG_PROTOCOL = 128, DBG_CGRP = 256, DBG_SECURITY = 512, DBG_FETCH = 1024, DBG_INTERCEPTOR = 2048, DBG_PLUGIN = 4096,
  DBG_CONSUMER = 8192, DBG_ADMIN = 16384, DBG_EOS = 32768, DBG_MOCK = 65536, DBG_ASSIGNOR = 131072, DBG_CONF = 262144,
  DBG_TELEMETRY = 524288, DBG_ALL = 0xfffff,
};

class LogQueue {
 public:
  static constexpr size_t kMaxLines = 1000;
  std::atomic<uint32_t> debug{0};     // enabled DebugContext bits
  std::atomic<int> max_level{6};      // log_level
  std::atomic<bool> pending{false};   // application threads read it without the lock, to decide whether to drain

  bool wants(uint32_t context) const { return (debug.load(std::memory_order_relaxed) & context) != 0; }

  void push(int level, const char* facility, const std::string& text) {
    if (level > max_level.load(std::memory_order_relaxed) && level < 7) return;
    std::lock_guard<std::mutex> hold(mutex_);
    if (lines_.size() >= kMaxLines) {
      dropped_++;
      return;
    }
    lines_.push_back(LogLine{level, facility, printable(text)});
    pending.store(true, std::memory_order_release);
  }
  // Formats like printf. With `context` 0 it always logs; otherwise only if that debug context is on, at level 7.
  __attribute__((format(printf, 5, 6)))
  void write(int level, uint32_t context, const char* facility, const char* format, ...) {
    if (context && !wants(context)) return;
    char buffer[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    push(context ? 7 : level, facility, buffer);
  }
  // Takes all lines. Returns the number of lines dropped since the last call.
  size_t drain(std::deque<LogLine>& out) {
    std::lock_guard<std::mutex> hold(mutex_);
    out.swap(lines_);
    lines_.clear();
    pending.store(false, std::memory_order_release);
    size_t dropped = dropped_;
    dropped_ = 0;
    return dropped;
  }

 private:
  std::mutex mutex_;
  std::deque<LogLine> lines_;
  size_t dropped_ = 0;
};

}  // namespace kc
