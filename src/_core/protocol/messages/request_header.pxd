# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/request_header.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/request_header.hpp" namespace "kc" nogil:
    cdef cppclass RequestHeader:
        RequestHeader()
        int16_t request_api_key
        int16_t request_api_version
        int32_t correlation_id
        NullableString client_id
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t RequestHeader_min_version "kc::RequestHeader::min_version"
    const int16_t RequestHeader_max_version "kc::RequestHeader::max_version"
