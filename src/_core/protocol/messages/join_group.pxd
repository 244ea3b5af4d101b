# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/join_group.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, string, vector
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/join_group.hpp" namespace "kc" nogil:
    cdef cppclass JoinGroupRequest_JoinGroupRequestProtocol:
        JoinGroupRequest_JoinGroupRequestProtocol()
        string name
        string metadata

    cdef cppclass JoinGroupRequest:
        JoinGroupRequest()
        string group_id
        int32_t session_timeout_ms
        int32_t rebalance_timeout_ms
        string member_id
        NullableString group_instance_id
        string protocol_type
        vector[JoinGroupRequest_JoinGroupRequestProtocol] protocols
        NullableString reason
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t JoinGroupRequest_api_key "kc::JoinGroupRequest::api_key"
    const int16_t JoinGroupRequest_min_version "kc::JoinGroupRequest::min_version"
    const int16_t JoinGroupRequest_max_version "kc::JoinGroupRequest::max_version"

    cdef cppclass JoinGroupResponse_JoinGroupResponseMember:
        JoinGroupResponse_JoinGroupResponseMember()
        string member_id
        NullableString group_instance_id
        string metadata

    cdef cppclass JoinGroupResponse:
        JoinGroupResponse()
        int32_t throttle_time_ms
        int16_t error_code
        int32_t generation_id
        NullableString protocol_type
        NullableString protocol_name
        string leader
        bint skip_assignment
        string member_id
        vector[JoinGroupResponse_JoinGroupResponseMember] members
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t JoinGroupResponse_api_key "kc::JoinGroupResponse::api_key"
    const int16_t JoinGroupResponse_min_version "kc::JoinGroupResponse::min_version"
    const int16_t JoinGroupResponse_max_version "kc::JoinGroupResponse::max_version"
