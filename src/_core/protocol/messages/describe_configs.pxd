# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/describe_configs.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int8_t, string, vector
from kconsumer._core.protocol.types cimport Nullable, NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/describe_configs.hpp" namespace "kc" nogil:
    cdef cppclass DescribeConfigsRequest_DescribeConfigsResource:
        DescribeConfigsRequest_DescribeConfigsResource()
        int8_t resource_type
        string resource_name
        Nullable[vector[string]] configuration_keys

    cdef cppclass DescribeConfigsRequest:
        DescribeConfigsRequest()
        vector[DescribeConfigsRequest_DescribeConfigsResource] resources
        bint include_synonyms
        bint include_documentation
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t DescribeConfigsRequest_api_key "kc::DescribeConfigsRequest::api_key"
    const int16_t DescribeConfigsRequest_min_version "kc::DescribeConfigsRequest::min_version"
    const int16_t DescribeConfigsRequest_max_version "kc::DescribeConfigsRequest::max_version"

    cdef cppclass DescribeConfigsResponse_DescribeConfigsSynonym:
        DescribeConfigsResponse_DescribeConfigsSynonym()
        string name
        NullableString value
        int8_t source

    cdef cppclass DescribeConfigsResponse_DescribeConfigsResourceResult:
        DescribeConfigsResponse_DescribeConfigsResourceResult()
        string name
        NullableString value
        bint read_only
        int8_t config_source
        bint is_sensitive
        vector[DescribeConfigsResponse_DescribeConfigsSynonym] synonyms
        int8_t config_type
        NullableString documentation

    cdef cppclass DescribeConfigsResponse_DescribeConfigsResult:
        DescribeConfigsResponse_DescribeConfigsResult()
        int16_t error_code
        NullableString error_message
        int8_t resource_type
        string resource_name
        vector[DescribeConfigsResponse_DescribeConfigsResourceResult] configs

    cdef cppclass DescribeConfigsResponse:
        DescribeConfigsResponse()
        int32_t throttle_time_ms
        vector[DescribeConfigsResponse_DescribeConfigsResult] results
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t DescribeConfigsResponse_api_key "kc::DescribeConfigsResponse::api_key"
    const int16_t DescribeConfigsResponse_min_version "kc::DescribeConfigsResponse::min_version"
    const int16_t DescribeConfigsResponse_max_version "kc::DescribeConfigsResponse::max_version"
