// Owns: PLAIN (RFC 4616), which sends user name and password unencrypted. Threads: as SaslMechanism.
// Never: verifies the server: TLS does that.
#pragma once
#include "network/sasl_mechanism.hpp"

namespace kc {

class SaslPlain final : public SaslMechanism {
 public:
  SaslPlain(Secret username, Secret password) : username_(std::move(username)), password_(std::move(password)) {}
  const char* name() const override { return "PLAIN"; }
  const char* remedy() const override { return "check sasl.username and sasl.password"; }
  SaslOutcome step(const uint8_t*, size_t length, bool first, Secret* out, std::string* why) override {
    if (!first) {
      if (length == 0) return SASL_DONE;
      *why = "the broker sent unexpected data after PLAIN authentication";
      return SASL_FAILED;
    }
    // The authorization id is empty: it is the same as the user name.
    out->append("\0", 1).append(username_).append("\0", 1).append(password_);
    username_.clear();
    password_.clear();
    return SASL_SEND;
  }

 private:
  Secret username_;
  Secret password_;
};

}  // namespace kc
