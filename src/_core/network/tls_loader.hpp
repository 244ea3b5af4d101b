// Owns: TlsLoader, which makes a TlsContext from a TlsConfig: CA certificates, the client's certificate and key, lists
// of revoked certificates, and the ciphers and algorithms for the handshake.
// Threads: A at construction, a helper thread later; no data is shared. Never: runs on N (it reads files), leaves a key
// or a password unwiped, reports an error without its property and file.
#pragma once
#include <dirent.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "network/socket.hpp"
#include "network/tls_config.hpp"
#include "network/tls_context.hpp"
#include "network/tls_error.hpp"

namespace kc {

// The files with the trusted CA certificates of Debian and Alpine, Red Hat, SUSE, macOS, Homebrew and the BSDs.
inline const std::vector<std::string>& system_ca_files() {
  static const std::vector<std::string> files = {
      "/etc/ssl/certs/ca-certificates.crt",
      "/etc/pki/tls/certs/ca-bundle.crt",
      "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
      "/etc/ssl/ca-bundle.pem",
      "/etc/ssl/cert.pem",
      "/opt/homebrew/etc/openssl@3/cert.pem",
      "/usr/local/etc/openssl@3/cert.pem",
      "/usr/local/share/certs/ca-root-nss.crt",
  };
  return files;
}

class TlsLoader {
 public:
  // The loader appends each file that it reads to `files`, so that the caller can detect changes.
  TlsLoader(const TlsConfig& config, std::vector<TlsFile>* files) : config_(config), files_(files) {}

  Status load(std::shared_ptr<TlsContext>* out) {
    auto made = std::make_shared<TlsContext>();
    made->verify = config_.verify;
    made->verify_host = config_.verify && config_.verify_host;
    made->ctx = ctx_ = SSL_CTX_new(TLS_client_method());
    if (!ctx_) return wrong("TLS", "cannot be used: " + openssl_reason());
    configure();
    Status status = offers();
    if (status.ok() && config_.verify) status = trust();
    if (status.ok() && config_.verify && !config_.crl_location.empty()) status = revoked();
    if (status.ok() && config_.has_identity()) status = identity();
    ERR_clear_error();
    if (!status.ok()) return status;
    if (X509* own = SSL_CTX_get0_certificate(ctx_)) made->identity = name_text(X509_get_subject_name(own));
    *out = std::move(made);
    return status;
  }

 private:
  struct FreeBio {
    void operator()(BIO* b) const { BIO_free(b); }
  };
  using Bio = std::unique_ptr<BIO, FreeBio>;

  static Status wrong(const std::string& property, const std::string& why) {
    ERR_clear_error();
    return Status(ERR_INVALID_ARG, property + " " + why);
  }
  static Bio over(const void* bytes, size_t length) {
    return Bio(BIO_new_mem_buf(length ? bytes : "", static_cast<int>(length)));
  }
  static std::string quoted(const std::string& path) { return "'" + path + "'"; }
  // Returns whether the latest PEM_read_bio_* failed only because there is no further block.
  static bool at_end() {
    const unsigned long code = ERR_peek_last_error();
    const bool end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
    if (end) ERR_clear_error();
    return end;
  }

  Status read(const char* property, const std::string& path, Secret* out) {
    const int error = read_tls_file(path, out, files_);
    return error == 0 ? Status() : wrong(property, quoted(path) + " cannot be read: " + error_text(error));
  }

