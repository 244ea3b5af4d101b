// Owns: SecurityConfig, what the connections of a consumer are secured with.
// Threads: written by A before N starts, then read by N. Never: reads a file, holds a Python object.
#pragma once
#include <memory>

namespace kc {

class SaslCredentials;
struct TlsClient;

struct SecurityConfig {
  bool use_tls = false;   // security.protocol ssl and sasl_ssl
  bool use_sasl = false;  // security.protocol sasl_plaintext and sasl_ssl
  std::shared_ptr<TlsClient> tls;         // with use_tls; thread: N (network/tls_client.hpp)
  std::shared_ptr<SaslCredentials> sasl;  // with use_sasl; shared: inside (network/sasl_credentials.hpp)
};

}  // namespace kc
