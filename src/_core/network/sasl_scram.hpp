// Owns: SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), without channel binding, which Kafka does not support.
// Threads: as SaslMechanism. Never: accepts a server that has not proved that it knows the password, computes more than
// SCRAM_MAX_ITERATIONS.
#pragma once
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "network/sasl_mechanism.hpp"

namespace kc {

// RFC 7677 requires at least 4096. The maximum takes a helper thread about a second.
constexpr long SCRAM_MIN_ITERATIONS = 4096;
constexpr long SCRAM_MAX_ITERATIONS = 1000000;
constexpr size_t SCRAM_MAX_MESSAGE = 4096;

// A part of the server's message; points into the message.
struct ScramPart {
  const char* data = nullptr;
  size_t length = 0;
};

// Reads the attribute at *at in "k=value,k=value…"; its key must be `key`. Moves *at to the next attribute.
inline bool scram_attribute(const char* message, size_t length, size_t* at, char key, ScramPart* out) {
  if (*at + 2 > length || message[*at] != key || message[*at + 1] != '=') return false;
  const char* start = message + *at + 2;
  const auto* comma = static_cast<const char*>(std::memchr(start, ',', length - *at - 2));
  out->data = start;
  out->length = comma ? static_cast<size_t>(comma - start) : length - *at - 2;
  *at = static_cast<size_t>(start - message) + out->length + (comma ? 1 : 0);
  return true;
}

// Decodes strict base64: a multiple of 4 characters, with padding only at the end.
inline bool scram_base64(const ScramPart& text, Secret* out) {
  if (text.length == 0 || text.length % 4 != 0 || text.length > SCRAM_MAX_MESSAGE) return false;
  size_t padding = 0;
  for (size_t i = 0; i < text.length; ++i) {
    const char ch = text.data[i];
    const bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
                        ch == '+' || ch == '/';
    if (ch == '=' && i + 2 >= text.length) {
      ++padding;
    } else if (!letter || padding) {
      return false;
    }
  }
  out->resize(text.length / 4 * 3);
  const int n = EVP_DecodeBlock(out->data(), reinterpret_cast<const uint8_t*>(text.data), static_cast<int>(text.length));
  if (n < 0) return false;
  Secret exact(out->data(), static_cast<size_t>(n) - padding);
  out->swap(exact);
  return true;
}

inline std::string scram_encode(const uint8_t* bytes, size_t length) {
  std::string out((length + 2) / 3 * 4 + 1, '\0');
  const int n = EVP_EncodeBlock(reinterpret_cast<uint8_t*>(&out[0]), bytes, static_cast<int>(length));
  out.resize(static_cast<size_t>(n));
  return out;
}

inline std::string scram_nonce() {
  uint8_t bytes[24];
  return RAND_bytes(bytes, sizeof bytes) == 1 ? scram_encode(bytes, sizeof bytes) : std::string();
}

class SaslScram final : public SaslMechanism {
 public:
  // User name and password are UTF-8 after SASLprep (kconsumer/config/sasl.py does it). Only tests set `nonce`.
  SaslScram(bool sha512, const Secret& username, Secret password, std::string nonce = scram_nonce())
      : sha512_(sha512), password_(std::move(password)), nonce_(std::move(nonce)) {
    first_bare_ = "n=";
    for (size_t i = 0; i < username.size(); ++i) {
      const char ch = username.text()[i];
      if (ch == '=') {
        first_bare_ += "=3D";
      } else if (ch == ',') {
        first_bare_ += "=2C";
      } else {
        first_bare_ += ch;
      }
    }
    first_bare_ += ",r=" + nonce_;
  }
  const char* name() const override { return sha512_ ? "SCRAM-SHA-512" : "SCRAM-SHA-256"; }
  const char* remedy() const override { return "check sasl.username and sasl.password, and that the broker has the "
                                               "password for this mechanism"; }
  bool slow() const override { return state_ == AWAITS_SALT; }

  SaslOutcome step(const uint8_t* message, size_t length, bool, Secret* out, std::string* why) override {
    const char* text = reinterpret_cast<const char*>(message);
    if (length > SCRAM_MAX_MESSAGE) return fail(why, "the broker's SCRAM message is too long");
    switch (state_) {
      case FIRST:
        if (nonce_.empty()) return fail(why, "the system cannot generate random numbers");
        out->append("n,,").append(first_bare_);
        state_ = AWAITS_SALT;
        return SASL_SEND;
      case AWAITS_SALT:
        state_ = AWAITS_PROOF;
        return prove(text, length, out, why);
      case AWAITS_PROOF:
        state_ = ENDED;
        return verify(text, length, why);
      case ENDED:
        break;
    }
    return fail(why, "the broker sent a SCRAM message after the end of the authentication");
  }

 private:
  enum State : uint8_t { FIRST, AWAITS_SALT, AWAITS_PROOF, ENDED };

  SaslOutcome fail(std::string* why, const char* text) {
    password_.clear();
    *why = text;
    return SASL_FAILED;
  }
  const EVP_MD* digest() const { return sha512_ ? EVP_sha512() : EVP_sha256(); }
  size_t digest_size() const { return sha512_ ? 64 : 32; }
  bool hmac(const Secret& key, const void* data, size_t length, Secret* out) const {
    unsigned int n = 0;
    out->resize(digest_size());
    return HMAC(digest(), key.data(), static_cast<int>(key.size()), static_cast<const uint8_t*>(data), length,
                out->data(), &n) != nullptr && n == digest_size();
  }
  bool hash(const Secret& data, Secret* out) const {
    unsigned int n = 0;
    out->resize(digest_size());
    return EVP_Digest(data.data(), data.size(), out->data(), &n, digest(), nullptr) == 1 && n == digest_size();
  }

