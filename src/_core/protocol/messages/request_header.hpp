// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of RequestHeader, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct RequestHeader {
  static constexpr const char* name = "RequestHeader";
  static constexpr int16_t min_version = 1;
  static constexpr int16_t max_version = 2;

  int16_t request_api_key = 0;
  int16_t request_api_version = 0;
  int32_t correlation_id = 0;
  NullableString client_id{PRESENT};

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 2;
    w.write_int16(request_api_key);
    w.write_int16(request_api_version);
    w.write_int32(correlation_id);
    w.write_nullable_string(client_id, false, true);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 2;
    r.begin(name, version);
    request_api_key = r.read_int16("request_api_key");
    request_api_version = r.read_int16("request_api_version");
    correlation_id = r.read_int32("correlation_id");
    r.read_nullable_string(client_id, false, true, "client_id");
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("request_api_key", request_api_key);
    f("request_api_version", request_api_version);
    f("correlation_id", correlation_id);
    f("client_id", client_id);
  }
};

}  // namespace kc
