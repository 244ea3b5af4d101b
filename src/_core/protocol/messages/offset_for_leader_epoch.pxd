# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/offset_for_leader_epoch.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int64_t, string, vector
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/offset_for_leader_epoch.hpp" namespace "kc" nogil:
    cdef cppclass OffsetForLeaderEpochRequest_OffsetForLeaderPartition:
        OffsetForLeaderEpochRequest_OffsetForLeaderPartition()
        int32_t partition
        int32_t current_leader_epoch
        int32_t leader_epoch

    cdef cppclass OffsetForLeaderEpochRequest_OffsetForLeaderTopic:
        OffsetForLeaderEpochRequest_OffsetForLeaderTopic()
        string topic
        vector[OffsetForLeaderEpochRequest_OffsetForLeaderPartition] partitions

    cdef cppclass OffsetForLeaderEpochRequest:
        OffsetForLeaderEpochRequest()
        int32_t replica_id
        vector[OffsetForLeaderEpochRequest_OffsetForLeaderTopic] topics
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t OffsetForLeaderEpochRequest_api_key "kc::OffsetForLeaderEpochRequest::api_key"
    const int16_t OffsetForLeaderEpochRequest_min_version "kc::OffsetForLeaderEpochRequest::min_version"
    const int16_t OffsetForLeaderEpochRequest_max_version "kc::OffsetForLeaderEpochRequest::max_version"

    cdef cppclass OffsetForLeaderEpochResponse_EpochEndOffset:
        OffsetForLeaderEpochResponse_EpochEndOffset()
        int16_t error_code
        int32_t partition
        int32_t leader_epoch
        int64_t end_offset

    cdef cppclass OffsetForLeaderEpochResponse_OffsetForLeaderTopicResult:
        OffsetForLeaderEpochResponse_OffsetForLeaderTopicResult()
        string topic
        vector[OffsetForLeaderEpochResponse_EpochEndOffset] partitions

    cdef cppclass OffsetForLeaderEpochResponse:
        OffsetForLeaderEpochResponse()
        int32_t throttle_time_ms
        vector[OffsetForLeaderEpochResponse_OffsetForLeaderTopicResult] topics
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t OffsetForLeaderEpochResponse_api_key "kc::OffsetForLeaderEpochResponse::api_key"
    const int16_t OffsetForLeaderEpochResponse_min_version "kc::OffsetForLeaderEpochResponse::min_version"
    const int16_t OffsetForLeaderEpochResponse_max_version "kc::OffsetForLeaderEpochResponse::max_version"
