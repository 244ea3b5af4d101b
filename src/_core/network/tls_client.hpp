// Owns: TlsClient, which secures the connections of one consumer, as N sees it.
// Threads: N, but for the making of it (A). Never: names OpenSSL: only kconsumer._core.network.tls links it, and that
// module is loaded by the first consumer that wants TLS.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "network/selector.hpp"
#include "network/transport.hpp"

namespace kc {

struct TlsClient {
  virtual ~TlsClient() = default;
  // The selector is woken when a look at the credentials has ended.
  virtual void open(Selector* selector) = 0;
  // Wipes the credentials; connections that still stand keep theirs until they go.
  virtual void close() = 0;
  // Starts another thread that looks at the credentials, and reads them again if they have changed on disk. Returns
  // the ticket for checked().
  virtual uint64_t check() = 0;
  // Whether that look has ended.
  virtual bool checked(uint64_t ticket) = 0;
  // What the latest reading came to, once: the level to log it at, 0 for nothing new.
  virtual int take_news(std::string* out) = 0;
  // The transport of a connected socket. `bulk`: it will carry much.
  virtual Transport* connect(int fd, const std::string& host, int32_t port, bool bulk) = 0;
};

inline TlsClient* get_tls_client(const std::shared_ptr<TlsClient>& client) { return client.get(); }

}  // namespace kc
