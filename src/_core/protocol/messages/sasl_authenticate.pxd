# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/sasl_authenticate.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int64_t, string
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/sasl_authenticate.hpp" namespace "kc" nogil:
    cdef cppclass SaslAuthenticateRequest:
        SaslAuthenticateRequest()
        string auth_bytes
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t SaslAuthenticateRequest_api_key "kc::SaslAuthenticateRequest::api_key"
    const int16_t SaslAuthenticateRequest_min_version "kc::SaslAuthenticateRequest::min_version"
    const int16_t SaslAuthenticateRequest_max_version "kc::SaslAuthenticateRequest::max_version"

    cdef cppclass SaslAuthenticateResponse:
        SaslAuthenticateResponse()
        int16_t error_code
        NullableString error_message
        string auth_bytes
        int64_t session_lifetime_ms
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t SaslAuthenticateResponse_api_key "kc::SaslAuthenticateResponse::api_key"
    const int16_t SaslAuthenticateResponse_min_version "kc::SaslAuthenticateResponse::min_version"
    const int16_t SaslAuthenticateResponse_max_version "kc::SaslAuthenticateResponse::max_version"
