# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/metadata.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, string, vector
from kconsumer._core.protocol.types cimport Int32Array, Nullable, NullableString, Uuid
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/metadata.hpp" namespace "kc" nogil:
    cdef cppclass MetadataRequest_MetadataRequestTopic:
        MetadataRequest_MetadataRequestTopic()
        Uuid topic_id
        NullableString name

    cdef cppclass MetadataRequest:
        MetadataRequest()
        Nullable[vector[MetadataRequest_MetadataRequestTopic]] topics
        bint allow_auto_topic_creation
        bint include_cluster_authorized_operations
        bint include_topic_authorized_operations
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t MetadataRequest_api_key "kc::MetadataRequest::api_key"
    const int16_t MetadataRequest_min_version "kc::MetadataRequest::min_version"
    const int16_t MetadataRequest_max_version "kc::MetadataRequest::max_version"

    cdef cppclass MetadataResponse_MetadataResponseBroker:
        MetadataResponse_MetadataResponseBroker()
        int32_t node_id
        string host
        int32_t port
        NullableString rack

    cdef cppclass MetadataResponse_MetadataResponsePartition:
        MetadataResponse_MetadataResponsePartition()
        int16_t error_code
        int32_t partition_index
        int32_t leader_id
        int32_t leader_epoch
        Int32Array replica_nodes
        Int32Array isr_nodes
        Int32Array offline_replicas

    cdef cppclass MetadataResponse_MetadataResponseTopic:
        MetadataResponse_MetadataResponseTopic()
        int16_t error_code
        NullableString name
        Uuid topic_id
        bint is_internal
        vector[MetadataResponse_MetadataResponsePartition] partitions
        int32_t topic_authorized_operations

    cdef cppclass MetadataResponse:
        MetadataResponse()
        int32_t throttle_time_ms
        vector[MetadataResponse_MetadataResponseBroker] brokers
        NullableString cluster_id
        int32_t controller_id
        vector[MetadataResponse_MetadataResponseTopic] topics
        int32_t cluster_authorized_operations
        int16_t error_code
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t MetadataResponse_api_key "kc::MetadataResponse::api_key"
    const int16_t MetadataResponse_min_version "kc::MetadataResponse::min_version"
    const int16_t MetadataResponse_max_version "kc::MetadataResponse::max_version"
