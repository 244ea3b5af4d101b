# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/get_telemetry_subscriptions.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int8_t, string, vector
from kconsumer._core.protocol.types cimport Uuid
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/get_telemetry_subscriptions.hpp" namespace "kc" nogil:
    cdef cppclass GetTelemetrySubscriptionsRequest:
        GetTelemetrySubscriptionsRequest()
        Uuid client_instance_id
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t GetTelemetrySubscriptionsRequest_api_key "kc::GetTelemetrySubscriptionsRequest::api_key"
    const int16_t GetTelemetrySubscriptionsRequest_min_version "kc::GetTelemetrySubscriptionsRequest::min_version"
    const int16_t GetTelemetrySubscriptionsRequest_max_version "kc::GetTelemetrySubscriptionsRequest::max_version"

    cdef cppclass GetTelemetrySubscriptionsResponse:
        GetTelemetrySubscriptionsResponse()
        int32_t throttle_time_ms
        int16_t error_code
        Uuid client_instance_id
        int32_t subscription_id
        vector[int8_t] accepted_compression_types
        int32_t push_interval_ms
        int32_t telemetry_max_bytes
        bint delta_temporality
        vector[string] requested_metrics
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t GetTelemetrySubscriptionsResponse_api_key "kc::GetTelemetrySubscriptionsResponse::api_key"
    const int16_t GetTelemetrySubscriptionsResponse_min_version "kc::GetTelemetrySubscriptionsResponse::min_version"
    const int16_t GetTelemetrySubscriptionsResponse_max_version "kc::GetTelemetrySubscriptionsResponse::max_version"
