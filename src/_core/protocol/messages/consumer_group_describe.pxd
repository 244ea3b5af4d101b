# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/consumer_group_describe.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int8_t, string, vector
from kconsumer._core.protocol.types cimport NullableString, Uuid
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/consumer_group_describe.hpp" namespace "kc" nogil:
    cdef cppclass ConsumerGroupDescribeRequest:
        ConsumerGroupDescribeRequest()
        vector[string] group_ids
        bint include_authorized_operations
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ConsumerGroupDescribeRequest_api_key "kc::ConsumerGroupDescribeRequest::api_key"
    const int16_t ConsumerGroupDescribeRequest_min_version "kc::ConsumerGroupDescribeRequest::min_version"
    const int16_t ConsumerGroupDescribeRequest_max_version "kc::ConsumerGroupDescribeRequest::max_version"

    cdef cppclass ConsumerGroupDescribeResponse_TopicPartitions:
        ConsumerGroupDescribeResponse_TopicPartitions()
        Uuid topic_id
        string topic_name
        vector[int32_t] partitions

    cdef cppclass ConsumerGroupDescribeResponse_Assignment:
        ConsumerGroupDescribeResponse_Assignment()
        vector[ConsumerGroupDescribeResponse_TopicPartitions] topic_partitions

    cdef cppclass ConsumerGroupDescribeResponse_Member:
        ConsumerGroupDescribeResponse_Member()
        string member_id
        NullableString instance_id
        NullableString rack_id
        int32_t member_epoch
        string client_id
        string client_host
        vector[string] subscribed_topic_names
        NullableString subscribed_topic_regex
        ConsumerGroupDescribeResponse_Assignment assignment
        ConsumerGroupDescribeResponse_Assignment target_assignment
        int8_t member_type

    cdef cppclass ConsumerGroupDescribeResponse_DescribedGroup:
        ConsumerGroupDescribeResponse_DescribedGroup()
        int16_t error_code
        NullableString error_message
        string group_id
        string group_state
        int32_t group_epoch
        int32_t assignment_epoch
        string assignor_name
        vector[ConsumerGroupDescribeResponse_Member] members
        int32_t authorized_operations

    cdef cppclass ConsumerGroupDescribeResponse:
        ConsumerGroupDescribeResponse()
        int32_t throttle_time_ms
        vector[ConsumerGroupDescribeResponse_DescribedGroup] groups
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ConsumerGroupDescribeResponse_api_key "kc::ConsumerGroupDescribeResponse::api_key"
    const int16_t ConsumerGroupDescribeResponse_min_version "kc::ConsumerGroupDescribeResponse::min_version"
    const int16_t ConsumerGroupDescribeResponse_max_version "kc::ConsumerGroupDescribeResponse::max_version"
