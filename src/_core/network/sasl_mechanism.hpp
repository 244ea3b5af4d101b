// Owns: SaslMechanism, which makes the client's messages of an authentication and checks the server's.
// Threads: one at a time: N, or a helper thread (H) while a slow step runs (sasl_worker.hpp).
// Never: does I/O on the connection, knows the framing of messages.
#pragma once
#include <cstdint>
#include <string>

#include "base/secret.hpp"

namespace kc {

enum SaslOutcome : uint8_t {
  SASL_SEND,    // `out` is the next message; the server answers it
  SASL_DONE,    // the authentication has ended successfully
  SASL_FAILED,  // `why` has the error: in the answer, or in the client's credentials
};

// The longest accepted message of a server. Kerberos tickets with many groups take some ten kilobytes.
constexpr size_t SASL_MAX_CHALLENGE = 128 * 1024;

class SaslMechanism {
 public:
  virtual ~SaslMechanism() = default;
  // Returns the mechanism's name in the protocol.
  virtual const char* name() const = 0;
  // Handles the server's message and makes the next one. The first call has no message (`length` 0, `first`).
  virtual SaslOutcome step(const uint8_t* message, size_t length, bool first, Secret* out, std::string* why) = 0;
  // Returns whether the next step may block or take long, and must not run on N.
  virtual bool slow() const { return false; }
  // Returns the advice for the case that the broker refuses.
  virtual const char* remedy() const = 0;
  // Returns the server's error in the messages of the mechanism; empty if there is none.
  virtual std::string error_from_broker() const { return std::string(); }
};

// Prepares the text of a broker or a library for an error text: it limits the length and replaces control characters.
inline std::string quoted_words(const char* text, size_t length) {
  constexpr size_t kLongest = 500;
  std::string out;
  for (size_t i = 0; i < length && i < kLongest; ++i) {
    const auto ch = static_cast<unsigned char>(text[i]);
    out.push_back(ch < 0x20 || ch == 0x7f ? ' ' : static_cast<char>(ch));
  }
  if (length > kLongest) out += "...";
  return out;
}

}  // namespace kc
