// Owns: Selector, readiness of sockets (epoll on Linux, kqueue elsewhere), and the descriptor that interrupts a wait.
// Threads: N; wakeup(): any. Never: reads, writes or owns a watched descriptor (except its wakeup descriptor).
//
// It is level-triggered: unread bytes are reported again, so a reader may stop early without losing bytes.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <vector>

#ifdef __linux__
#include <sys/epoll.h>
#include <sys/eventfd.h>
#else
#include <sys/event.h>
#include <sys/time.h>
#endif

namespace kc {

enum SelectorInterest : uint8_t { SELECT_READ = 1, SELECT_WRITE = 2 };

struct SelectorEvent {
  void* tag = nullptr;
  uint8_t ready = 0;  // SELECT_READ, SELECT_WRITE; an error or a hang-up sets both: the read or write then fails
};

class Selector {
 public:
  static constexpr int kMaxEvents = 256;

  Selector() = default;
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;
  ~Selector() { close(); }

  // Opens the descriptors, which a constructor could not do because it can fail. Returns 0 or an errno.
  int open() {
#ifdef __linux__
    poll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    if (poll_fd_ < 0) return errno;
    wake_read_fd_ = wake_write_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_read_fd_ < 0) return close_after(errno);
#else
    poll_fd_ = kqueue();
    if (poll_fd_ < 0) return errno;
    int ends[2];
    if (pipe(ends) != 0) return close_after(errno);
    wake_read_fd_ = ends[0];
    wake_write_fd_ = ends[1];
    for (int fd : ends) {
      fcntl(fd, F_SETFL, O_NONBLOCK);
      fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    fcntl(poll_fd_, F_SETFD, FD_CLOEXEC);
#endif
    int rc = add(wake_read_fd_, SELECT_READ, nullptr);
    return rc ? close_after(rc) : 0;
  }

  void close() {
    if (wake_write_fd_ >= 0 && wake_write_fd_ != wake_read_fd_) ::close(wake_write_fd_);
    if (wake_read_fd_ >= 0) ::close(wake_read_fd_);
    if (poll_fd_ >= 0) ::close(poll_fd_);
    poll_fd_ = wake_read_fd_ = wake_write_fd_ = -1;
  }

  // For the child of a fork: closes the copied descriptors without a change of the parent's epoll set. A kqueue is not
  // inherited, and its number may already belong to another descriptor.
  void abandon() {
#ifndef __linux__
    poll_fd_ = -1;
#endif
    close();
  }

#ifdef __linux__
  int add(int fd, uint8_t interest, void* tag) { return control(EPOLL_CTL_ADD, fd, interest, tag); }
  int modify(int fd, uint8_t, uint8_t interest, void* tag) { return control(EPOLL_CTL_MOD, fd, interest, tag); }
  void remove(int fd, uint8_t) { epoll_ctl(poll_fd_, EPOLL_CTL_DEL, fd, nullptr); }
#else
  int add(int fd, uint8_t interest, void* tag) { return modify(fd, 0, interest, tag); }
  int modify(int fd, uint8_t before, uint8_t interest, void* tag) {
    struct kevent changes[2];
    int n = 0;
    for (uint8_t bit : {SELECT_READ, SELECT_WRITE}) {
      if ((before & bit) == (interest & bit)) continue;
      EV_SET(&changes[n++], fd, bit == SELECT_READ ? EVFILT_READ : EVFILT_WRITE,
             interest & bit ? EV_ADD | EV_ENABLE : EV_DELETE, 0, 0, tag);
    }
    return n == 0 || kevent(poll_fd_, changes, n, nullptr, 0, nullptr) == 0 ? 0 : errno;
  }
  void remove(int fd, uint8_t before) { modify(fd, before, 0, nullptr); }
#endif

  // Waits at most timeout_ms (0: not at all, negative: without limit). Fills `events` with the ready sockets; it is
  // empty after a timeout or a wakeup. Returns 0 or an errno; EINTR counts as a wakeup.
  int wait(int64_t timeout_ms, std::vector<SelectorEvent>& events) {
    events.clear();
    interrupted_ = false;
    waits_++;
    int n = wait_system(timeout_ms);
    if (n < 0) return errno == EINTR ? 0 : errno;
    for (int i = 0; i < n; i++) {
      SelectorEvent e = event(i);
      if (e.tag == nullptr) {
        interrupted_ = true;
        drain_wakeup();
      } else {
        events.push_back(e);
      }
    }
    return 0;
  }

  // thread: any. Only the first of several calls writes to the descriptor.
  void wakeup() {
    if (woken_.exchange(true, std::memory_order_acq_rel)) return;
    uint64_t one = 1;
    // The write can fail only if the descriptor is already readable, which is the goal.
    ssize_t ignored = ::write(wake_write_fd_, &one, sizeof one);
    (void)ignored;
  }

  // Returns whether a wakeup was among what ended the latest wait.
  bool interrupted() const { return interrupted_; }
  int64_t waits() const { return waits_; }

 private:
  int close_after(int error) {
    close();
    return error;
  }

  // Clears the flag after the descriptor is empty: the next turn handles a wakeup between the two steps.
  void drain_wakeup() {
    uint64_t sink[8];
    while (::read(wake_read_fd_, sink, sizeof sink) == static_cast<ssize_t>(sizeof sink)) {
    }
    woken_.exchange(false, std::memory_order_acq_rel);
  }

#ifdef __linux__
  int control(int operation, int fd, uint8_t interest, void* tag) {
    struct epoll_event e {};
    e.events = (interest & SELECT_READ ? EPOLLIN : 0u) | (interest & SELECT_WRITE ? EPOLLOUT : 0u);
    e.data.ptr = tag;
    return epoll_ctl(poll_fd_, operation, fd, &e) == 0 ? 0 : errno;
  }
  int wait_system(int64_t timeout_ms) {
    int timeout = timeout_ms < 0 ? -1 : static_cast<int>(std::min<int64_t>(timeout_ms, INT_MAX));
    return epoll_wait(poll_fd_, raw_, kMaxEvents, timeout);
  }
  SelectorEvent event(int i) const {
    uint32_t flags = raw_[i].events;
    SelectorEvent e;
    e.tag = raw_[i].data.ptr;
    if (flags & (EPOLLIN | EPOLLERR | EPOLLHUP)) e.ready |= SELECT_READ;
    if (flags & (EPOLLOUT | EPOLLERR | EPOLLHUP)) e.ready |= SELECT_WRITE;
    return e;
  }
  struct epoll_event raw_[kMaxEvents];
#else
  int wait_system(int64_t timeout_ms) {
    struct timespec t {};
    t.tv_sec = static_cast<time_t>(std::min<int64_t>(timeout_ms, INT_MAX) / 1000);
    t.tv_nsec = timeout_ms < 0 ? 0 : static_cast<long>(timeout_ms % 1000) * 1000000;
    return kevent(poll_fd_, nullptr, 0, raw_, kMaxEvents, timeout_ms < 0 ? nullptr : &t);
  }
  SelectorEvent event(int i) const {
    SelectorEvent e;
    e.tag = raw_[i].udata;
    e.ready = raw_[i].filter == EVFILT_READ ? SELECT_READ : SELECT_WRITE;
    return e;
  }
  struct kevent raw_[kMaxEvents];
#endif

  int poll_fd_ = -1;
  int wake_read_fd_ = -1;
  int wake_write_fd_ = -1;
  bool interrupted_ = false;         // thread: N
  int64_t waits_ = 0;                // thread: N; number of calls of wait()
  std::atomic<bool> woken_{false};   // shared: atomic
};

}  // namespace kc
