// Owns: the frame around every body on a connection: its size, the request header, the response header.
// Threads: any (functions of their arguments). Never: knows an API, a connection or a socket.
#pragma once
#include <string>

#include "protocol/messages/request_header.hpp"
#include "protocol/messages/response_header.hpp"
#include "protocol/wire.hpp"

namespace kc {

// Appends one whole request: size, header, body. Body is any type with `void encode(Writer&, int16_t version) const`.
// w.ok() is false afterwards if a field was too long for the wire format; such a frame must not be sent.
template <class Body>
inline void encode_frame(Writer& w, int16_t api_key, int16_t api_version, int16_t header_version,
                         int32_t correlation_id, const std::string& client_id, const Body& body) {
  const size_t start = w.size();
  w.write_int32(0);
  RequestHeader header;
  header.request_api_key = api_key;
  header.request_api_version = api_version;
  header.correlation_id = correlation_id;
  header.client_id.set(client_id);
  header.encode(w, header_version);
  body.encode(w, api_version);
  w.patch_int32(start, static_cast<int32_t>(w.size() - start - 4));
}

// Reads the header of a response; the caller has already removed the size prefix. The Reader is then at the body.
inline int32_t decode_response_header(Reader& r, int16_t header_version) {
  ResponseHeader header;
  header.decode(r, header_version);
  return header.correlation_id;
}

}  // namespace kc
