// Owns: the error texts of TLS, with cause and remedy, from OpenSSL's codes, alerts and certificates.
// Threads: any (no state). Never: prints text of a peer without making it printable and short.
#pragma once
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <string>

namespace kc {

// Returns OpenSSL's text for the earliest error of this thread, and clears the error queue.
inline std::string openssl_reason() {
  const unsigned long code = ERR_peek_error();
  const char* reason = code ? ERR_reason_error_string(code) : nullptr;
  std::string text = reason ? reason : "OpenSSL gave no reason";
  ERR_clear_error();
  return text;
}

// Returns at most `most` bytes of the text, all of them printable ASCII.
inline std::string printable(const char* text, size_t length, size_t most = 160) {
  std::string out;
  for (size_t i = 0; i < length && i < most; i++) out.push_back(text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?');
  if (length > most) out += "...";
  return out;
}

inline std::string text_of_bio(BIO* bio) {
  char* bytes = nullptr;
  const long length = BIO_get_mem_data(bio, &bytes);
  return length > 0 ? printable(bytes, static_cast<size_t>(length)) : std::string();
}

inline std::string name_text(const X509_NAME* name) {
  BIO* bio = BIO_new(BIO_s_mem());
  if (!bio) return std::string();
  X509_NAME_print_ex(bio, const_cast<X509_NAME*>(name), 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  std::string text = text_of_bio(bio);
  BIO_free(bio);
  return text.empty() ? "(no name)" : text;
}

inline std::string time_text(const ASN1_TIME* time) {
  BIO* bio = BIO_new(BIO_s_mem());
  if (!bio) return std::string();
  ASN1_TIME_print(bio, time);
  std::string text = text_of_bio(bio);
  BIO_free(bio);
  return text;
}

// Returns a few of the DNS names and addresses of a certificate.
inline std::string certificate_hosts(X509* certificate) {
  constexpr int kShown = 6;
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::string text;
  int shown = 0;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names) && shown <= kShown; i++) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    std::string one;
    if (name->type == GEN_DNS) {
      one = printable(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                      static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)), 80);
    } else if (name->type == GEN_IPADD) {
      const uint8_t* a = ASN1_STRING_get0_data(name->d.iPAddress);
      const int length = ASN1_STRING_length(name->d.iPAddress);
      char address[INET6_ADDRSTRLEN] = "";
      if (length == 4) inet_ntop(AF_INET, a, address, sizeof address);
      if (length == 16) inet_ntop(AF_INET6, a, address, sizeof address);
      one = address;
    }
    if (one.empty()) continue;
    if (!text.empty()) text += ", ";
    text += shown++ == kShown ? "..." : one;
  }
  GENERAL_NAMES_free(names);
  return text.empty() ? name_text(X509_get_subject_name(certificate)) : text;
}

// Returns the reason why a certificate of the broker's chain is not accepted, and the remedy.
inline std::string verification_text(int error, X509* certificate, const std::string& host) {
  if (!certificate) return std::string("the broker's certificate is not accepted: ") + X509_verify_cert_error_string(error);
  const std::string subject = "certificate '" + name_text(X509_get_subject_name(certificate)) + "'";
  const std::string issuer = "'" + name_text(X509_get_issuer_name(certificate)) + "'";
  switch (error) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_UNTRUSTED:
      return "the broker's " + subject + " is signed by " + issuer +
             ", which is not among the trusted CA certificates: give that CA's certificate in ssl.ca.location";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return "the broker's " + subject +
             " is signed by itself and not among the trusted CA certificates: give it in ssl.ca.location";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the broker's " + subject + " expired on " + time_text(X509_get0_notAfter(certificate)) +
             ": renew it on the broker, or set the clock of this machine";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the broker's " + subject + " is valid only from " + time_text(X509_get0_notBefore(certificate)) +
             " on: set the clock of this machine, or replace the certificate";
    case X509_V_ERR_CERT_REVOKED:
      return "the broker's " + subject + " has been revoked (ssl.crl.location): replace it on the broker";
    case X509_V_ERR_UNABLE_TO_GET_CRL:
      return "ssl.crl.location has no list of revoked certificates by " + issuer + ", issuer of the broker's " +
             subject + ": add it";
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_NOT_YET_VALID:
      return "the list of revoked certificates of " + issuer + " is out of date: renew the file of ssl.crl.location";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "the broker's certificate is for " + certificate_hosts(certificate) + " and not for '" + host +
             "': use one of its names in bootstrap.servers and advertised.listeners, or set "
             "ssl.endpoint.identification.algorithm=none";
    default:
      return "the broker's " + subject + " is not accepted: " + X509_verify_cert_error_string(error);
  }
}

// Returns the meaning of the broker's alert. `identity` is the name in the client's certificate; empty without one.
inline std::string alert_text(int alert, const std::string& identity) {
  const char* name = SSL_alert_desc_string_long(alert);
  const std::string alert_note = std::string(" (alert: ") + (name ? name : "?") + ")";
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR:
    case 116:  // certificate_required; OpenSSL 1.1.1 has no constant for it
      if (identity.empty()) {
        return "the broker demands a client certificate" + alert_note +
               ": set ssl.certificate.location and ssl.key.location, or ssl.keystore.location";
      }
      return "the broker does not accept the client certificate '" + identity + "'" + alert_note +
             ": it must be valid, and its CA in the broker's ssl.truststore";
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_INSUFFICIENT_SECURITY:
      return "the broker and this client have no cipher suite, curve or signature algorithm in common" + alert_note +
             ": check ssl.cipher.suites, ssl.curves.list and ssl.sigalgs.list, and the broker's ssl.cipher.suites" +
             (identity.empty() ? "; it may also demand a client certificate (ssl.certificate.location)" : "");
    case SSL_AD_PROTOCOL_VERSION:
      return "the broker supports neither TLS 1.2 nor 1.3" + alert_note +
             ": check the broker's ssl.enabled.protocols";
    case SSL_AD_UNRECOGNIZED_NAME:
      return "the broker has no certificate for the requested name" + alert_note + ": check bootstrap.servers";
    default:
      return "the broker ended the TLS connection" + alert_note;
  }
}

}  // namespace kc
