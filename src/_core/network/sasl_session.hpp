// Owns: SaslSession, the authentication of one connection: the state of the conversation, and when it must be repeated.
// Threads: N. Never: decides what happens next: authenticator.pyx does.
#pragma once
#include <openssl/crypto.h>

#include <cstdint>
#include <memory>
#include <string>

#include "network/connection.hpp"
#include "network/sasl_credentials.hpp"
#include "network/sasl_worker.hpp"
#include "protocol/frame.hpp"
#include "protocol/messages/sasl_authenticate.hpp"

namespace kc {

enum SaslStage : uint8_t {
  SASL_IDLE,           // nothing is under way
  SASL_AWAITS_TOKEN,   // of the application
  SASL_AWAITS_STEP,    // of a helper thread
  SASL_AWAITS_ANSWER,  // of the broker
};

// Brokers that know SaslHandshake v0 only take bare tokens, each one after its size.
constexpr int16_t SASL_BARE_TOKENS = -1;
// Messages of one conversation; Kerberos, the longest, needs three of each side.
constexpr int SASL_MAX_ROUNDS = 16;

struct SaslSession {
  std::shared_ptr<SaslMechanism> mechanism;
  std::shared_ptr<SaslStep> step;
  SaslStage stage = SASL_IDLE;
  int16_t version = 0;             // of SaslAuthenticate, or SASL_BARE_TOKENS
  int rounds = 0;
  bool again = false;              // the connection is ready, and authenticates again (KIP-368)
  int64_t deadline_ms = INT64_MAX;  // of what is under way
  int64_t due_ms = INT64_MAX;      // when the connection must authenticate again
  int64_t lifetime_ms = 0;         // from the latest response
  size_t written = 0;              // bytes of Connection::out that hold a token

  ~SaslSession() {
    if (step) step->abandoned.store(true);
  }
};

inline SaslSession* start_session(Connection* c) {
  c->sasl = std::make_shared<SaslSession>();
  return c->sasl.get();
}
inline SaslSession* session_of(Connection* c) { return c->sasl.get(); }

// The token stays where it can be wiped: the generated codec would copy it into a string.
struct SaslAuthenticateBody {
  const Secret* token;
  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 2;
    w.write_length(token->size(), flexible);
    w.write_raw(token->data(), token->size());
    if (flexible) w.write_uvarint(0);
  }
};

inline void wipe_written(Connection* c) {
  if (!c->sasl || c->sasl->written == 0) return;
  // Nothing else has been written since: a connection that authenticates sends nothing else.
  OPENSSL_cleanse(const_cast<uint8_t*>(c->out.data()), c->sasl->written);
  c->sasl->written = 0;
}

// Puts the token into the (empty) buffer of the connection, framed. False where it is too long for the wire.
inline bool write_token(Connection* c, const std::string& client_id, int32_t correlation_id, const Secret& token) {
  SaslSession* s = c->sasl.get();
  Writer frame(token.size() + client_id.size() + 64);
  if (s->version == SASL_BARE_TOKENS) {
    frame.write_int32(static_cast<int32_t>(token.size()));
    frame.write_raw(token.data(), token.size());
  } else {
    encode_frame(frame, SaslAuthenticateRequest::api_key, s->version,
                 SaslAuthenticateRequest::header_version(s->version), correlation_id, client_id,
                 SaslAuthenticateBody{&token});
  }
  if (!frame.ok()) return false;
  c->out.swap(frame);
  c->out_sent = 0;
  s->written = c->out.size();
  return true;
}

// The mechanisms that the broker offers instead, for an error.
inline std::string listed(const std::vector<std::string>& mechanisms) {
  std::string out;
  for (size_t i = 0; i < mechanisms.size() && i < 20; ++i) {
    if (i) out += ", ";
    out += quoted_words(mechanisms[i].data(), mechanisms[i].size());
  }
  return out.empty() ? "none" : out;
}

}  // namespace kc
