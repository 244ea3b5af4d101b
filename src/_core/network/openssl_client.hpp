// Owns: OpensslClient, the TlsClient with OpenSSL: one consumer's credentials, sessions and known brokers.
// Threads: N; A creates and destroys it. Never: reads a file on N (TlsCredentials has a thread for it).
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "network/tls_client.hpp"
#include "network/tls_credentials.hpp"
#include "network/tls_transport.hpp"

namespace kc {

// Initializes OpenSSL without its clean-up at exit, because a network thread may still run then. Returns whether
// OpenSSL is usable.
inline bool initialise_openssl() {
#ifdef OPENSSL_INIT_NO_ATEXIT
  const uint64_t options = OPENSSL_INIT_NO_ATEXIT;
#else
  const uint64_t options = 0;
#endif
  static const bool usable = OPENSSL_init_ssl(options, nullptr) == 1 && TlsTransport::initialise();
  return usable;
}

class OpensslClient final : public TlsClient {
 public:
  explicit OpensslClient(TlsConfig&& config) : credentials_(std::move(config)), peers_(std::make_shared<TlsPeers>()) {}
  // thread: A.
  Status load() {
    if (!initialise_openssl()) return Status(ERR_SSL, "cannot initialize OpenSSL: " + openssl_reason());
    return credentials_.load();
  }
  void open(Selector* selector) override { credentials_.open(selector); }
  void close() override {
    credentials_.close();
    credentials_.drop();
  }
  uint64_t check() override { return credentials_.check(); }
  bool checked(uint64_t ticket) override { return credentials_.checked(ticket); }
  int take_news(std::string* out) override { return credentials_.take_news(out); }
  Transport* connect(int fd, const std::string& host, int32_t port, bool bulk) override {
    return new TlsTransport(credentials_.context(), peers_, fd, host, port, bulk);
  }

 private:
  TlsCredentials credentials_;
  std::shared_ptr<TlsPeers> peers_;
};

}  // namespace kc
