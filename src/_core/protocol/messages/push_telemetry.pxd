# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/push_telemetry.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, int8_t, string
from kconsumer._core.protocol.types cimport Uuid
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/push_telemetry.hpp" namespace "kc" nogil:
    cdef cppclass PushTelemetryRequest:
        PushTelemetryRequest()
        Uuid client_instance_id
        int32_t subscription_id
        bint terminating
        int8_t compression_type
        string metrics
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t PushTelemetryRequest_api_key "kc::PushTelemetryRequest::api_key"
    const int16_t PushTelemetryRequest_min_version "kc::PushTelemetryRequest::min_version"
    const int16_t PushTelemetryRequest_max_version "kc::PushTelemetryRequest::max_version"

    cdef cppclass PushTelemetryResponse:
        PushTelemetryResponse()
        int32_t throttle_time_ms
        int16_t error_code
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t PushTelemetryResponse_api_key "kc::PushTelemetryResponse::api_key"
    const int16_t PushTelemetryResponse_min_version "kc::PushTelemetryResponse::min_version"
    const int16_t PushTelemetryResponse_max_version "kc::PushTelemetryResponse::max_version"
