// Owns: Resolver, which resolves host names, and the threads (R) that wait for the system's resolver.
// Threads: every method N; run(): R; shared: ResolverState under its mutex.
// Never: makes N wait for a name, keeps more than kMaxNames names (brokers send them), has a thread that must be
// joined: R is detached and owns its state through a shared_ptr, so a hanging lookup keeps no other object alive.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "base/detached_thread.hpp"
#include "base/status.hpp"
#include "network/selector.hpp"
#include "network/socket.hpp"

namespace kc {

struct Resolution {
  Status status;
  std::vector<SocketAddress> addresses;  // in the system's order of preference
  std::vector<std::string> names;        // with `canonical`: the name of each address
};

// A blocking function; tests replace it with a scripted one.
using ResolveFunction = void (*)(const std::string& host, int32_t port, int family, bool canonical, Resolution* out);

enum LookupState : uint8_t { LOOKUP_PENDING, LOOKUP_DONE };

inline Status resolve_status(const std::string& host, int error) {
  const char* why = error == EAI_SYSTEM ? nullptr : gai_strerror(error);
  std::string reason = why ? why : error_text(errno);
  return Status(ERR_RESOLVE, "cannot resolve '" + host + "': " + reason);
}

// Calls getaddrinfo for a stream socket with these flags; removes duplicates and keeps the order.
inline void query_addresses(const std::string& host, int32_t port, int family, int flags, Resolution* out) {
  struct addrinfo hints {}, *list = nullptr;
  hints.ai_family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (rc != 0) {
    out->status = resolve_status(host, rc);
    return;
  }
  for (struct addrinfo* a = list; a; a = a->ai_next) {
    if (a->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress address;
    memcpy(&address.storage, a->ai_addr, a->ai_addrlen);
    address.length = a->ai_addrlen;
    bool known = false;
    for (auto& other : out->addresses) known = known || other == address;
    if (!known) out->addresses.push_back(address);
  }
  freeaddrinfo(list);
  if (out->addresses.empty()) out->status = resolve_status(host, EAI_NONAME);
}

inline void resolve_by_system(const std::string& host, int32_t port, int family, bool canonical, Resolution* out) {
  query_addresses(host, port, family, 0, out);
  if (!canonical) return;
  for (auto& address : out->addresses) {
    char name[NI_MAXHOST];
    int rc = getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.length, name, sizeof name,
                         nullptr, 0, NI_NAMEREQD);
    if (rc == 0) out->names.emplace_back(name);
  }
}

struct ResolverJob {
  std::string key;
  std::string host;
  int32_t port = 0;
  int family = 0;
  bool canonical = false;
};

struct ResolverEntry {
  bool pending = false;
  int64_t resolved_ms = 0;
  Resolution resolution;
};

// shared: mutex. Contains every field that R uses.
struct ResolverState {
  std::mutex mutex;
  std::deque<ResolverJob> jobs;                       // lookups that wait for a thread
  std::map<std::string, Resolution> answers;          // results that N has not taken yet
  Selector* selector = nullptr;                       // null after the client's close
  ResolveFunction function = &resolve_by_system;
  int threads = 0;
};

class Resolver {
 public:
  // Further lookups wait for a free thread. A lookup that hangs blocks only one thread.
  static constexpr int kMaxThreads = 8;
  // The maximum number of cached and pending names: a broker can send new names in every response.
  static constexpr size_t kMaxNames = 1000;

  Resolver() : state_(std::make_shared<ResolverState>()) {}

  void open(Selector* selector, int32_t ttl_ms) {
    ttl_ms_ = ttl_ms;
    std::lock_guard<std::mutex> hold(state_->mutex);
    state_->selector = selector;
  }
  void set_function(ResolveFunction function) {
    std::lock_guard<std::mutex> hold(state_->mutex);
    state_->function = function;
  }
  // Does not wait for running lookups; their threads no longer wake N.
  void close() {
    std::lock_guard<std::mutex> hold(state_->mutex);
    state_->selector = nullptr;
    state_->jobs.clear();
  }
  // For the child of a fork, where a thread that does not exist can hold the mutex: leaks the state.
  void abandon() { new std::shared_ptr<ResolverState>(state_); }

