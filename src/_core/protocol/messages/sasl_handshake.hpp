// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of SaslHandshake, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct SaslHandshakeRequest {
  static constexpr const char* name = "SaslHandshakeRequest";
  static constexpr int16_t api_key = 17;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 1;
  static constexpr int16_t header_version(int16_t) { return 1; }
  static constexpr int16_t response_header_version(int16_t) { return 0; }

  std::string mechanism;

  void encode(Writer& w, int16_t) const {
    w.write_string(mechanism, false);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    r.read_string(mechanism, false, "mechanism");
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("mechanism", mechanism);
  }
};

struct SaslHandshakeResponse {
  static constexpr const char* name = "SaslHandshakeResponse";
  static constexpr int16_t api_key = 17;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 1;
  static constexpr int16_t header_version(int16_t) { return 0; }

  int16_t error_code = 0;
  std::vector<std::string> mechanisms;

  void encode(Writer& w, int16_t) const {
    w.write_int16(error_code);
    w.write_strings(mechanisms, false);
  }
  void decode(Reader& r, int16_t version) {
    r.begin(name, version);
    error_code = r.read_int16("error_code");
    r.read_strings(mechanisms, false, "mechanisms");
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("error_code", error_code);
    f("mechanisms", mechanisms);
  }
};

}  // namespace kc
