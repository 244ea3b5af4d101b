// Owns: SaslMechanism, what a client says of itself and how it judges the answers, message by message.
// Threads: one at a time: N, or a helper thread (H) while a slow step runs (sasl_worker.hpp).
// Never: does I/O on the connection, knows how messages are framed.
#pragma once
#include <cstdint>
#include <string>

#include "base/secret.hpp"

namespace kc {

enum SaslOutcome : uint8_t {
  SASL_SEND,    // `out` is the next message; the server answers it
  SASL_DONE,    // the server has proved what it has to; nothing more is said
  SASL_FAILED,  // `why` says what is wrong with the answer, or with what this side has
};

// The longest message of a server that is looked at. Kerberos tickets with many groups take some ten kilobytes.
constexpr size_t SASL_MAX_CHALLENGE = 128 * 1024;

class SaslMechanism {
 public:
  virtual ~SaslMechanism() = default;
  // The name under which the broker knows it.
  virtual const char* name() const = 0;
  // What comes after the server's message; the first call is made without one (`length` 0, `first`).
  virtual SaslOutcome step(const uint8_t* message, size_t length, bool first, Secret* out, std::string* why) = 0;
  // Whether the next step may take long, or block, and must not run on N.
  virtual bool slow() const { return false; }
  // What to look at when the broker refuses.
  virtual const char* remedy() const = 0;
  // What the server has said against us in the mechanism's own words; empty for nothing.
  virtual std::string complaint() const { return std::string(); }
};

// Words of a broker or a library on their way into an error: bounded, on one line, in printable ASCII or UTF-8.
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
