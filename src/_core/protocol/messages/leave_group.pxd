# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/leave_group.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, string, vector
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/leave_group.hpp" namespace "kc" nogil:
    cdef cppclass LeaveGroupRequest_MemberIdentity:
        LeaveGroupRequest_MemberIdentity()
        string member_id
        NullableString group_instance_id
        NullableString reason

    cdef cppclass LeaveGroupRequest:
        LeaveGroupRequest()
        string group_id
        string member_id
        vector[LeaveGroupRequest_MemberIdentity] members
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t LeaveGroupRequest_api_key "kc::LeaveGroupRequest::api_key"
    const int16_t LeaveGroupRequest_min_version "kc::LeaveGroupRequest::min_version"
    const int16_t LeaveGroupRequest_max_version "kc::LeaveGroupRequest::max_version"

    cdef cppclass LeaveGroupResponse_MemberResponse:
        LeaveGroupResponse_MemberResponse()
        string member_id
        NullableString group_instance_id
        int16_t error_code

    cdef cppclass LeaveGroupResponse:
        LeaveGroupResponse()
        int32_t throttle_time_ms
        int16_t error_code
        vector[LeaveGroupResponse_MemberResponse] members
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t LeaveGroupResponse_api_key "kc::LeaveGroupResponse::api_key"
    const int16_t LeaveGroupResponse_min_version "kc::LeaveGroupResponse::min_version"
    const int16_t LeaveGroupResponse_max_version "kc::LeaveGroupResponse::max_version"
