// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of ResponseHeader, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct ResponseHeader {
  static constexpr const char* name = "ResponseHeader";
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 1;

  int32_t correlation_id = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 1;
    w.write_int32(correlation_id);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 1;
    r.begin(name, version);
    correlation_id = r.read_int32("correlation_id");
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("correlation_id", correlation_id);
  }
};

}  // namespace kc