  // Returns literal or cached, fresh addresses at once. Otherwise starts a lookup and returns LOOKUP_PENDING; the
  // lookup wakes the selector when it has ended.
  LookupState lookup(const std::string& host, int32_t port, int family, bool canonical, int64_t now_ms,
                     Resolution* out) {
    if (!canonical) {
      Resolution literal;
      query_addresses(host, port, family, AI_NUMERICHOST, &literal);
      if (literal.status.ok()) {
        *out = std::move(literal);
        return LOOKUP_DONE;
      }
    }
    ResolverJob job{host_and_port(host, port) + (canonical ? "/canonical" : ""), host, port, family, canonical};
    if (entries_.size() >= kMaxNames && entries_.count(job.key) == 0 && !make_room(now_ms)) {
      out->status = Status(ERR_CRIT_SYS_RESOURCE, "cannot resolve '" + host + "': " + std::to_string(kMaxNames) +
                                                  " other names are being resolved");
      return LOOKUP_DONE;
    }
    ResolverEntry& entry = entries_[job.key];
    take_answer(job.key, entry, now_ms);
    bool fresh = entry.resolved_ms != 0 && now_ms - entry.resolved_ms <= ttl_ms_;
    if (!entry.pending && !fresh) start(std::move(job), entry, now_ms);
    if (entry.pending) return LOOKUP_PENDING;
    *out = entry.resolution;
    if (!out->status.ok()) entry.resolved_ms = 0;  // report a failure once; the next attempt starts a new lookup
    return LOOKUP_DONE;
  }

  // For tests.
  size_t known() const { return entries_.size(); }

  // Drops all cached names, so that they are resolved again (rebootstrap). Keeps pending lookups.
  void forget() {
    for (auto it = entries_.begin(); it != entries_.end();) {
      it = it->second.pending ? std::next(it) : entries_.erase(it);
    }
  }

 private:
  // Drops names with an old result, then all names without a pending lookup; false if all lookups are pending. First it
  // takes the results of lookups whose connections may have been closed.
  bool make_room(int64_t now_ms) {
    for (auto& entry : entries_) take_answer(entry.first, entry.second, now_ms);
    for (auto it = entries_.begin(); it != entries_.end();) {
      const bool old = !it->second.pending && now_ms - it->second.resolved_ms > ttl_ms_;
      it = old ? entries_.erase(it) : std::next(it);
    }
    if (entries_.size() >= kMaxNames) forget();
    return entries_.size() < kMaxNames;
  }

  void take_answer(const std::string& key, ResolverEntry& entry, int64_t now_ms) {
    if (!entry.pending) return;
    std::lock_guard<std::mutex> hold(state_->mutex);
    auto found = state_->answers.find(key);
    if (found == state_->answers.end()) return;
    entry.resolution = std::move(found->second);
    entry.pending = false;
    entry.resolved_ms = now_ms;
    state_->answers.erase(found);
  }

  void start(ResolverJob job, ResolverEntry& entry, int64_t now_ms) {
    std::lock_guard<std::mutex> hold(state_->mutex);
    entry.pending = true;
    std::string host = job.host;
    state_->jobs.push_back(std::move(job));
    if (state_->threads >= kMaxThreads) return;
    const int rc = start_detached(&Resolver::run, state_);
    if (rc == 0) {
      state_->threads++;
    } else if (state_->threads == 0) {
      state_->jobs.clear();
      entry.pending = false;
      entry.resolved_ms = now_ms;
      entry.resolution = Resolution();
      entry.resolution.status = Status(ERR_CRIT_SYS_RESOURCE, "cannot start a thread to resolve '" + host + "': " + error_text(rc));
    }
  }

  // thread: R. Works until no job is left.
  static void run(ResolverState& state) {
    try {
      work(state);
    } catch (const std::bad_alloc&) {
      // The lookup has no result; the waiting connection fails at its set-up deadline.
      std::lock_guard<std::mutex> hold(state.mutex);
      state.threads--;
    }
  }

  // thread: R.
  static void work(ResolverState& state) {
    std::unique_lock<std::mutex> hold(state.mutex);
    while (!state.jobs.empty()) {
      ResolverJob job = std::move(state.jobs.front());
      state.jobs.pop_front();
      ResolveFunction function = state.function;
      hold.unlock();
      Resolution answer;
      function(job.host, job.port, job.family, job.canonical, &answer);
      hold.lock();
      state.answers[job.key] = std::move(answer);
      if (state.selector) state.selector->wakeup();
    }
    state.threads--;  // under the lock that found no job: a later one starts a thread
  }

  std::shared_ptr<ResolverState> state_;         // shared: its mutex
  std::map<std::string, ResolverEntry> entries_;  // thread: N
  int64_t ttl_ms_ = 1000;                         // thread: N
};

}  // namespace kc
