// Owns: TlsTransport, which moves a connection's bytes through TLS, and the texts of its errors.
// Threads: N. Never: blocks, closes the descriptor, reads a file, raises SIGPIPE.
//
// Read-ahead: OpenSSL fills its buffer from the socket, with many records at once, and decrypts them there. A read
// copies one record's plaintext to the caller's memory, usually a fetch block. So the buffer can have bytes that the
// selector cannot see. OpenSSL reports pending bytes for half a record too; pending() must not, or the loop would spin
// until the other half arrives.
#pragma once
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/status.hpp"
#include "network/socket.hpp"
#include "network/tls_context.hpp"
#include "network/tls_error.hpp"
#include "network/transport.hpp"

namespace kc {

// The brokers that have completed a handshake. If such a broker closes the connection in a later handshake, the port is
// not a plaintext port.
struct TlsPeers {
  std::set<std::string> known;  // thread: N
};

// The name or address for which a certificate must be valid. OpenSSL does not check an empty name, and accepts all
// subdomains for a name that begins with a dot. Names can come from brokers, so both are refused here.
struct PeerName {
  std::string name;
  bool is_address = false;
  bool usable = false;

  explicit PeerName(const std::string& host) : name(host) {
    uint8_t address[sizeof(struct in6_addr)];
    const std::string without_zone = host.substr(0, host.find('%'));
    if (inet_pton(AF_INET6, without_zone.c_str(), address) == 1) name = without_zone;
    is_address = inet_pton(AF_INET, name.c_str(), address) == 1 || inet_pton(AF_INET6, name.c_str(), address) == 1;
    if (!is_address && !name.empty() && name.back() == '.') name.pop_back();
    usable = is_address ? name.find('\0') == std::string::npos : is_host_name(name);
  }

 private:
  static bool is_host_name(const std::string& text) {
    bool label_begins = true;
    for (unsigned char c : text) {
      if (c == '.' ? label_begins : c <= ' ' || c == 0x7f || c == '%') return false;
      label_begins = c == '.';
    }
    return !text.empty() && !label_begins;
  }
};

class TlsTransport final : public Transport {
 public:
  // The maximum size of one recv on a fetch connection. More than the second-level cache is not faster.
  static constexpr size_t kBulkBytes = 256 * 1024;
  static constexpr size_t kSmallBytes = 17 * 1024;
  // The most bytes that one handshake() or read_into() takes from the socket beyond the first recv. OpenSSL reads on
  // until it has plaintext, and a broker may send tickets without end: the loop has other work
  // (test_tickets_without_end_leave_the_loop_time_for_other_work).
  static constexpr size_t kUnseenBytes = 64 * 1024;

  TlsTransport(std::shared_ptr<TlsContext> context, std::shared_ptr<TlsPeers> peers, int fd, const std::string& host,
               int32_t port, bool bulk)
      : context_(std::move(context)), peers_(std::move(peers)), fd_(fd), host_(host), broker_(host_and_port(host, port)) {
    if (!context_) {
      fail(ERR_SSL, "TLS: the consumer is closed");
      return;
    }
    ERR_clear_error();
    const PeerName peer(host_);
    if (!peer.usable) {
      fail(ERR_SSL, "TLS: '" + host_ + "' is not a host name or an address, so no certificate can match it: check the "
                    "broker's advertised.listeners");
    } else if (!prepare(peer, bulk)) {
      fail(ERR_SSL, "TLS cannot be used: " + openssl_reason());
    }
  }
  ~TlsTransport() override {
    // Without this flag, OpenSSL would make the session of a connection that was reset unusable for the next one.
    if (ssl_ && established_ && !failed_) SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN);
    SSL_free(ssl_);
  }
  TlsTransport(const TlsTransport&) = delete;
  TlsTransport& operator=(const TlsTransport&) = delete;

  HandshakeState handshake() override {
    if (failed_) return HANDSHAKE_FAILED;
    ERR_clear_error();
    unseen_ = 0;
    const int rc = SSL_do_handshake(ssl_);
    if (rc == 1) {
      established_ = true;
      peers_->known.insert(broker_);
      return HANDSHAKE_DONE;
    }
    const int error = SSL_get_error(ssl_, rc);
    if (error == SSL_ERROR_WANT_READ) return HANDSHAKE_WANTS_READ;
    if (error == SSL_ERROR_WANT_WRITE) return HANDSHAKE_WANTS_WRITE;
    context_->forget_session(broker_);
    handshake_failed(error);
    return HANDSHAKE_FAILED;
  }

