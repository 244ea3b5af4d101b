// Owns: the upper bound with TLS: one blocking OpenSSL connection that sends prepared Fetch requests and discards the
// responses. Threads: one. Never: reads a record; verifies the broker's certificate.
//
// raw_tls HOST PORT FILE: FILE contains the requests, each after its size as in the protocol. Prints a JSON line.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr size_t kOnTheWay = 2;
constexpr size_t kReadAhead = 256 * 1024;

[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "raw_tls: %s\n", why);
  std::exit(1);
}

uint32_t size_at(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

double cpu_seconds() {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

SSL* open(const char* host, const char* port) {
  struct addrinfo hints {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host, port, &hints, &found) != 0) fail("no such host");
  const int fd = socket(found->ai_family, SOCK_STREAM, 0);
  const int one = 1, buffer = 4 << 20;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) fail("cannot connect");
  freeaddrinfo(found);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadAhead);
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  if (SSL_connect(ssl) != 1) fail("no TLS handshake");
  return ssl;
}

void send(SSL* ssl, const std::vector<uint8_t>& request) {
  if (SSL_write(ssl, request.data(), static_cast<int>(request.size())) <= 0) fail("cannot send");
}

void read(SSL* ssl, uint8_t* to, size_t length) {
  while (length) {
    size_t n = 0;
    if (SSL_read_ex(ssl, to, length, &n) != 1) fail("the broker closed the connection");
    to += n;
    length -= n;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) fail("HOST PORT FILE");
  std::ifstream file(argv[3], std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::vector<uint8_t>> requests;
  for (size_t at = 0; at + 4 <= bytes.size();) {
    const size_t length = 4 + size_at(&bytes[at]);
    requests.emplace_back(bytes.begin() + at, bytes.begin() + at + length);
    at += length;
  }
  // The connection is timed, too: a consumer opens the one that it fetches over when it is given its partitions.
  const auto began = std::chrono::steady_clock::now();
  const double cpu = cpu_seconds();
  SSL* ssl = open(argv[1], argv[2]);
  std::vector<uint8_t> answer(1 << 20);
  for (size_t i = 0; i < kOnTheWay && i < requests.size(); i++) send(ssl, requests[i]);
  uint64_t total = 0;
  for (size_t i = 0; i < requests.size(); i++) {
    uint8_t head[4];
    read(ssl, head, sizeof head);
    for (size_t left = size_at(head); left;) {
      const size_t part = left < answer.size() ? left : answer.size();
      read(ssl, answer.data(), part);
      left -= part;
      total += part;
    }
    if (i + kOnTheWay < requests.size()) send(ssl, requests[i + kOnTheWay]);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("{\"seconds\": %.6f, \"cpu_seconds\": %.6f, \"wire_bytes\": %llu, \"suite\": \"%s %s\"}\n", took.count(),
              cpu_seconds() - cpu, static_cast<unsigned long long>(total), SSL_get_version(ssl), SSL_get_cipher_name(ssl));
  return 0;
}
