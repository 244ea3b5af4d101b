// Owns: TlsCredentials, the current credentials of one consumer: read at construction, checked for each new connection,
// and read again after a change on disk.
// Threads: load() A; the rest N; run(): H, a helper thread; shared: TlsCredentialState under its mutex.
// Never: reads a file on N, makes N wait, drops the credentials after an error: if the changed files cannot be read
// (usually because they are half written), it keeps the previous ones, and the next connection checks again.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/detached_thread.hpp"
#include "network/selector.hpp"
#include "network/tls_loader.hpp"

namespace kc {

// shared: mutex, except `config` (immutable) and the atomic. H owns it through a shared_ptr, so that a file system that
// hangs keeps no other object alive.
struct TlsCredentialState {
  TlsConfig config;
  std::mutex mutex;
  std::shared_ptr<TlsContext> context;
  std::vector<TlsFile> files;             // the files read for `context`
  std::string news;
  int news_level = 0;
  bool running = false;                   // whether H is running
  uint64_t wanted = 0;
  Selector* selector = nullptr;           // null before open() and after close()
  std::atomic<uint64_t> done{0};
};

class TlsCredentials {
 public:
  explicit TlsCredentials(TlsConfig&& config) : state_(std::make_shared<TlsCredentialState>()) {
    state_->config = std::move(config);
  }
  // thread: A.
  Status load() {
    TlsLoader loader(state_->config, &state_->files);
    return loader.load(&state_->context);
  }
  void open(Selector* selector) {
    std::lock_guard<std::mutex> hold(state_->mutex);
    state_->selector = selector;
  }
  // The last holder (H while it works) wipes the secrets.
  void close() {
    if (!state_) return;
    std::lock_guard<std::mutex> hold(state_->mutex);
    state_->selector = nullptr;
    state_->context.reset();
  }
  void drop() { state_.reset(); }
  std::shared_ptr<TlsContext> context() {
    if (!state_) return nullptr;
    std::lock_guard<std::mutex> hold(state_->mutex);
    return state_->context;
  }

  uint64_t check() {
    if (!state_) return 0;
    std::lock_guard<std::mutex> hold(state_->mutex);
    const uint64_t ticket = ++state_->wanted;
    if (state_->running) return ticket;
    const int rc = state_->files.empty() ? -1 : start_detached(&TlsCredentials::run, state_);
    if (rc == 0) {
      state_->running = true;
      return ticket;
    }
    state_->done.store(ticket);
    if (rc > 0) report(*state_, "cannot start a thread to check the TLS credentials: " + error_text(rc), kError);
    return ticket;
  }
  bool checked(uint64_t ticket) const { return !state_ || state_->done.load() >= ticket; }
  int take_news(std::string* out) {
    if (!state_) return 0;
    std::lock_guard<std::mutex> hold(state_->mutex);
    out->swap(state_->news);
    return std::exchange(state_->news_level, 0);
  }

 private:
  static constexpr int kError = 3, kNotice = 5;  // log levels

  static void report(TlsCredentialState& state, std::string news, int level) {
    state.news = std::move(news);
    state.news_level = level;
  }

  // thread: H. Checks again if N has requested another check meanwhile.
  static void run(TlsCredentialState& state) {
    std::unique_lock<std::mutex> hold(state.mutex);
    for (;;) {
      const uint64_t ticket = state.wanted;
      try {
        look(state, hold);
      } catch (const std::bad_alloc&) {
        if (!hold.owns_lock()) hold.lock();
      }
      state.done.store(ticket);
      if (state.selector) state.selector->wakeup();
      if (state.wanted == ticket) break;
    }
    state.running = false;
  }

  // thread: H. Releases the lock during file accesses.
  static void look(TlsCredentialState& state, std::unique_lock<std::mutex>& hold) {
    std::vector<TlsFile> files = state.files;
    hold.unlock();
    bool changed = false;
    for (const TlsFile& file : files) changed = changed || file.changed();
    std::shared_ptr<TlsContext> made;
    Status status;
    if (changed) {
      files.clear();
      status = TlsLoader(state.config, &files).load(&made);
    }
    hold.lock();
    if (!changed || !state.selector) return;
    if (!status.ok()) {
      report(state, status.detail + "; the previous credentials stay in use", kError);
      return;
    }
    state.context.swap(made);  // the previous context is freed after the lock, with its last connection
    state.files.swap(files);
    report(state, "TLS credentials have changed on disk and were read again", kNotice);
  }

  std::shared_ptr<TlsCredentialState> state_;
};

}  // namespace kc
