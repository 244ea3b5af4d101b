// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of SaslAuthenticate, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct SaslAuthenticateRequest {
  static constexpr const char* name = "SaslAuthenticateRequest";
  static constexpr int16_t api_key = 36;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 2;
  static constexpr int16_t header_version(int16_t version) { return version >= 2 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 2 ? 1 : 0; }

  std::string auth_bytes;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 2;
    w.write_bytes(auth_bytes, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 2;
    r.begin(name, version);
    r.read_bytes(auth_bytes, flexible, "auth_bytes");
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("auth_bytes", auth_bytes);
  }
};

struct SaslAuthenticateResponse {
  static constexpr const char* name = "SaslAuthenticateResponse";
  static constexpr int16_t api_key = 36;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 2;
  static constexpr int16_t header_version(int16_t version) { return version >= 2 ? 1 : 0; }

  int16_t error_code = 0;
  NullableString error_message{PRESENT};
  std::string auth_bytes;
  int64_t session_lifetime_ms = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 2;
    w.write_int16(error_code);
    w.write_nullable_string(error_message, flexible, true);
    w.write_bytes(auth_bytes, flexible);
    if (version >= 1) {
      w.write_int64(session_lifetime_ms);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 2;
    r.begin(name, version);
    error_code = r.read_int16("error_code");
    r.read_nullable_string(error_message, flexible, true, "error_message");
    r.read_bytes(auth_bytes, flexible, "auth_bytes");
    if (version >= 1) {
      session_lifetime_ms = r.read_int64("session_lifetime_ms");
    } else {
      session_lifetime_ms = 0;
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("error_code", error_code);
    f("error_message", error_message);
    f("auth_bytes", auth_bytes);
    f("session_lifetime_ms", session_lifetime_ms);
  }
};

}  // namespace kc
