# Declares network/api_exchange.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int16_t, int32_t, string, unordered_map
from kconsumer._core.network.connection cimport ApiRange
from kconsumer._core.network.request cimport NetworkConfig, RequestBody
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "network/api_exchange.hpp" namespace "kc" nogil:
    const int16_t API_VERSIONS_KEY
    const int16_t API_VERSIONS_NEWEST
    const int16_t UNSUPPORTED_VERSION
    const char* api_name(int api_key)
    bint encode_frame(Writer& w, const RequestBody& body, int16_t version, int32_t correlation_id,
                      const string& client_id)
    void encode_api_versions(Writer& w, int16_t version, int32_t correlation_id, const NetworkConfig& config)
    int32_t decode_header(Reader& r, int16_t header_version)
    int16_t decode_api_versions(Reader& r, int16_t version, unordered_map[int16_t, ApiRange]& out)
