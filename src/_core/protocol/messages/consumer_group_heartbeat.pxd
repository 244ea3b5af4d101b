# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/consumer_group_heartbeat.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, string, vector
from kconsumer._core.protocol.types cimport Nullable, NullableString, Uuid
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/consumer_group_heartbeat.hpp" namespace "kc" nogil:
    cdef cppclass ConsumerGroupHeartbeatRequest_TopicPartitions:
        ConsumerGroupHeartbeatRequest_TopicPartitions()
        Uuid topic_id
        vector[int32_t] partitions

    cdef cppclass ConsumerGroupHeartbeatRequest:
        ConsumerGroupHeartbeatRequest()
        string group_id
        string member_id
        int32_t member_epoch
        NullableString instance_id
        NullableString rack_id
        int32_t rebalance_timeout_ms
        Nullable[vector[string]] subscribed_topic_names
        NullableString subscribed_topic_regex
        NullableString server_assignor
        Nullable[vector[ConsumerGroupHeartbeatRequest_TopicPartitions]] topic_partitions
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ConsumerGroupHeartbeatRequest_api_key "kc::ConsumerGroupHeartbeatRequest::api_key"
    const int16_t ConsumerGroupHeartbeatRequest_min_version "kc::ConsumerGroupHeartbeatRequest::min_version"
    const int16_t ConsumerGroupHeartbeatRequest_max_version "kc::ConsumerGroupHeartbeatRequest::max_version"

    cdef cppclass ConsumerGroupHeartbeatResponse_TopicPartitions:
        ConsumerGroupHeartbeatResponse_TopicPartitions()
        Uuid topic_id
        vector[int32_t] partitions

    cdef cppclass ConsumerGroupHeartbeatResponse_Assignment:
        ConsumerGroupHeartbeatResponse_Assignment()
        vector[ConsumerGroupHeartbeatResponse_TopicPartitions] topic_partitions

    cdef cppclass ConsumerGroupHeartbeatResponse:
        ConsumerGroupHeartbeatResponse()
        int32_t throttle_time_ms
        int16_t error_code
        NullableString error_message
        NullableString member_id
        int32_t member_epoch
        int32_t heartbeat_interval_ms
        Nullable[ConsumerGroupHeartbeatResponse_Assignment] assignment
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ConsumerGroupHeartbeatResponse_api_key "kc::ConsumerGroupHeartbeatResponse::api_key"
    const int16_t ConsumerGroupHeartbeatResponse_min_version "kc::ConsumerGroupHeartbeatResponse::min_version"
    const int16_t ConsumerGroupHeartbeatResponse_max_version "kc::ConsumerGroupHeartbeatResponse::max_version"
