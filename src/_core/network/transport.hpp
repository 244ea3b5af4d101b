// Owns: Transport, the path of a connection's bytes, and the plaintext one.
// Threads: N. Never: blocks, closes the descriptor (the connection does), knows frames or requests.
//
// TLS is another Transport (tls_transport.hpp): handshake() then takes several turns, pending() counts bytes that have
// been received but not yet read and that the selector cannot see, and a read may have to write first.
#pragma once
#include <errno.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace kc {

enum HandshakeState : uint8_t { HANDSHAKE_DONE, HANDSHAKE_WANTS_READ, HANDSHAKE_WANTS_WRITE, HANDSHAKE_FAILED };
enum IoState : uint8_t { IO_DONE, IO_WOULD_BLOCK, IO_CLOSED, IO_FAILED };

struct IoResult {
  IoState state = IO_WOULD_BLOCK;
  size_t bytes = 0;  // moved, with IO_DONE; at least 1
  int error = 0;     // errno, with IO_FAILED; 0 when the transport has its own words (error_text)
};

// A direction that waits for the other one.
enum Crossing : uint8_t { kReadWantsWrite = 1, kWriteWantsRead = 2 };

struct Transport {
  virtual ~Transport() = default;
  virtual HandshakeState handshake() = 0;
  virtual IoResult read_into(uint8_t* to, size_t length) = 0;
  virtual IoResult write(const uint8_t* from, size_t length) = 0;
  // Whether read_into has bytes at once although the descriptor may not be readable.
  virtual bool pending() const = 0;
  // Tells the peer that the conversation ends, if the protocol has a word for it. Not called in the child of a fork.
  virtual void close() = 0;
  // What went wrong, where errno does not say it, and under which code.
  virtual std::string error_text() const = 0;
  virtual int32_t error_code() const { return ERR_TRANSPORT; }
  // Which of Crossing holds.
  virtual uint8_t crossed() const { return 0; }
  // What was agreed on in the handshake, for the log; empty for nothing.
  virtual std::string description() const { return std::string(); }
};

class PlaintextTransport final : public Transport {
 public:
  explicit PlaintextTransport(int fd) : fd_(fd) {}
  HandshakeState handshake() override { return HANDSHAKE_DONE; }
  IoResult read_into(uint8_t* to, size_t length) override { return result(::recv(fd_, to, length, 0), true); }
  IoResult write(const uint8_t* from, size_t length) override {
#ifdef MSG_NOSIGNAL
    return result(::send(fd_, from, length, MSG_NOSIGNAL), false);
#else
    return result(::send(fd_, from, length, 0), false);  // SO_NOSIGPIPE is set on the socket
#endif
  }
  bool pending() const override { return false; }
  void close() override {}
  std::string error_text() const override { return std::string(); }

 private:
  static IoResult result(ssize_t n, bool reading) {
    IoResult r;
    if (n > 0) {
      r.state = IO_DONE;
      r.bytes = static_cast<size_t>(n);
    } else if (n == 0) {
      r.state = reading ? IO_CLOSED : IO_WOULD_BLOCK;
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      r.state = IO_FAILED;
      r.error = errno;
    }
    return r;
  }
  int fd_;
};

}  // namespace kc
