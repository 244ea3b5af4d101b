# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/sasl_handshake.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, string, vector
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/sasl_handshake.hpp" namespace "kc" nogil:
    cdef cppclass SaslHandshakeRequest:
        SaslHandshakeRequest()
        string mechanism
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t SaslHandshakeRequest_api_key "kc::SaslHandshakeRequest::api_key"
    const int16_t SaslHandshakeRequest_min_version "kc::SaslHandshakeRequest::min_version"
    const int16_t SaslHandshakeRequest_max_version "kc::SaslHandshakeRequest::max_version"

    cdef cppclass SaslHandshakeResponse:
        SaslHandshakeResponse()
        int16_t error_code
        vector[string] mechanisms
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t SaslHandshakeResponse_api_key "kc::SaslHandshakeResponse::api_key"
    const int16_t SaslHandshakeResponse_min_version "kc::SaslHandshakeResponse::min_version"
    const int16_t SaslHandshakeResponse_max_version "kc::SaslHandshakeResponse::max_version"
