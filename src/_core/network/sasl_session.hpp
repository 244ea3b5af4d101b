// Owns: SaslSession, the authentication of one connection: its state, and the time of the next re-authentication.
// Threads: N. Never: decides the next step: authenticator.pxi does.
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
  SASL_IDLE,           // no authentication is running
  SASL_AWAITS_TOKEN,   // waits for a token from the application
  SASL_AWAITS_STEP,    // waits for a helper thread
  SASL_AWAITS_ANSWER,  // waits for the broker
};

// Brokers with only SaslHandshake v0 expect bare tokens, each with a size prefix.
constexpr int16_t SASL_BARE_TOKENS = -1;
// The maximum number of messages in one authentication; Kerberos, the longest, needs three in each direction.
constexpr int SASL_MAX_ROUNDS = 16;

struct SaslSession {
  std::shared_ptr<SaslMechanism> mechanism;
  std::shared_ptr<SaslStep> step;
  SaslStage stage = SASL_IDLE;
  int16_t version = 0;             // version of SaslAuthenticate, or SASL_BARE_TOKENS
  int rounds = 0;
  bool again = false;              // the connection is ready and is re-authenticating (KIP-368)
  int64_t deadline_ms = INT64_MAX;  // deadline of the current re-authentication
  int64_t due_ms = INT64_MAX;      // when the connection must authenticate again
  int64_t lifetime_ms = 0;         // from the latest response
  size_t written = 0;              // number of bytes in Connection::out that contain a token

  ~SaslSession() {
    if (step) step->abandoned.store(true);
  }
};

inline SaslSession* start_session(Connection* c) {
  c->sasl = std::make_shared<SaslSession>();
  return c->sasl.get();
}
inline SaslSession* session_of(Connection* c) { return c->sasl.get(); }

// Writes the token without a copy in a string, which the generated codec would make and which could not be wiped.
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
  // The buffer contains only the token, because a connection sends no other requests while it authenticates.
  OPENSSL_cleanse(const_cast<uint8_t*>(c->out.data()), c->sasl->written);
  c->sasl->written = 0;
}

// Writes the token with its frame to the (empty) buffer of the connection. False if the token is too long. The buffer
// is wiped after the response or the loss; the generated codec and `scratch` would leave copies.
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

// Returns the list of the broker's mechanisms, for an error text.
inline std::string listed(const std::vector<std::string>& mechanisms) {
  std::string out;
  for (size_t i = 0; i < mechanisms.size() && i < 20; ++i) {
    if (i) out += ", ";
    out += quoted_words(mechanisms[i].data(), mechanisms[i].size());
  }
  return out.empty() ? "none" : out;
}

}  // namespace kc
