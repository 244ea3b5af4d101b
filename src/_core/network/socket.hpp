// Owns: SocketAddress, and the system calls that create and connect a TCP socket.
// Threads: N (SocketAddress: a value, R creates it too). Never: blocks, resolves names.
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#ifdef __linux__
#include <linux/sockios.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

#include "network/request.hpp"

namespace kc {

struct SocketAddress {
  struct sockaddr_storage storage {};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  bool operator==(const SocketAddress& o) const {
    return length == o.length && memcmp(&storage, &o.storage, length) == 0;
  }
  // 127.0.0.1:9092 or [::1]:9092
  std::string text() const {
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
      return "?";
    }
    return family() == AF_INET6 ? "[" + std::string(host) + "]:" + port : std::string(host) + ":" + port;
  }
};

// Formats a text for the detail of a Status, like printf; cuts text longer than the buffer.
__attribute__((format(printf, 1, 2)))
inline std::string describe(const char* format, ...) {
  char buffer[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  return buffer;
}

// Returns host:port, with an IPv6 literal in brackets.
inline std::string host_and_port(const std::string& host, int32_t port) {
  bool literal6 = host.find(':') != std::string::npos;
  return (literal6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

// Returns the text of an errno. strerror() is not thread-safe, and platforms have two different strerror_r().
inline std::string error_text(int error) {
  char buffer[128] = "";
#if defined(__GLIBC__)
  return strerror_r(error, buffer, sizeof buffer);
#else
  return strerror_r(error, buffer, sizeof buffer) == 0 ? buffer : "error " + std::to_string(error);
#endif
}

inline std::string last_error() { return error_text(errno); }

// Returns the default receive buffer for a fetch connection: the usual size of one response, if the system allows it.
// The kernel's automatic buffer starts at 128 KiB, so that one response takes a dozen turns of the loop. But if the
// system's limit is lower than kWorthwhile, the automatic buffer is better than the limit (returns 0).
inline int fetch_receive_buffer_bytes() {
  constexpr int kWanted = 4 << 20;
  constexpr int kWorthwhile = 2 << 20;
#ifdef __linux__
  static const int granted = [] {
    int limit = 0;
    if (FILE* f = fopen("/proc/sys/net/core/rmem_max", "re")) {
      if (fscanf(f, "%d", &limit) != 1) limit = 0;
      fclose(f);
    }
    return limit >= kWorthwhile ? (limit < kWanted ? limit : kWanted) : 0;
  }();
  return granted;
#else
  (void)kWanted, (void)kWorthwhile;
  return 0;
#endif
}

// Creates a non-blocking, close-on-exec socket with the configured options. Returns -1 and sets errno after an error.
inline int open_socket(int family, const NetworkConfig& config, Channel channel) {
#ifdef __linux__
  int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd < 0) return -1;
#else
  int fd = socket(family, SOCK_STREAM, IPPROTO_TCP);
  if (fd < 0) return -1;
  fcntl(fd, F_SETFL, O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
#endif
  auto set = [fd](int level, int name, int value) { (void)setsockopt(fd, level, name, &value, sizeof value); };
#ifdef SO_NOSIGPIPE
  set(SOL_SOCKET, SO_NOSIGPIPE, 1);
#endif
  // Ignore errors of options: the connection works without them.
  if (config.socket_nagle_disable) set(IPPROTO_TCP, TCP_NODELAY, 1);
  if (config.socket_keepalive) set(SOL_SOCKET, SO_KEEPALIVE, 1);
  // Sent data that is not acknowledged for so long ends the connection, also if no request waits.
  int unacknowledged_ms = std::max(config.socket_timeout_ms, 5000);
  if (channel == CHANNEL_JOIN) {
    // A parked JoinGroup is silent for minutes. The probes find a dead path, and keep a NAT from forgetting a good one.
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(TCP_KEEPIDLE)
    set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
#elif defined(TCP_KEEPALIVE)
    set(IPPROTO_TCP, TCP_KEEPALIVE, 5);
#endif
#if defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
    set(IPPROTO_TCP, TCP_KEEPINTVL, 3);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
#endif
    unacknowledged_ms = std::min(unacknowledged_ms, 15000);
  }
#ifdef TCP_USER_TIMEOUT
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, unacknowledged_ms);
#else
  (void)unacknowledged_ms;
#endif
  if (config.socket_send_buffer_bytes > 0) set(SOL_SOCKET, SO_SNDBUF, config.socket_send_buffer_bytes);
  int receive_bytes = config.socket_receive_buffer_bytes;
  if (receive_bytes == 0 && channel == CHANNEL_FETCH) receive_bytes = fetch_receive_buffer_bytes();
  if (receive_bytes > 0) set(SOL_SOCKET, SO_RCVBUF, receive_bytes);
  return fd;
}

// Makes the close of a socket a reset: the kernel then drops what it has not sent or received. After an orderly close it
// would go on to deliver a request that was given up, for example an older commit after a newer one.
inline void reset_on_close(int fd) {
  struct linger off = {1, 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof off);
#ifdef __linux__
  // At once, because the child of a fork may hold a copy of the descriptor: then close() alone sends nothing.
  struct sockaddr none {};
  none.sa_family = AF_UNSPEC;
  (void)connect(fd, &none, sizeof none);
#endif
}

// Whether the peer's kernel may not have received all that was sent. If it has, the path works, and the broker is slow.
inline bool path_may_be_dead(int fd) {
#ifdef SIOCOUTQ
  int unacknowledged = 0;
  if (ioctl(fd, SIOCOUTQ, &unacknowledged) == 0) return unacknowledged > 0;
#endif
  (void)fd;
  return true;
}

// Whether the network, not the peer, has refused a connection: a retry costs the peer nothing.
inline bool is_unreachable(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN || error == EHOSTDOWN;
}

// Returns 0 if connected, EINPROGRESS if the connection is not established yet, otherwise the errno.
inline int start_connect(int fd, const SocketAddress& address) {
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0) return 0;
  return errno == EINTR ? EINPROGRESS : errno;
}

// Returns 0 if the connection is established, EINPROGRESS if not yet, otherwise the errno of the failure.
inline int finish_connect(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  if (error != 0) return error;
  struct sockaddr_storage peer;
  length = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0) return 0;
  return errno == ENOTCONN ? EINPROGRESS : errno;
}

}  // namespace kc
