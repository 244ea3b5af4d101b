# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/sync_group.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, string, vector
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/sync_group.hpp" namespace "kc" nogil:
    cdef cppclass SyncGroupRequest_SyncGroupRequestAssignment:
        SyncGroupRequest_SyncGroupRequestAssignment()
        string member_id
        string assignment

    cdef cppclass SyncGroupRequest:
        SyncGroupRequest()
        string group_id
        int32_t generation_id
        string member_id
        NullableString group_instance_id
        NullableString protocol_type
        NullableString protocol_name
        vector[SyncGroupRequest_SyncGroupRequestAssignment] assignments
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t SyncGroupRequest_api_key "kc::SyncGroupRequest::api_key"
    const int16_t SyncGroupRequest_min_version "kc::SyncGroupRequest::min_version"
    const int16_t SyncGroupRequest_max_version "kc::SyncGroupRequest::max_version"

    cdef cppclass SyncGroupResponse:
        SyncGroupResponse()
        int32_t throttle_time_ms
        int16_t error_code
        NullableString protocol_type
        NullableString protocol_name
        string assignment
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t SyncGroupResponse_api_key "kc::SyncGroupResponse::api_key"
    const int16_t SyncGroupResponse_min_version "kc::SyncGroupResponse::min_version"
    const int16_t SyncGroupResponse_max_version "kc::SyncGroupResponse::max_version"
