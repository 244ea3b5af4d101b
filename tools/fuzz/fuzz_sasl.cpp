// Owns: the fuzz target of everything a broker can say before it has proved who it is: SASL messages of each mechanism,
// SaslHandshake and SaslAuthenticate responses. The first byte picks what, the rest is cut into messages by length bytes.
// Threads: one. Never: part of the core.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "network/sasl_oauthbearer.hpp"
#include "network/sasl_plain.hpp"
#include "network/sasl_scram.hpp"
#include "protocol/messages/sasl_authenticate.hpp"
#include "protocol/messages/sasl_handshake.hpp"

namespace {

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "sasl: %s\n", message);
  std::abort();
}

struct Input {
  const uint8_t* data;
  size_t size;
  // The next message: a length in two bytes, then as much of it as there is.
  bool next(const uint8_t** message, size_t* length) {
    if (size < 2) return false;
    const size_t wanted = static_cast<size_t>(data[0]) << 8 | data[1];
    *length = wanted < size - 2 ? wanted : size - 2;
    *message = data + 2;
    data += 2 + *length;
    size -= 2 + *length;
    return true;
  }
};

kc::Secret secret(const char* text) { return kc::Secret(text, std::strlen(text)); }

// Whatever comes, a mechanism ends, says why it failed, and never says DONE to a server that did not earn it.
void converse(kc::SaslMechanism& mechanism, Input input, bool proves) {
  kc::Secret out;
  std::string why;
  require(mechanism.step(nullptr, 0, true, &out, &why) == kc::SASL_SEND, "no first message");
  const uint8_t* message = nullptr;
  size_t length = 0;
  for (int rounds = 0; input.next(&message, &length); ++rounds) {
    require(rounds < 100000, "no end");
    out.clear();
    why.clear();
    const kc::SaslOutcome outcome = mechanism.step(message, length, false, &out, &why);
    (void)mechanism.slow();
    require(mechanism.error_from_broker().size() <= 503, "a complaint without bound");
    if (outcome == kc::SASL_FAILED) {
      require(!why.empty() && why.size() < 1200, "a failure without a reason, or without bound");
      return;
    }
    require(outcome != kc::SASL_DONE || !proves, "a server is believed that knows no password");
    if (outcome == kc::SASL_DONE) return;
  }
}

template <class Message>
void decode(const uint8_t* data, size_t size, int16_t version) {
  Message message;
  kc::Reader reader(data, size);
  message.decode(reader, version);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  Input input{data + 1, size - 1};
  switch (data[0] % 6) {
    case 0: {
      kc::SaslPlain mechanism(secret("user"), secret("word"));
      converse(mechanism, input, false);
      break;
    }
    case 1:
    case 2: {
      kc::SaslScram mechanism(data[0] % 6 == 1, secret("user"), secret("word"), "NONCE");
      converse(mechanism, input, true);
      break;
    }
    case 3: {
      kc::SaslOauthbearer mechanism(secret("token"), {{"a", "b"}});
      converse(mechanism, input, false);
      break;
    }
    case 4: decode<kc::SaslHandshakeResponse>(data + 1, size - 1, 1); break;
    case 5:
      if (size > 1) decode<kc::SaslAuthenticateResponse>(data + 2, size - 2, static_cast<int16_t>(data[1] % 3));
      break;
  }
  return 0;
}