  IoResult read_into(uint8_t* to, size_t length) override {
    IoResult result;
    if (failed_) return broken();
    ERR_clear_error();
    unseen_ = 0;
    const int rc = SSL_read_ex(ssl_, to, length, &result.bytes);
    crossed_ &= static_cast<uint8_t>(~kReadWantsWrite);
    dry_ = rc != 1 && unseen_ < kUnseenBytes;
    if (rc == 1) {
      heard_ = true;
      result.state = IO_DONE;
      return result;
    }
    result.bytes = 0;
    const int error = SSL_get_error(ssl_, rc);
    if (error == SSL_ERROR_WANT_READ) return result;
    if (error == SSL_ERROR_WANT_WRITE) {
      // After a KeyUpdate OpenSSL reads nothing until its own answer has been sent, and the socket is full
      // (test_reading_waits_for_the_answer_to_new_keys).
      crossed_ |= kReadWantsWrite;
      return result;
    }
    if (error == SSL_ERROR_ZERO_RETURN) {
      result.state = IO_CLOSED;
      return result;
    }
    return conversation_failed(error, "receive");
  }

  IoResult write(const uint8_t* from, size_t length) override {
    IoResult result;
    if (failed_) return broken();
    ERR_clear_error();
    const int rc = SSL_write_ex(ssl_, from, length, &result.bytes);
    crossed_ &= static_cast<uint8_t>(~kWriteWantsRead);
    if (rc == 1) {
      result.state = IO_DONE;
      return result;
    }
    result.bytes = 0;
    const int error = SSL_get_error(ssl_, rc);
    if (error == SSL_ERROR_WANT_WRITE) return result;
    if (error == SSL_ERROR_WANT_READ) {
      crossed_ |= kWriteWantsRead;
      return result;
    }
    if (error == SSL_ERROR_SYSCALL && !heard_) look_for_alert();
    return failed_ ? broken() : conversation_failed(error, "send");
  }

  bool pending() const override { return established_ && !failed_ && !dry_ && (SSL_has_pending(ssl_) || !drained_); }
  uint8_t crossed() const override { return crossed_; }
  int32_t error_code() const override { return code_; }
  std::string error_text() const override { return text_; }

  // Sends close_notify, and does not wait for the broker's close_notify.
  void close() override {
    if (!established_ || failed_) return;
    ERR_clear_error();
    SSL_shutdown(ssl_);
    ERR_clear_error();
  }

  std::string description() const override {
    if (!established_) return std::string();
    return std::string(SSL_get_version(ssl_)) + " " + SSL_get_cipher_name(ssl_) +
           (SSL_session_reused(ssl_) ? ", resumed" : "");
  }

  // Creates the process-wide index and method that connect an SSL object to its transport. False if memory is out.
  static bool initialise() { return connection_index() >= 0 && method() != nullptr; }
  // Sets the callbacks of a TlsContext; called before each of its connections.
  static void attach(SSL_CTX* ctx, bool verify) {
    SSL_CTX_set_verify(ctx, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, verified);
    SSL_CTX_sess_set_new_cb(ctx, session_made);
  }

