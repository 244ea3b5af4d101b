# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/api_keys.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport int16_t


cdef extern from "protocol/api_keys.hpp" namespace "kc" nogil:
    cdef enum ApiKey:
        API_FETCH
        API_LIST_OFFSETS
        API_METADATA
        API_OFFSET_COMMIT
        API_OFFSET_FETCH
        API_FIND_COORDINATOR
        API_JOIN_GROUP
        API_HEARTBEAT
        API_LEAVE_GROUP
        API_SYNC_GROUP
        API_DESCRIBE_GROUPS
        API_SASL_HANDSHAKE
        API_API_VERSIONS
        API_OFFSET_FOR_LEADER_EPOCH
        API_DESCRIBE_CONFIGS
        API_SASL_AUTHENTICATE
        API_CONSUMER_GROUP_HEARTBEAT
        API_CONSUMER_GROUP_DESCRIBE
        API_GET_TELEMETRY_SUBSCRIPTIONS
        API_PUSH_TELEMETRY

    const char* api_name(int16_t api_key)
