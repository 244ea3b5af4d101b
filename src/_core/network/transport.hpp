// Owns: Transport, which moves a connection's bytes, and PlaintextTransport.
// Threads: N. Never: blocks, closes the descriptor (the connection does), knows frames or requests.
//
// TLS is another Transport (tls_transport.hpp). There handshake() takes several turns, pending() reports received bytes
// that the selector cannot see, and a read may have to write first.
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
  size_t bytes = 0;  // with IO_DONE: number of bytes moved, at least 1
  int error = 0;     // with IO_FAILED: errno, or 0 if error_text() has the reason
};

// A direction that waits for the other direction.
enum Crossing : uint8_t { kReadWantsWrite = 1, kWriteWantsRead = 2 };

struct Transport {
  virtual ~Transport() = default;
  virtual HandshakeState handshake() = 0;
  virtual IoResult read_into(uint8_t* to, size_t length) = 0;
  virtual IoResult write(const uint8_t* from, size_t length) = 0;
  // Returns whether read_into() has bytes although the descriptor may not be readable.
  virtual bool pending() const = 0;
  // Sends the peer the protocol's end message, if it has one. Not called in the child of a fork.
  virtual void close() = 0;
  // The text and code of an error without an errno.
  virtual std::string error_text() const = 0;
  virtual int32_t error_code() const { return ERR_TRANSPORT; }
  // Returns the current Crossing bits.
  virtual uint8_t crossed() const { return 0; }
  // Returns the result of the handshake for the log; empty for none.
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
    return result(::send(fd_, from, length, 0), false);  // the socket has SO_NOSIGPIPE
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