 private:
  bool prepare(const PeerName& peer, bool bulk) {
    attach(context_->ctx, context_->verify);
    ssl_ = SSL_new(context_->ctx);
    BIO* bio = ssl_ ? BIO_new(method()) : nullptr;
    if (!bio) return false;
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_, bio, bio);
    SSL_set_default_read_buffer_len(ssl_, bulk ? kBulkBytes : kSmallBytes);
    SSL_set_connect_state(ssl_);
    if (SSL_set_ex_data(ssl_, connection_index(), this) != 1 || !name_peer(peer)) return false;
    SSL_SESSION* session = context_->session(broker_);
    if (session && SSL_set_session(ssl_, session) != 1) ERR_clear_error();
    return true;
  }

  // Sets the name for which the certificate must be valid, and the name in SNI (no addresses: RFC 6066).
  bool name_peer(const PeerName& peer) {
    if (!peer.is_address && SSL_set_tlsext_host_name(ssl_, peer.name.c_str()) != 1) return false;
    if (!context_->verify_host) return true;
    X509_VERIFY_PARAM* wanted = SSL_get0_param(ssl_);
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return peer.is_address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, peer.name.c_str()) == 1
                           : X509_VERIFY_PARAM_set1_host(wanted, peer.name.c_str(), peer.name.size()) == 1;
  }

  // -- failures --------------------------------------------------------------------------------------------------------

  void fail(int32_t code, std::string text) {
    failed_ = true;
    code_ = code;
    text_ = std::move(text);
  }
  static IoResult broken() {
    IoResult result;
    result.state = IO_FAILED;
    return result;
  }
  // Returns the broker's alert; -1 for any other error.
  static int alert_of(unsigned long code) {
    const int reason = ERR_GET_REASON(code);
    const bool is_alert = ERR_GET_LIB(code) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET &&
                          reason < SSL_AD_REASON_OFFSET + 256;
    return is_alert ? reason - SSL_AD_REASON_OFFSET : -1;
  }
  static bool is_reason(unsigned long code, int reason) {
    return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == reason;
  }
  bool cut_off(int error, unsigned long code) const {
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
    if (is_reason(code, SSL_R_UNEXPECTED_EOF_WHILE_READING)) return true;
#endif
    return error == SSL_ERROR_SYSCALL && code == 0 && io_error_ == 0;
  }

  void handshake_failed(int error) {
    const unsigned long code = ERR_peek_error();
    const int alert = alert_of(code);
    if (context_->verify && !verification_.empty()) {
      fail(ERR_SSL, "TLS handshake failed: " + verification_);
    } else if (io_error_ != 0) {
      fail(ERR_TRANSPORT, "TLS handshake failed: " + kc::error_text(io_error_));
    } else if (cut_off(error, code)) {
      handshake_cut_off();
    } else if (alert >= 0) {
      fail(ERR_SSL, "TLS handshake failed: " + alert_text(alert, context_->identity));
    } else if (is_reason(code, SSL_R_UNSUPPORTED_PROTOCOL) || is_reason(code, SSL_R_VERSION_TOO_LOW)) {
      fail(ERR_SSL, "TLS handshake failed: the broker supports neither TLS 1.2 nor 1.3: check the broker's "
                    "ssl.enabled.protocols");
    } else if (received_any_ && !spoke_tls_) {
      fail(ERR_SSL, "TLS handshake failed: the answer is not TLS: connect to the TLS listener's port, or set "
                    "security.protocol to plaintext or sasl_plaintext");
    } else {
      fail(ERR_SSL, "TLS handshake failed: " + openssl_reason());
    }
    ERR_clear_error();
  }

  // A plaintext listener reads the first bytes as the size of a request, which is too large, and closes the connection.
  void handshake_cut_off() {
    if (received_any_ || peers_->known.count(broker_)) {
      fail(ERR_TRANSPORT, "closed by the broker during the TLS handshake");
    } else {
      fail(ERR_SSL, "closed by the broker at the start of the TLS handshake: connect to the TLS listener's port, or set "
                    "security.protocol to plaintext or sasl_plaintext");
    }
  }

  // With TLS 1.3 the client's handshake ends before the broker has checked the client's certificate, so an alert about
  // it comes with the first read. A later error is a transport error.
  IoResult conversation_failed(int error, const char* doing) {
    const unsigned long code = ERR_peek_error();
    const int alert = alert_of(code);
    if (alert >= 0) {
      const std::string text = alert_text(alert, context_->identity);
      fail(heard_ ? ERR_TRANSPORT : ERR_SSL, heard_ ? text : "TLS handshake failed: " + text);
      if (!heard_) context_->forget_session(broker_);
    } else if (io_error_ != 0) {
      fail(ERR_TRANSPORT, std::string(doing) + " failed: " + kc::error_text(io_error_));
    } else if (cut_off(error, code)) {
      fail(ERR_TRANSPORT, "connection cut off: closed without a TLS close_notify");
    } else {
      fail(ERR_TRANSPORT, std::string("TLS ") + doing + " failed: " + openssl_reason());
    }
    ERR_clear_error();
    return broken();
  }

  // The broker has closed the connection during a write: read its alert, which may still be in the socket.
  void look_for_alert() {
    const int error = io_error_;
    io_error_ = 0;
    ERR_clear_error();
    uint8_t byte;
    size_t read = 0;
    const int rc = SSL_peek_ex(ssl_, &byte, 1, &read);
    if (rc != 1 && alert_of(ERR_peek_error()) >= 0) {
      conversation_failed(SSL_get_error(ssl_, rc), "receive");
    } else {
      io_error_ = error;
    }
    ERR_clear_error();
  }

  // -- OpenSSL's callbacks ---------------------------------------------------------------------------------------------

  static int connection_index() {
    static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
    return index;
  }
  static TlsTransport* of(const SSL* ssl) {
    return static_cast<TlsTransport*>(SSL_get_ex_data(ssl, connection_index()));
  }

  // Returns whether a list in ssl.crl.location revokes a certificate, without a check of the list's signature.
  static bool is_listed(X509_STORE_CTX* store, X509* certificate) {
    STACK_OF(X509_CRL)* lists = X509_STORE_CTX_get1_crls(store, X509_get_issuer_name(certificate));
    X509_REVOKED* entry = nullptr;
    bool found = false;
    for (int i = 0; lists && i < sk_X509_CRL_num(lists); i++) {
      found = found || X509_CRL_get0_by_cert(sk_X509_CRL_value(lists, i), &entry, certificate) == 1;
    }
    sk_X509_CRL_pop_free(lists, X509_CRL_free);
    return found;
  }

  // Returns true for a CA certificate without a list from its issuer; only the leaf certificate requires a list. The
  // chain ends with the first trusted certificate, so the signature of its issuer's list cannot be verified. OpenSSL
  // ignores such a list. Here it counts, because it comes from the user's file: an intermediate certificate in the CA
  // file may be revoked (test_revoked_authorities).
  static bool needs_no_list(X509_STORE_CTX* store) {
    const int error = X509_STORE_CTX_get_error(store);
    X509* certificate = X509_STORE_CTX_get_current_cert(store);
    const bool unlisted = error == X509_V_ERR_UNABLE_TO_GET_CRL || error == X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER ||
                          error == X509_V_ERR_CRL_SIGNATURE_FAILURE;
    if (!unlisted || X509_STORE_CTX_get_error_depth(store) == 0 || !certificate) return false;
    const int last = sk_X509_num(X509_STORE_CTX_get0_chain(store)) - 1;
    if (error != X509_V_ERR_UNABLE_TO_GET_CRL && X509_STORE_CTX_get_error_depth(store) != last) return false;
    if (!is_listed(store, certificate)) return true;
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REVOKED);
    return false;
  }

  // Saves the text of a verification error, because the certificate is freed when the handshake has failed.
  static int verified(int ok, X509_STORE_CTX* store) {
    if (!ok && needs_no_list(store)) {
      X509_STORE_CTX_set_error(store, X509_V_OK);
      return 1;
    }
    auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    TlsTransport* self = ssl ? of(ssl) : nullptr;
    if (!ok && self && self->verification_.empty()) {
      self->verification_ = verification_text(X509_STORE_CTX_get_error(store), X509_STORE_CTX_get_current_cert(store),
                                              self->host_);
    }
    return ok;
  }

  // Returns 1 if it takes over the reference to the session.
  static int session_made(SSL* ssl, SSL_SESSION* session) {
    TlsTransport* self = of(ssl);
    if (!self || !SSL_SESSION_is_resumable(session)) return 0;
    self->context_->keep_session(self->broker_, session);
    return 1;
  }

  static BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "kconsumer socket");
      if (!m) return m;
      BIO_meth_set_read(m, bio_read);
      BIO_meth_set_write(m, bio_write);
      BIO_meth_set_ctrl(m, bio_ctrl);
      return m;
    }();
    return made;
  }

  static int bio_read(BIO* bio, char* to, int length) {
    auto* self = static_cast<TlsTransport*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (self->unseen_ >= kUnseenBytes) {
      BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
      self->drained_ = false;
      return -1;
    }
    const ssize_t n = ::recv(self->fd_, to, static_cast<size_t>(length), 0);
    self->drained_ = n < length;
    if (n > 0) {
      if (!self->received_any_) self->spoke_tls_ = (to[0] == 0x15 || to[0] == 0x16) && (n < 2 || to[1] == 3);
      self->received_any_ = true;
      self->unseen_ += static_cast<size_t>(n);
    } else if (n < 0) {
      self->io_failed(bio, BIO_FLAGS_READ);
    }
    return static_cast<int>(n);
  }
  static int bio_write(BIO* bio, const char* from, int length) {
    auto* self = static_cast<TlsTransport*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
#ifdef MSG_NOSIGNAL
    const ssize_t n = ::send(self->fd_, from, static_cast<size_t>(length), MSG_NOSIGNAL);
#else
    const ssize_t n = ::send(self->fd_, from, static_cast<size_t>(length), 0);  // the socket has SO_NOSIGPIPE
#endif
    if (n < 0) self->io_failed(bio, BIO_FLAGS_WRITE);
    return static_cast<int>(n);
  }
  void io_failed(BIO* bio, int flag) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
      BIO_set_flags(bio, flag | BIO_FLAGS_SHOULD_RETRY);
    } else {
      io_error_ = errno;
    }
  }
  static long bio_ctrl(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  std::shared_ptr<TlsContext> context_;
  std::shared_ptr<TlsPeers> peers_;
  SSL* ssl_ = nullptr;         // owned, with its BIO
  int fd_;                     // owned by the connection
  std::string host_;
  std::string broker_;         // host:port, the key of the broker's session
  bool established_ = false;
  bool failed_ = false;
  bool received_any_ = false;  // the peer has sent a byte
  bool spoke_tls_ = false;     // the first bytes were those of a TLS record
  bool heard_ = false;         // the peer has sent a decrypted byte
  bool drained_ = true;        // the latest recv has emptied the socket
  bool dry_ = false;           // the latest read found no whole record
  size_t unseen_ = 0;          // bytes that the present handshake() or read_into() has taken from the socket
  uint8_t crossed_ = 0;
  int io_error_ = 0;           // errno of the socket
  int32_t code_ = ERR_SSL;
  std::string text_;
  std::string verification_;   // the reason why the chain was not accepted
};

}  // namespace kc
