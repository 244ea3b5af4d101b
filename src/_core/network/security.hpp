// Owns: SecurityConfig, what the connections of a consumer are secured with.
// Threads: written by A before N starts, then read by N. Never: reads a file, holds a Python object.
#pragma once

namespace kc {

struct SecurityConfig {
  bool use_tls = false;   // security.protocol ssl and sasl_ssl
  bool use_sasl = false;  // security.protocol sasl_plaintext and sasl_ssl
};

}  // namespace kc
