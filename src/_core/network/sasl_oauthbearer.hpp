// Owns: OAUTHBEARER (RFC 7628, KIP-255) with extensions (KIP-342). Threads: as SaslMechanism.
// Never: obtains a token, parses a token.
#pragma once
#include <utility>
#include <vector>

#include "network/sasl_mechanism.hpp"

namespace kc {

class SaslOauthbearer final : public SaslMechanism {
 public:
  SaslOauthbearer(Secret token, std::vector<std::pair<std::string, std::string>> extensions)
      : token_(std::move(token)), extensions_(std::move(extensions)) {}
  const char* name() const override { return "OAUTHBEARER"; }
  const char* remedy() const override { return "check that the broker accepts tokens of this issuer and that the "
                                               "token has not expired"; }
  std::string error_from_broker() const override { return error_text_; }

  SaslOutcome step(const uint8_t* message, size_t length, bool first, Secret* out, std::string* why) override {
    if (first) {
      out->append("n,,\x01" "auth=Bearer ").append(token_);
      for (const auto& extension : extensions_) {
        out->append("\x01", 1).append(extension.first).append("=", 1).append(extension.second);
      }
      out->append("\x01\x01", 2);
      token_.clear();
      return SASL_SEND;
    }
    if (length == 0 && error_text_.empty()) return SASL_DONE;
    if (!error_text_.empty()) {
      *why = "the broker does not accept the token: " + error_text_;
      return SASL_FAILED;
    }
    // RFC 7628 §3.2.3: the client acknowledges the server's error; then the server ends the authentication.
    error_text_ = quoted_words(reinterpret_cast<const char*>(message), length);
    out->append("\x01", 1);
    return SASL_SEND;
  }

 private:
  Secret token_;
  std::vector<std::pair<std::string, std::string>> extensions_;
  std::string error_text_;
};

}  // namespace kc
