// Owns: the fuzz target of what a peer may send before it has proved who it is: TLS records and the handshake in them.
// The first byte says how the input is cut into pieces; the rest arrives at a client that has just said hello.
// Threads: one. Never: part of the core.
//
//   clang++ -std=c++17 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Isrc/_core
//     tools/fuzz/fuzz_tls.cpp -o build/fuzz_tls -lssl -lcrypto && build/fuzz_tls -max_total_time=60
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "network/openssl_client.hpp"

namespace {

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

kc::OpensslClient& client() {
  static kc::OpensslClient* const made = [] {
    kc::TlsConfig config;
    config.verify = false;  // without authorities to load; the chain is parsed all the same
    auto* one = new kc::OpensslClient(std::move(config));
    require(one->load().ok(), "no client");
    return one;
  }();
  return *made;
}

void drain(int fd) {
  char sink[4096];
  while (::recv(fd, sink, sizeof sink, MSG_DONTWAIT) > 0) {
  }
}

// Returns whether the connection still stands.
bool step(kc::Transport& transport, bool* done) {
  if (!*done) {
    const kc::HandshakeState state = transport.handshake();
    *done = state == kc::HANDSHAKE_DONE;
    if (state == kc::HANDSHAKE_FAILED) return false;
  }
  for (int i = 0; *done && i < 100; i++) {
    uint8_t to[1024];
    const kc::IoResult result = transport.read_into(to, sizeof to);
    require(result.state != kc::IO_DONE || (result.bytes > 0 && result.bytes <= sizeof to), "bytes out of nowhere");
    if (result.state == kc::IO_WOULD_BLOCK) require(!transport.pending(), "nothing to read, and yet pending");
    if (result.state != kc::IO_DONE) return result.state == kc::IO_WOULD_BLOCK;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 0;
  for (int fd : ends) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  std::unique_ptr<kc::Transport> transport(client().connect(ends[0], "broker.test", 9093, data[0] & 1));
  const size_t piece = static_cast<size_t>(data[0] >> 1) * 64 + 1;
  bool done = false;
  bool stands = step(*transport, &done);
  for (size_t at = 1; stands && at < size;) {
    const ssize_t n = ::send(ends[1], data + at, std::min(piece, size - at), MSG_NOSIGNAL);
    if (n <= 0) break;
    at += static_cast<size_t>(n);
    stands = step(*transport, &done);
    drain(ends[1]);
  }
  ::close(ends[1]);
  for (size_t i = 0; stands; i++) {
    stands = step(*transport, &done);
    require(i <= size, "a conversation without its end");
  }
  if (!transport->error_text().empty()) {
    const int32_t code = transport->error_code();
    require(code == kc::ERR_SSL || code == kc::ERR_TRANSPORT, "an error without its code");
    for (const char c : transport->error_text()) require(c >= 0x20 && c < 0x7f, "an error that is not printable");
    require(transport->error_text().size() < 1024, "an error that is too long");
  }
  transport->close();
  transport.reset();
  ::close(ends[0]);
  return 0;
}