  void configure() {
    SSL_CTX_set_min_proto_version(ctx_, config_.protocols == "TLSv1.3" ? TLS1_3_VERSION : TLS1_2_VERSION);
    if (config_.protocols == "TLSv1.2") SSL_CTX_set_max_proto_version(ctx_, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx_, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(ctx_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_session_cache_mode(ctx_, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_set_default_passwd_cb(ctx_, no_password);
    SSL_CTX_set_read_ahead(ctx_, 1);  // one recv reads many records
    // Every certificate in ssl.ca.location is trusted, also an intermediate CA or the broker's own certificate.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx_), X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
  }

  // -- ciphers and algorithms for the handshake ------------------------------------------------------------------------

  Status offers() {
    if (!config_.cipher_suites.empty()) {
      Status status = suites();
      if (!status.ok()) return status;
    }
    if (!config_.curves.empty() && SSL_CTX_set1_groups_list(ctx_, config_.curves.c_str()) != 1) {
      return wrong("ssl.curves.list", quoted(config_.curves) + " contains a curve unknown to OpenSSL");
    }
    if (!config_.sigalgs.empty() && SSL_CTX_set1_sigalgs_list(ctx_, config_.sigalgs.c_str()) != 1) {
      return wrong("ssl.sigalgs.list", quoted(config_.sigalgs) + " contains an algorithm unknown to OpenSSL");
    }
    return Status();
  }

  // OpenSSL has a separate list for the suites of TLS 1.3, and its own names for older suites. This function accepts
  // the standard names too.
  Status suites() {
    std::string before, tls13, word;
    for (const char c : config_.cipher_suites + ":") {
      if (c != ':' && c != ',' && c != ' ') {
        word.push_back(c);
        continue;
      }
      if (word.empty()) continue;
      const bool is13 = word.rfind("TLS_", 0) == 0 && word.find("_WITH_") == std::string::npos;
      const bool is_standard = word.rfind("TLS_", 0) == 0 && !is13;
      std::string& list = is13 ? tls13 : before;
      if (!list.empty()) list.push_back(':');
      list += is_standard ? OPENSSL_cipher_name(word.c_str()) : word.c_str();
      word.clear();
    }
    if (!tls13.empty() && SSL_CTX_set_ciphersuites(ctx_, tls13.c_str()) != 1) {
      return wrong("ssl.cipher.suites", quoted(tls13) + " contains no TLS 1.3 suite known to OpenSSL");
    }
    if (!before.empty() && SSL_CTX_set_cipher_list(ctx_, before.c_str()) != 1) {
      return wrong("ssl.cipher.suites", quoted(config_.cipher_suites) + " contains no suite known to OpenSSL");
    }
    if (tls13.empty() || !before.empty()) return Status();
    if (config_.protocols == "TLSv1.2") {
      return wrong("ssl.cipher.suites", quoted(tls13) + " contains no suite of TLS 1.2, the only version in "
                                                        "ssl.enabled.protocols");
    }
    SSL_CTX_set_min_proto_version(ctx_, TLS1_3_VERSION);
    return Status();
  }

  // -- authorities -----------------------------------------------------------------------------------------------------

  Status trust() {
    if (!config_.ca_pem.empty()) {
      return trust_pem("ssl.ca.pem", "", config_.ca_pem.data(), config_.ca_pem.size());
    }
    if (config_.ca_location.empty() || config_.ca_location == "probe") return trust_system();
    struct stat s;
    const std::string& path = config_.ca_location;
    if (::stat(path.c_str(), &s) != 0) {
      return wrong("ssl.ca.location", quoted(path) + " cannot be read: " + error_text(errno));
    }
    if (!S_ISDIR(s.st_mode)) return trust_file("ssl.ca.location", path);
    int count = 0;
    Status status = trust_folder("ssl.ca.location", path, &count);
    if (status.ok() && count == 0) return wrong("ssl.ca.location", quoted(path) + " has no file with a certificate (PEM)");
    return status;
  }

  Status trust_file(const char* property, const std::string& path) {
    Secret bytes;
    Status status = read(property, path, &bytes);
    return status.ok() ? trust_pem(property, quoted(path) + " ", bytes.data(), bytes.size()) : status;
  }

  Status trust_pem(const char* property, const std::string& where, const void* bytes, size_t length) {
    int count = 0;
    if (!add_trusted(bytes, length, &count)) return wrong(property, where + "is damaged: " + openssl_reason());
    if (count == 0) return wrong(property, where + "contains no certificate (PEM)");
    return Status();
  }

  // Reads all files of the folder now. OpenSSL's own folder look-up reads them in the handshake, on N.
  Status trust_folder(const char* property, const std::string& path, int* count) {
    files_->push_back(TlsFile::of(path));
    DIR* folder = ::opendir(path.c_str());
    if (!folder) return wrong(property, quoted(path) + " cannot be read: " + error_text(errno));
    while (const struct dirent* entry = ::readdir(folder)) {
      const std::string file = path + "/" + entry->d_name;
      struct stat s;
      if (entry->d_name[0] == '.' || ::stat(file.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) continue;
      Secret bytes;
      if (read_tls_file(file, &bytes, files_) != 0) continue;  // for example a key without read permission
      add_trusted(bytes.data(), bytes.size(), count);
      ERR_clear_error();
    }
    ::closedir(folder);
    return Status();
  }

  Status trust_system() {
    int count = 0;
    std::string looked;
    auto file = [&](const std::string& path) {
      Secret bytes;
      looked += (looked.empty() ? "" : ", ") + path;
      if (read_tls_file(path, &bytes, files_) == 0) add_trusted(bytes.data(), bytes.size(), &count);
      ERR_clear_error();
      return count > 0;
    };
    auto folder = [&](const std::string& path) {
      looked += (looked.empty() ? "" : ", ") + path;
      return trust_folder("", path, &count).ok() && count > 0;
    };
    const char* own_file = getenv(X509_get_default_cert_file_env());
    const char* own_folder = getenv(X509_get_default_cert_dir_env());
    bool found = own_file && *own_file && file(own_file);
    found = (own_folder && *own_folder && folder(own_folder)) || found;
    if (found) return Status();
    for (const std::string& path : system_ca_files()) {
      if (file(path)) return Status();
    }
    if (file(X509_get_default_cert_file()) || folder("/etc/ssl/certs") || folder(X509_get_default_cert_dir())) {
      return Status();
    }
    return wrong("ssl.ca.location", "is not set and this system has no CA certificates (searched " + looked +
                                        "): set ssl.ca.location, or install them (package ca-certificates)");
  }

  // Adds the certificates up to the first damaged block; false if there is one.
  bool add_trusted(const void* bytes, size_t length, int* count) {
    Bio bio = over(bytes, length);
    if (!bio) return false;
    for (;;) {
      X509* certificate = PEM_read_bio_X509_AUX(bio.get(), nullptr, no_password, nullptr);
      if (!certificate) return at_end();
      const bool added = X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx_), certificate) == 1;
      X509_free(certificate);
      if (!added) return false;
      ++*count;
    }
  }

  Status revoked() {
    const std::string& path = config_.crl_location;
    Secret bytes;
    Status status = read("ssl.crl.location", path, &bytes);
    if (!status.ok()) return status;
    Bio bio = over(bytes.data(), bytes.size());
    int count = 0;
    while (X509_CRL* list = bio ? PEM_read_bio_X509_CRL(bio.get(), nullptr, no_password, nullptr) : nullptr) {
      const bool added = X509_STORE_add_crl(SSL_CTX_get_cert_store(ctx_), list) == 1;
      X509_CRL_free(list);
      if (!added) break;
      count++;
    }
    if (!at_end()) return wrong("ssl.crl.location", quoted(path) + " is damaged: " + openssl_reason());
    if (count == 0) return wrong("ssl.crl.location", quoted(path) + " contains no list of revoked certificates (PEM)");
    // Check the whole chain; TlsTransport accepts a CA certificate without a list from its issuer.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx_), X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return status;
  }

  // -- the client's certificate and key --------------------------------------------------------------------------------

  Status identity() {
    if (!config_.keystore_location.empty()) return keystore();
    Status status = certificate();
    return status.ok() ? key() : status;
  }

  Status certificate() {
    const bool in_file = !config_.certificate_location.empty();
    const char* property = in_file ? "ssl.certificate.location" : "ssl.certificate.pem";
    const std::string where = in_file ? quoted(config_.certificate_location) + " " : "";
    Secret bytes;
    if (in_file) {
      Status status = read(property, config_.certificate_location, &bytes);
      if (!status.ok()) return status;
    } else {
      bytes.append(config_.certificate_pem);
    }
    Bio bio = over(bytes.data(), bytes.size());
    X509* own = bio ? PEM_read_bio_X509_AUX(bio.get(), nullptr, no_password, nullptr) : nullptr;
    if (!own) {
      if (at_end()) return wrong(property, where + "contains no certificate (PEM)");
      return wrong(property, where + "is damaged: " + openssl_reason());
    }
    const bool used = SSL_CTX_use_certificate(ctx_, own) == 1;
    X509_free(own);
    if (!used) return wrong(property, where + "cannot be used: " + openssl_reason());
    while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr)) {
      if (SSL_CTX_add0_chain_cert(ctx_, next) == 1) continue;
      X509_free(next);
      return wrong(property, where + "cannot be used: " + openssl_reason());
    }
    if (!at_end()) return wrong(property, where + "is damaged: " + openssl_reason());
    return Status();
  }

