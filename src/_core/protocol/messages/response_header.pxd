# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/response_header.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/response_header.hpp" namespace "kc" nogil:
    cdef cppclass ResponseHeader:
        ResponseHeader()
        int32_t correlation_id
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ResponseHeader_min_version "kc::ResponseHeader::min_version"
    const int16_t ResponseHeader_max_version "kc::ResponseHeader::max_version"
