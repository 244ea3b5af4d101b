// Owns: WakeupFd, a descriptor that becomes readable when signalled (eventfd on Linux, a pipe elsewhere).
// Threads: signal() on any; drain() on the waiting thread. Never: blocks.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#ifdef __linux__
#include <sys/eventfd.h>
#endif

namespace kc {

class WakeupFd {
 public:
  WakeupFd() {
#ifdef __linux__
    read_ = write_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
#else
    int fds[2];
    if (pipe(fds) == 0) {
      for (int fd : fds) {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        fcntl(fd, F_SETFD, FD_CLOEXEC);
      }
      read_ = fds[0];
      write_ = fds[1];
    }
#endif
  }
  ~WakeupFd() { release(); }
  WakeupFd(const WakeupFd&) = delete;
  WakeupFd& operator=(const WakeupFd&) = delete;

  // Closes the descriptor; it never becomes readable again. In the child of a fork this leaves the parent's one open.
  void release() {
    if (read_ >= 0) close(read_);
    if (write_ >= 0 && write_ != read_) close(write_);
    read_ = write_ = -1;
  }
  bool ok() const { return read_ >= 0; }
  int fd() const { return read_; }
  void signal() {
    uint64_t one = 1;
#ifdef __linux__
    ssize_t n = write(write_, &one, sizeof one);
#else
    ssize_t n = write(write_, &one, 1);
#endif
    (void)n;  // EAGAIN: the descriptor is readable already
  }
  void drain() {
    uint64_t junk[8];
#ifdef __linux__
    ssize_t n = read(read_, junk, sizeof(uint64_t));
    (void)n;
#else
    while (read(read_, junk, sizeof junk) > 0) {
    }
#endif
  }

 private:
  int read_ = -1;
  int write_ = -1;
};

constexpr int64_t kMomentMs = 10;

enum WaitResult : int { WAIT_READY = 1, WAIT_TIMEOUT = 0, WAIT_INTERRUPTED = -1 };

// Waits until `fd`, or `other` if it is >= 0, is readable. timeout_ms < 0 waits without a limit. Without `fd`, because no
// descriptor was left for it, it waits a moment: the caller then looks again at what it waits for.
inline WaitResult wait_readable(int fd, int other, int64_t timeout_ms) {
  if (fd < 0 && (timeout_ms < 0 || timeout_ms > kMomentMs)) timeout_ms = kMomentMs;
  pollfd p[2] = {{fd, POLLIN, 0}, {other, POLLIN, 0}};
  int ms = timeout_ms < 0 ? -1 : timeout_ms > 0x7fffffff ? 0x7fffffff : static_cast<int>(timeout_ms);
  int rc = poll(p, other >= 0 ? 2 : 1, ms);
  if (rc > 0) return WAIT_READY;
  return rc == 0 ? WAIT_TIMEOUT : errno == EINTR ? WAIT_INTERRUPTED : WAIT_READY;
}

}  // namespace kc
