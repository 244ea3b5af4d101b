# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/heartbeat.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, string
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/heartbeat.hpp" namespace "kc" nogil:
    cdef cppclass HeartbeatRequest:
        HeartbeatRequest()
        string group_id
        int32_t generation_id
        string member_id
        NullableString group_instance_id
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t HeartbeatRequest_api_key "kc::HeartbeatRequest::api_key"
    const int16_t HeartbeatRequest_min_version "kc::HeartbeatRequest::min_version"
    const int16_t HeartbeatRequest_max_version "kc::HeartbeatRequest::max_version"

    cdef cppclass HeartbeatResponse:
        HeartbeatResponse()
        int32_t throttle_time_ms
        int16_t error_code
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t HeartbeatResponse_api_key "kc::HeartbeatResponse::api_key"
    const int16_t HeartbeatResponse_min_version "kc::HeartbeatResponse::min_version"
    const int16_t HeartbeatResponse_max_version "kc::HeartbeatResponse::max_version"