  // Computes the client's proof from the server's first message. This step takes the most time.
  SaslOutcome prove(const char* text, size_t length, Secret* out, std::string* why) {
    ScramPart nonce, salt_text, count;
    size_t at = 0;
    if (length >= 2 && text[0] == 'm') return fail(why, "the broker requires an unknown SCRAM extension");
    if (length >= 2 && text[0] == 'e') return refused(text, length, why);
    if (!scram_attribute(text, length, &at, 'r', &nonce) || !scram_attribute(text, length, &at, 's', &salt_text) ||
        !scram_attribute(text, length, &at, 'i', &count)) {
      return fail(why, "the broker's first SCRAM message is malformed");
    }
    if (nonce.length <= nonce_.size() || std::memcmp(nonce.data, nonce_.data(), nonce_.size()) != 0) {
      return fail(why, "the broker's SCRAM nonce does not begin with the client's nonce");
    }
    for (size_t i = 0; i < nonce.length; ++i) {
      if (nonce.data[i] < 0x21 || nonce.data[i] > 0x7e) return fail(why, "the broker's SCRAM nonce is malformed");
    }
    Secret salt;
    if (!scram_base64(salt_text, &salt) || salt.empty()) return fail(why, "the broker's SCRAM salt is malformed");
    const long iterations = count_of(count);
    if (iterations < SCRAM_MIN_ITERATIONS || iterations > SCRAM_MAX_ITERATIONS) {
      *why = "the broker asks for " + quoted_words(count.data, count.length) + " SCRAM iterations: expected " +
             std::to_string(SCRAM_MIN_ITERATIONS) + " to " + std::to_string(SCRAM_MAX_ITERATIONS);
      password_.clear();
      return SASL_FAILED;
    }
    const std::string without_proof = "c=biws,r=" + std::string(nonce.data, nonce.length);
    const std::string auth = first_bare_ + "," + std::string(text, length) + "," + without_proof;
    std::string proof;
    if (!compute(salt, iterations, auth, &proof)) return fail(why, "OpenSSL cannot compute the SCRAM proof");
    out->append(without_proof).append(",p=").append(proof);
    return SASL_SEND;
  }

  bool compute(const Secret& salt, long iterations, const std::string& auth, std::string* proof) {
    Secret salted, client_key, stored_key, signature, server_key;
    salted.resize(digest_size());
    const bool ok = PKCS5_PBKDF2_HMAC(password_.text() ? password_.text() : "", static_cast<int>(password_.size()),
                                      salt.data(), static_cast<int>(salt.size()), static_cast<int>(iterations),
                                      digest(), static_cast<int>(digest_size()), salted.data()) == 1;
    password_.clear();
    if (!ok || !hmac(salted, "Client Key", 10, &client_key) || !hash(client_key, &stored_key) ||
        !hmac(stored_key, auth.data(), auth.size(), &signature) || !hmac(salted, "Server Key", 10, &server_key) ||
        !hmac(server_key, auth.data(), auth.size(), &expected_)) {
      return false;
    }
    for (size_t i = 0; i < client_key.size(); ++i) client_key.data()[i] ^= signature[i];
    *proof = scram_encode(client_key.data(), client_key.size());
    return true;
  }

  // Checks the server's last message: its signature, or its error.
  SaslOutcome verify(const char* text, size_t length, std::string* why) {
    ScramPart signature_text;
    Secret signature;
    size_t at = 0;
    if (length >= 2 && text[0] == 'e') return refused(text, length, why);
    if (!scram_attribute(text, length, &at, 'v', &signature_text) || !scram_base64(signature_text, &signature)) {
      return fail(why, "the broker's last SCRAM message is malformed");
    }
    if (signature.size() != expected_.size() ||
        CRYPTO_memcmp(signature.data(), expected_.data(), expected_.size()) != 0) {
      return fail(why, "the broker's SCRAM signature is wrong: the broker does not know the password (check "
                       "bootstrap.servers)");
    }
    expected_.clear();
    return SASL_DONE;
  }

  SaslOutcome refused(const char* text, size_t length, std::string* why) {
    ScramPart error;
    size_t at = 0;
    if (!scram_attribute(text, length, &at, 'e', &error)) return fail(why, "the broker's SCRAM message is malformed");
    fail(why, "");
    *why = "the broker refused: " + quoted_words(error.data, error.length);
    return SASL_FAILED;
  }

  static long count_of(const ScramPart& text) {
    if (text.length == 0 || text.length > 9 || text.data[0] == '0') return -1;
    long value = 0;
    for (size_t i = 0; i < text.length; ++i) {
      if (text.data[i] < '0' || text.data[i] > '9') return -1;
      value = value * 10 + (text.data[i] - '0');
    }
    return value;
  }

  bool sha512_;
  State state_ = FIRST;
  Secret password_;
  Secret expected_;  // the correct signature of the server
  std::string nonce_;
  std::string first_bare_;
};

}  // namespace kc
