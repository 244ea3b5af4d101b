# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/offset_commit.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int64_t, string, vector
from kconsumer._core.protocol.types cimport NullableString, Uuid
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/offset_commit.hpp" namespace "kc" nogil:
    cdef cppclass OffsetCommitRequest_OffsetCommitRequestPartition:
        OffsetCommitRequest_OffsetCommitRequestPartition()
        int32_t partition_index
        int64_t committed_offset
        int32_t committed_leader_epoch
        NullableString committed_metadata

    cdef cppclass OffsetCommitRequest_OffsetCommitRequestTopic:
        OffsetCommitRequest_OffsetCommitRequestTopic()
        string name
        Uuid topic_id
        vector[OffsetCommitRequest_OffsetCommitRequestPartition] partitions

    cdef cppclass OffsetCommitRequest:
        OffsetCommitRequest()
        string group_id
        int32_t generation_id_or_member_epoch
        string member_id
        NullableString group_instance_id
        int64_t retention_time_ms
        vector[OffsetCommitRequest_OffsetCommitRequestTopic] topics
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t OffsetCommitRequest_api_key "kc::OffsetCommitRequest::api_key"
    const int16_t OffsetCommitRequest_min_version "kc::OffsetCommitRequest::min_version"
    const int16_t OffsetCommitRequest_max_version "kc::OffsetCommitRequest::max_version"

    cdef cppclass OffsetCommitResponse_OffsetCommitResponsePartition:
        OffsetCommitResponse_OffsetCommitResponsePartition()
        int32_t partition_index
        int16_t error_code

    cdef cppclass OffsetCommitResponse_OffsetCommitResponseTopic:
        OffsetCommitResponse_OffsetCommitResponseTopic()
        string name
        Uuid topic_id
        vector[OffsetCommitResponse_OffsetCommitResponsePartition] partitions

    cdef cppclass OffsetCommitResponse:
        OffsetCommitResponse()
        int32_t throttle_time_ms
        vector[OffsetCommitResponse_OffsetCommitResponseTopic] topics
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t OffsetCommitResponse_api_key "kc::OffsetCommitResponse::api_key"
    const int16_t OffsetCommitResponse_min_version "kc::OffsetCommitResponse::min_version"
    const int16_t OffsetCommitResponse_max_version "kc::OffsetCommitResponse::max_version"
