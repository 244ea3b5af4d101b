// Owns: TlsClient, the interface through which N secures the connections of one consumer.
// Threads: N; A creates it. Never: refers to OpenSSL: only kconsumer._core.network.tls links it, and the first consumer
// with TLS loads that module.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "network/selector.hpp"
#include "network/transport.hpp"

namespace kc {

struct TlsClient {
  virtual ~TlsClient() = default;
  // Sets the selector to wake after a check of the credentials.
  virtual void open(Selector* selector) = 0;
  // Wipes the credentials; open connections keep theirs until they close.
  virtual void close() = 0;
  // Starts a thread that checks the credential files, and reads them again if they have changed. Returns the ticket for
  // checked().
  virtual uint64_t check() = 0;
  // Returns whether the check with this ticket has ended.
  virtual bool checked(uint64_t ticket) = 0;
  // Takes the message about the latest read of the files. Returns its log level; 0 if there is no new message.
  virtual int take_news(std::string* out) = 0;
  // Makes the transport of a connected socket. `bulk`: a connection for fetches.
  virtual Transport* connect(int fd, const std::string& host, int32_t port, bool bulk) = 0;
};

inline TlsClient* get_tls_client(const std::shared_ptr<TlsClient>& client) { return client.get(); }

}  // namespace kc
