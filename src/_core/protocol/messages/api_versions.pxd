# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/api_versions.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int64_t, string, vector
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/api_versions.hpp" namespace "kc" nogil:
    cdef cppclass ApiVersionsRequest:
        ApiVersionsRequest()
        string client_software_name
        string client_software_version
        NullableString cluster_id
        int32_t node_id
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ApiVersionsRequest_api_key "kc::ApiVersionsRequest::api_key"
    const int16_t ApiVersionsRequest_min_version "kc::ApiVersionsRequest::min_version"
    const int16_t ApiVersionsRequest_max_version "kc::ApiVersionsRequest::max_version"

    cdef cppclass ApiVersionsResponse_ApiVersion:
        ApiVersionsResponse_ApiVersion()
        int16_t api_key
        int16_t min_version
        int16_t max_version

    cdef cppclass ApiVersionsResponse_SupportedFeatureKey:
        ApiVersionsResponse_SupportedFeatureKey()
        string name
        int16_t min_version
        int16_t max_version

    cdef cppclass ApiVersionsResponse_FinalizedFeatureKey:
        ApiVersionsResponse_FinalizedFeatureKey()
        string name
        int16_t max_version_level
        int16_t min_version_level

    cdef cppclass ApiVersionsResponse:
        ApiVersionsResponse()
        int16_t error_code
        vector[ApiVersionsResponse_ApiVersion] api_keys
        int32_t throttle_time_ms
        vector[ApiVersionsResponse_SupportedFeatureKey] supported_features
        int64_t finalized_features_epoch
        vector[ApiVersionsResponse_FinalizedFeatureKey] finalized_features
        bint zk_migration_ready
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ApiVersionsResponse_api_key "kc::ApiVersionsResponse::api_key"
    const int16_t ApiVersionsResponse_min_version "kc::ApiVersionsResponse::min_version"
    const int16_t ApiVersionsResponse_max_version "kc::ApiVersionsResponse::max_version"
