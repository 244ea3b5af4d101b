// Owns: SaslCredentials, the secrets with which this consumer authenticates, and the time of the next token request.
// Threads: set_* any; the rest N; shared: mutex_. Never: obtains a token, keeps a replaced secret.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/secret.hpp"
#include "network/sasl_gssapi.hpp"
#include "network/sasl_oauthbearer.hpp"
#include "network/sasl_plain.hpp"
#include "network/sasl_scram.hpp"

namespace kc {

// The pause after a failure to obtain a token, and between a token that the broker refused and the next request.
constexpr int64_t TOKEN_RETRY_MS = 10000;

class SaslCredentials {
 public:
  // Fixed before N starts.
  std::string mechanism;  // the name in the protocol
  KerberosSettings kerberos;
  bool asks_for_tokens = false;  // whether there is a source of tokens: oauth_cb, OIDC or unsecured tokens
  bool renews_tokens = false;    // whether the source gets a token before the last one expires, and retries, unasked
  std::atomic<uint64_t> generation{0};  // shared: counts the calls of set_password() and set_token()

  void set_password(Secret username, Secret password) {
    std::lock_guard<std::mutex> hold(mutex_);
    username_ = std::move(username);
    password_ = std::move(password);
    generation.fetch_add(1);
  }
  // Sets a token that expires `life_ms` after `now_ms` (monotonic).
  void set_token(Secret token, std::vector<std::pair<std::string, std::string>> extensions, int64_t life_ms,
                 int64_t now_ms) {
    std::lock_guard<std::mutex> hold(mutex_);
    token_ = std::move(token);
    extensions_ = std::move(extensions);
    set_ms_ = now_ms;
    expires_ms_ = now_ms + life_ms;
    refresh_ms_ = renews_tokens ? INT64_MAX : now_ms + life_ms / 10 * 8;
    asked_ = false;
    failure_.clear();
    generation.fetch_add(1);
  }
  // Sets the error of a source, which is asked again after TOKEN_RETRY_MS.
  void token_failed(const std::string& why, int64_t now_ms) {
    std::lock_guard<std::mutex> hold(mutex_);
    failure_ = why;
    failed_ms_ = now_ms;
    refresh_ms_ = renews_tokens ? INT64_MAX : now_ms + TOKEN_RETRY_MS;
    asked_ = false;
  }
  void wipe() {
    std::lock_guard<std::mutex> hold(mutex_);
    username_.clear();
    password_.clear();
    token_.clear();
    expires_ms_ = 0;
  }

  // Returns whether the latest attempt to obtain a token failed, and its error in `why`.
  bool failure(std::string* why) {
    std::lock_guard<std::mutex> hold(mutex_);
    *why = failure_;
    return !failure_.empty();
  }
  // Called when the broker refused a token: requests the next token earlier, but not at every attempt. Only this asks a
  // source that renews tokens itself, so a wrong clock or a suspended machine does not keep the consumer down
  // (test_a_provider_is_asked_again_when_a_broker_refuses_its_token).
  void refused(int64_t now_ms) {
    std::lock_guard<std::mutex> hold(mutex_);
    const int64_t latest_ms = std::max(set_ms_, failed_ms_);
    if (!token_.empty()) refresh_ms_ = std::min(refresh_ms_, std::max(now_ms, latest_ms + TOKEN_RETRY_MS));
  }
  // Returns the time from which take_token_request() returns true; INT64_MAX if a new token or error must be set first.
  int64_t token_due_ms() {
    std::lock_guard<std::mutex> hold(mutex_);
    return asks_for_tokens && !asked_ ? refresh_ms_ : INT64_MAX;
  }
  // Returns whether to ask the source for a token now; true only once until it has answered.
  bool take_token_request(int64_t now_ms) {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!asks_for_tokens || asked_ || now_ms < refresh_ms_) return false;
    asked_ = true;
    return true;
  }
  // Begins an authentication with the broker at `host`; returns null while there is no valid token.
  std::shared_ptr<SaslMechanism> begin(const std::string& host, int64_t now_ms) {
    std::lock_guard<std::mutex> hold(mutex_);
    if (mechanism == "PLAIN") return std::make_shared<SaslPlain>(username_, password_);
    if (mechanism == "SCRAM-SHA-256") return std::make_shared<SaslScram>(false, username_, password_);
    if (mechanism == "SCRAM-SHA-512") return std::make_shared<SaslScram>(true, username_, password_);
    if (mechanism == "GSSAPI") return std::make_shared<SaslGssapi>(kerberos, host);
    if (token_.empty() || now_ms >= expires_ms_) return nullptr;
    return std::make_shared<SaslOauthbearer>(token_, extensions_);
  }

 private:
  std::mutex mutex_;
  Secret username_;                                               // shared: mutex_
  Secret password_;                                               // shared: mutex_
  Secret token_;                                                  // shared: mutex_
  std::vector<std::pair<std::string, std::string>> extensions_;   // shared: mutex_
  std::string failure_;                                           // shared: mutex_
  int64_t set_ms_ = 0, failed_ms_ = 0, expires_ms_ = 0;           // shared: mutex_; monotonic
  // The first token comes unasked: a request for it would run oauth_cb twice.
  int64_t refresh_ms_ = INT64_MAX;                                // shared: mutex_
  bool asked_ = false;                                            // shared: mutex_
};

// For callers that cannot move, such as Cython code: these functions move the secrets out of their arguments.
inline void set_password(SaslCredentials* to, Secret& username, Secret& password) {
  to->set_password(std::move(username), std::move(password));
}
inline void set_token(SaslCredentials* to, Secret& token,
                      std::vector<std::pair<std::string, std::string>>& extensions, int64_t life_ms, int64_t now_ms) {
  to->set_token(std::move(token), std::move(extensions), life_ms, now_ms);
}
inline SaslCredentials* get_credentials(const std::shared_ptr<SaslCredentials>& held) { return held.get(); }

}  // namespace kc
