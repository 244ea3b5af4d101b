# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/fetch.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int64_t, int8_t, string, vector
from kconsumer._core.protocol.types cimport BytesView, Nullable, NullableString, Uuid
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/fetch.hpp" namespace "kc" nogil:
    cdef cppclass FetchRequest_ReplicaState:
        FetchRequest_ReplicaState()
        int32_t replica_id
        int64_t replica_epoch

    cdef cppclass FetchRequest_FetchPartition:
        FetchRequest_FetchPartition()
        int32_t partition
        int32_t current_leader_epoch
        int64_t fetch_offset
        int32_t last_fetched_epoch
        int64_t log_start_offset
        int32_t partition_max_bytes
        Uuid replica_directory_id
        int64_t high_watermark

    cdef cppclass FetchRequest_FetchTopic:
        FetchRequest_FetchTopic()
        string topic
        Uuid topic_id
        vector[FetchRequest_FetchPartition] partitions

    cdef cppclass FetchRequest_ForgottenTopic:
        FetchRequest_ForgottenTopic()
        string topic
        Uuid topic_id
        vector[int32_t] partitions

    cdef cppclass FetchRequest:
        FetchRequest()
        NullableString cluster_id
        int32_t replica_id
        FetchRequest_ReplicaState replica_state
        int32_t max_wait_ms
        int32_t min_bytes
        int32_t max_bytes
        int8_t isolation_level
        int32_t session_id
        int32_t session_epoch
        vector[FetchRequest_FetchTopic] topics
        vector[FetchRequest_ForgottenTopic] forgotten_topics_data
        string rack_id
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t FetchRequest_api_key "kc::FetchRequest::api_key"
    const int16_t FetchRequest_min_version "kc::FetchRequest::min_version"
    const int16_t FetchRequest_max_version "kc::FetchRequest::max_version"

    cdef cppclass FetchResponse_EpochEndOffset:
        FetchResponse_EpochEndOffset()
        int32_t epoch
        int64_t end_offset

    cdef cppclass FetchResponse_LeaderIdAndEpoch:
        FetchResponse_LeaderIdAndEpoch()
        int32_t leader_id
        int32_t leader_epoch

    cdef cppclass FetchResponse_SnapshotId:
        FetchResponse_SnapshotId()
        int64_t end_offset
        int32_t epoch

    cdef cppclass FetchResponse_AbortedTransaction:
        FetchResponse_AbortedTransaction()
        int64_t producer_id
        int64_t first_offset

    cdef cppclass FetchResponse_PartitionData:
        FetchResponse_PartitionData()
        int32_t partition_index
        int16_t error_code
        int64_t high_watermark
        int64_t last_stable_offset
        int64_t log_start_offset
        FetchResponse_EpochEndOffset diverging_epoch
        FetchResponse_LeaderIdAndEpoch current_leader
        FetchResponse_SnapshotId snapshot_id
        Nullable[vector[FetchResponse_AbortedTransaction]] aborted_transactions
        int32_t preferred_read_replica
        BytesView records

    cdef cppclass FetchResponse_FetchableTopicResponse:
        FetchResponse_FetchableTopicResponse()
        string topic
        Uuid topic_id
        vector[FetchResponse_PartitionData] partitions

    cdef cppclass FetchResponse_NodeEndpoint:
        FetchResponse_NodeEndpoint()
        int32_t node_id
        string host
        int32_t port
        NullableString rack

    cdef cppclass FetchResponse:
        FetchResponse()
        int32_t throttle_time_ms
        int16_t error_code
        int32_t session_id
        vector[FetchResponse_FetchableTopicResponse] responses
        vector[FetchResponse_NodeEndpoint] node_endpoints
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t FetchResponse_api_key "kc::FetchResponse::api_key"
    const int16_t FetchResponse_min_version "kc::FetchResponse::min_version"
    const int16_t FetchResponse_max_version "kc::FetchResponse::max_version"
