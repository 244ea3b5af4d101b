# Declares protocol/frame.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport int16_t, int32_t, string
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/frame.hpp" namespace "kc" nogil:
    void encode_frame[Body](Writer& w, int16_t api_key, int16_t api_version, int16_t header_version,
                            int32_t correlation_id, const string& client_id, const Body& body)
    int32_t decode_response_header(Reader& r, int16_t header_version)
