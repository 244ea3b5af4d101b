# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/offset_fetch.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int64_t, string, vector
from kconsumer._core.protocol.types cimport Nullable, NullableString, Uuid
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/offset_fetch.hpp" namespace "kc" nogil:
    cdef cppclass OffsetFetchRequest_OffsetFetchRequestTopic:
        OffsetFetchRequest_OffsetFetchRequestTopic()
        string name
        vector[int32_t] partition_indexes

    cdef cppclass OffsetFetchRequest_OffsetFetchRequestTopics:
        OffsetFetchRequest_OffsetFetchRequestTopics()
        string name
        Uuid topic_id
        vector[int32_t] partition_indexes

    cdef cppclass OffsetFetchRequest_OffsetFetchRequestGroup:
        OffsetFetchRequest_OffsetFetchRequestGroup()
        string group_id
        NullableString member_id
        int32_t member_epoch
        Nullable[vector[OffsetFetchRequest_OffsetFetchRequestTopics]] topics

    cdef cppclass OffsetFetchRequest:
        OffsetFetchRequest()
        string group_id
        Nullable[vector[OffsetFetchRequest_OffsetFetchRequestTopic]] topics
        vector[OffsetFetchRequest_OffsetFetchRequestGroup] groups
        bint require_stable
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t OffsetFetchRequest_api_key "kc::OffsetFetchRequest::api_key"
    const int16_t OffsetFetchRequest_min_version "kc::OffsetFetchRequest::min_version"
    const int16_t OffsetFetchRequest_max_version "kc::OffsetFetchRequest::max_version"

    cdef cppclass OffsetFetchResponse_OffsetFetchResponsePartition:
        OffsetFetchResponse_OffsetFetchResponsePartition()
        int32_t partition_index
        int64_t committed_offset
        int32_t committed_leader_epoch
        NullableString metadata
        int16_t error_code

    cdef cppclass OffsetFetchResponse_OffsetFetchResponseTopic:
        OffsetFetchResponse_OffsetFetchResponseTopic()
        string name
        vector[OffsetFetchResponse_OffsetFetchResponsePartition] partitions

    cdef cppclass OffsetFetchResponse_OffsetFetchResponsePartitions:
        OffsetFetchResponse_OffsetFetchResponsePartitions()
        int32_t partition_index
        int64_t committed_offset
        int32_t committed_leader_epoch
        NullableString metadata
        int16_t error_code

    cdef cppclass OffsetFetchResponse_OffsetFetchResponseTopics:
        OffsetFetchResponse_OffsetFetchResponseTopics()
        string name
        Uuid topic_id
        vector[OffsetFetchResponse_OffsetFetchResponsePartitions] partitions

    cdef cppclass OffsetFetchResponse_OffsetFetchResponseGroup:
        OffsetFetchResponse_OffsetFetchResponseGroup()
        string group_id
        vector[OffsetFetchResponse_OffsetFetchResponseTopics] topics
        int16_t error_code

    cdef cppclass OffsetFetchResponse:
        OffsetFetchResponse()
        int32_t throttle_time_ms
        vector[OffsetFetchResponse_OffsetFetchResponseTopic] topics
        int16_t error_code
        vector[OffsetFetchResponse_OffsetFetchResponseGroup] groups
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t OffsetFetchResponse_api_key "kc::OffsetFetchResponse::api_key"
    const int16_t OffsetFetchResponse_min_version "kc::OffsetFetchResponse::min_version"
    const int16_t OffsetFetchResponse_max_version "kc::OffsetFetchResponse::max_version"