  Status key() {
    const bool in_file = !config_.key_location.empty();
    const char* property = in_file ? "ssl.key.location" : "ssl.key.pem";
    const std::string where = in_file ? quoted(config_.key_location) + " " : "";
    Secret read_bytes;
    if (in_file) {
      Status status = read(property, config_.key_location, &read_bytes);
      if (!status.ok()) return status;
    }
    const Secret& bytes = in_file ? read_bytes : config_.key_pem;
    Bio bio = over(bytes.data(), bytes.size());
    Password password{config_.has_key_password ? &config_.key_password : nullptr, false};
    EVP_PKEY* key = bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, give_password, &password) : nullptr;
    if (!key) {
      if (password.asked && !password.secret) return wrong(property, where + "is encrypted: set ssl.key.password");
      if (password.asked) return wrong(property, where + "cannot be decrypted: ssl.key.password is wrong");
      return wrong(property, where + "contains no private key (PEM)");
    }
    const bool matches = SSL_CTX_use_PrivateKey(ctx_, key) == 1 && SSL_CTX_check_private_key(ctx_) == 1;
    EVP_PKEY_free(key);
    const std::string certificate = config_.certificate_location.empty()
                                        ? std::string("ssl.certificate.pem")
                                        : "ssl.certificate.location " + quoted(config_.certificate_location);
    return matches ? Status() : wrong(property, where + "is not the key of the certificate in " + certificate);
  }

