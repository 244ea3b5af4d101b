// Owns: SecurityConfig, the TLS and SASL settings of a consumer's connections.
// Threads: A writes it before N starts, then N reads it. Never: reads a file, holds a Python object.
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
