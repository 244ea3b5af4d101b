// Owns: sign_jws(), the signature of a JSON Web Signature (RFC 7515) by RS256 or ES256 (RFC 7518).
// Threads: any (no state). Never: keeps the key; puts the key or its passphrase into an error.
#pragma once
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/secret.hpp"

namespace kc {

constexpr int JWS_COORDINATE_BYTES = 32;  // of curve P-256

struct JwsPassphrase {
  const Secret* secret;
  bool asked;
};

inline int give_jws_passphrase(char* to, int size, int, void* given) {
  auto* passphrase = static_cast<JwsPassphrase*>(given);
  passphrase->asked = true;
  if (!passphrase->secret || passphrase->secret->size() > static_cast<size_t>(size)) return -1;
  std::copy_n(passphrase->secret->data(), passphrase->secret->size(), to);
  return static_cast<int>(passphrase->secret->size());
}

// OpenSSL's signature is DER. RFC 7518 wants both numbers with leading zeros, side by side.
inline std::string jws_coordinates(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> pair(
      d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())), ECDSA_SIG_free);
  std::string out(2 * JWS_COORDINATE_BYTES, '\0');
  auto* to = reinterpret_cast<unsigned char*>(&out[0]);
  if (!pair || BN_bn2binpad(ECDSA_SIG_get0_r(pair.get()), to, JWS_COORDINATE_BYTES) < 0 ||
      BN_bn2binpad(ECDSA_SIG_get0_s(pair.get()), to + JWS_COORDINATE_BYTES, JWS_COORDINATE_BYTES) < 0) {
    return std::string();
  }
  return out;
}

// Returns the signature of `data` with a private key in PEM; empty with the reason in `why`, which continues the name of
// the key. `passphrase` may be null.
inline std::string sign_jws(bool elliptic, const Secret& pem, const Secret* passphrase, const std::string& data,
                            std::string* why) {
  ERR_clear_error();
  std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.size() ? pem.data() : reinterpret_cast<const uint8_t*>(""), static_cast<int>(pem.size())),
      BIO_free);
  JwsPassphrase given{passphrase, false};
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, give_jws_passphrase, &given) : nullptr, EVP_PKEY_free);
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::string signature;
  size_t length = 0;
  if (!key && given.asked) {
    *why = passphrase ? "cannot be decrypted: the passphrase is wrong" : "is encrypted: set the passphrase";
  } else if (!key) {
    *why = "is not a private key (PEM)";
  } else if (elliptic && (EVP_PKEY_base_id(key.get()) != EVP_PKEY_EC || EVP_PKEY_bits(key.get()) != 256)) {
    *why = "is not a key of curve P-256, which ES256 needs";
  } else if (!elliptic && EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA) {
    *why = "is not an RSA key, which RS256 needs";
  } else {
    const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
    if (context && EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
        EVP_DigestSign(context.get(), nullptr, &length, bytes, data.size()) == 1) {
      signature.resize(length);
      auto* to = reinterpret_cast<unsigned char*>(&signature[0]);
      if (EVP_DigestSign(context.get(), to, &length, bytes, data.size()) != 1) length = 0;
      signature.resize(length);
    }
    if (elliptic) signature = jws_coordinates(signature);
    if (signature.empty()) *why = "cannot sign";
  }
  ERR_clear_error();
  return signature;
}

}  // namespace kc