  Status keystore() {
    const char* property = "ssl.keystore.location";
    const std::string where = quoted(config_.keystore_location) + " ";
    Secret bytes;
    Status status = read(property, config_.keystore_location, &bytes);
    if (!status.ok()) return status;
    Bio bio = over(bytes.data(), bytes.size());
    PKCS12* store = bio ? d2i_PKCS12_bio(bio.get(), nullptr) : nullptr;
    if (!store) return wrong(property, where + "is not a PKCS#12 keystore" + not_pkcs12(bytes));
    std::string why;
    status = unpack(store, &why) ? Status() : wrong(property, where + why);
    PKCS12_free(store);
    return status;
  }

  static std::string not_pkcs12(const Secret& bytes) {
    static const uint8_t jks[] = {0xfe, 0xed, 0xfe, 0xed};
    if (bytes.size() >= sizeof jks && memcmp(bytes.data(), jks, sizeof jks) == 0) {
      return " but a JKS keystore: convert it with keytool -importkeystore -deststoretype pkcs12";
    }
    if (bytes.size() > 10 && memcmp(bytes.data(), "-----BEGIN", 10) == 0) {
      return ": set PEM files in ssl.certificate.location and ssl.key.location";
    }
    return "";
  }

  bool unpack(PKCS12* store, std::string* why) {
    Secret password(config_.keystore_password);
    password.append("\0", 1);
    // A keystore without a password has a null or an empty password.
    const char* word = config_.has_keystore_password ? password.text() : nullptr;
    if (PKCS12_verify_mac(store, word, -1) != 1 && (word || PKCS12_verify_mac(store, "", 0) != 1)) {
      const bool old = ERR_GET_LIB(ERR_peek_error()) == ERR_LIB_EVP;
      *why = !word ? "is encrypted: set ssl.keystore.password"
             : old ? "uses an algorithm that OpenSSL no longer supports (" + openssl_reason() + "): create it again"
                   : std::string("cannot be opened: ssl.keystore.password is wrong");
      return false;
    }
    EVP_PKEY* key = nullptr;
    X509* own = nullptr;
    STACK_OF(X509)* others = nullptr;
    if (PKCS12_parse(store, word, &key, &own, &others) != 1) {
      *why = "uses an algorithm that OpenSSL no longer supports (" + openssl_reason() + "): create it again";
      return false;
    }
    bool good = key && own;
    if (!good) {
      *why = "contains no private key with its certificate";
    } else if (SSL_CTX_use_certificate(ctx_, own) != 1 || SSL_CTX_use_PrivateKey(ctx_, key) != 1 ||
               SSL_CTX_check_private_key(ctx_) != 1) {
      good = false;
      *why = "cannot be used: " + openssl_reason();
    }
    for (int i = 0; good && others && i < sk_X509_num(others); i++) SSL_CTX_add1_chain_cert(ctx_, sk_X509_value(others, i));
    EVP_PKEY_free(key);
    X509_free(own);
    sk_X509_pop_free(others, X509_free);
    return good;
  }

  // -- passwords -------------------------------------------------------------------------------------------------------

  struct Password {
    const Secret* secret;
    bool asked;
  };
  static int give_password(char* to, int most, int, void* context) {
    auto* password = static_cast<Password*>(context);
    password->asked = true;
    if (!password->secret || password->secret->size() > static_cast<size_t>(most)) return -1;
    if (!password->secret->empty()) memcpy(to, password->secret->data(), password->secret->size());
    return static_cast<int>(password->secret->size());
  }
  static int no_password(char*, int, int, void*) { return -1; }

  const TlsConfig& config_;
  std::vector<TlsFile>* files_;
  SSL_CTX* ctx_ = nullptr;
};

}  // namespace kc
