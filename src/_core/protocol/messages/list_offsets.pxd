# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/list_offsets.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int64_t, int8_t, string, vector
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/list_offsets.hpp" namespace "kc" nogil:
    cdef cppclass ListOffsetsRequest_ListOffsetsPartition:
        ListOffsetsRequest_ListOffsetsPartition()
        int32_t partition_index
        int32_t current_leader_epoch
        int64_t timestamp

    cdef cppclass ListOffsetsRequest_ListOffsetsTopic:
        ListOffsetsRequest_ListOffsetsTopic()
        string name
        vector[ListOffsetsRequest_ListOffsetsPartition] partitions

    cdef cppclass ListOffsetsRequest:
        ListOffsetsRequest()
        int32_t replica_id
        int8_t isolation_level
        vector[ListOffsetsRequest_ListOffsetsTopic] topics
        int32_t timeout_ms
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ListOffsetsRequest_api_key "kc::ListOffsetsRequest::api_key"
    const int16_t ListOffsetsRequest_min_version "kc::ListOffsetsRequest::min_version"
    const int16_t ListOffsetsRequest_max_version "kc::ListOffsetsRequest::max_version"

    cdef cppclass ListOffsetsResponse_ListOffsetsPartitionResponse:
        ListOffsetsResponse_ListOffsetsPartitionResponse()
        int32_t partition_index
        int16_t error_code
        int64_t timestamp
        int64_t offset
        int32_t leader_epoch

    cdef cppclass ListOffsetsResponse_ListOffsetsTopicResponse:
        ListOffsetsResponse_ListOffsetsTopicResponse()
        string name
        vector[ListOffsetsResponse_ListOffsetsPartitionResponse] partitions

    cdef cppclass ListOffsetsResponse:
        ListOffsetsResponse()
        int32_t throttle_time_ms
        vector[ListOffsetsResponse_ListOffsetsTopicResponse] topics
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ListOffsetsResponse_api_key "kc::ListOffsetsResponse::api_key"
    const int16_t ListOffsetsResponse_min_version "kc::ListOffsetsResponse::min_version"
    const int16_t ListOffsetsResponse_max_version "kc::ListOffsetsResponse::max_version"
