// Owns: TlsContext, one version of a consumer's credentials in an SSL_CTX, and the TLS sessions of these credentials.
// Threads: N uses the sessions; A or a helper thread makes the rest, which is then immutable.
// Never: asks a terminal for a password.
#pragma once
#include <openssl/ssl.h>

#include <map>
#include <memory>
#include <string>

namespace kc {

class TlsContext {
 public:
  TlsContext() = default;
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext() {
    for (auto& entry : sessions_) SSL_SESSION_free(entry.second);
    SSL_CTX_free(ctx);
  }

  // Returns the session to resume with a broker; null if there is none. Sessions end with their credentials: resumed
  // after a change of CA or CRL they would skip the new check.
  SSL_SESSION* session(const std::string& broker) {
    auto found = sessions_.find(broker);
    return found == sessions_.end() ? nullptr : found->second;
  }
  // Takes over the reference to the session.
  void keep_session(const std::string& broker, SSL_SESSION* session) {
    SSL_SESSION*& slot = sessions_[broker];
    if (slot) SSL_SESSION_free(slot);
    slot = session;
  }
  void forget_session(const std::string& broker) {
    auto found = sessions_.find(broker);
    if (found == sessions_.end()) return;
    SSL_SESSION_free(found->second);
    sessions_.erase(found);
  }

  SSL_CTX* ctx = nullptr;   // owned
  bool verify = true;
  bool verify_host = true;
  std::string identity;     // the subject of the client's certificate; empty without one

 private:
  std::map<std::string, SSL_SESSION*> sessions_;  // thread: N; the latest session of each broker
};

}  // namespace kc
