# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/find_coordinator.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int8_t, string, vector
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/find_coordinator.hpp" namespace "kc" nogil:
    cdef cppclass FindCoordinatorRequest:
        FindCoordinatorRequest()
        string key
        int8_t key_type
        vector[string] coordinator_keys
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t FindCoordinatorRequest_api_key "kc::FindCoordinatorRequest::api_key"
    const int16_t FindCoordinatorRequest_min_version "kc::FindCoordinatorRequest::min_version"
    const int16_t FindCoordinatorRequest_max_version "kc::FindCoordinatorRequest::max_version"

    cdef cppclass FindCoordinatorResponse_Coordinator:
        FindCoordinatorResponse_Coordinator()
        string key
        int32_t node_id
        string host
        int32_t port
        int16_t error_code
        NullableString error_message

    cdef cppclass FindCoordinatorResponse:
        FindCoordinatorResponse()
        int32_t throttle_time_ms
        int16_t error_code
        NullableString error_message
        int32_t node_id
        string host
        int32_t port
        vector[FindCoordinatorResponse_Coordinator] coordinators
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t FindCoordinatorResponse_api_key "kc::FindCoordinatorResponse::api_key"
    const int16_t FindCoordinatorResponse_min_version "kc::FindCoordinatorResponse::min_version"
    const int16_t FindCoordinatorResponse_max_version "kc::FindCoordinatorResponse::max_version"
