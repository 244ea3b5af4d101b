# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/describe_groups.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, string, vector
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/describe_groups.hpp" namespace "kc" nogil:
    cdef cppclass DescribeGroupsRequest:
        DescribeGroupsRequest()
        vector[string] groups
        bint include_authorized_operations
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t DescribeGroupsRequest_api_key "kc::DescribeGroupsRequest::api_key"
    const int16_t DescribeGroupsRequest_min_version "kc::DescribeGroupsRequest::min_version"
    const int16_t DescribeGroupsRequest_max_version "kc::DescribeGroupsRequest::max_version"

    cdef cppclass DescribeGroupsResponse_DescribedGroupMember:
        DescribeGroupsResponse_DescribedGroupMember()
        string member_id
        NullableString group_instance_id
        string client_id
        string client_host
        string member_metadata
        string member_assignment

    cdef cppclass DescribeGroupsResponse_DescribedGroup:
        DescribeGroupsResponse_DescribedGroup()
        int16_t error_code
        NullableString error_message
        string group_id
        string group_state
        string protocol_type
        string protocol_data
        vector[DescribeGroupsResponse_DescribedGroupMember] members
        int32_t authorized_operations

    cdef cppclass DescribeGroupsResponse:
        DescribeGroupsResponse()
        int32_t throttle_time_ms
        vector[DescribeGroupsResponse_DescribedGroup] groups
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t DescribeGroupsResponse_api_key "kc::DescribeGroupsResponse::api_key"
    const int16_t DescribeGroupsResponse_min_version "kc::DescribeGroupsResponse::min_version"
    const int16_t DescribeGroupsResponse_max_version "kc::DescribeGroupsResponse::max_version"
