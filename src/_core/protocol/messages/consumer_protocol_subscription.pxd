# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/consumer_protocol_subscription.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, string, vector
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/consumer_protocol_subscription.hpp" namespace "kc" nogil:
    cdef cppclass ConsumerProtocolSubscription_TopicPartition:
        ConsumerProtocolSubscription_TopicPartition()
        string topic
        vector[int32_t] partitions

    cdef cppclass ConsumerProtocolSubscription:
        ConsumerProtocolSubscription()
        vector[string] topics
        NullableString user_data
        vector[ConsumerProtocolSubscription_TopicPartition] owned_partitions
        int32_t generation_id
        NullableString rack_id
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ConsumerProtocolSubscription_min_version "kc::ConsumerProtocolSubscription::min_version"
    const int16_t ConsumerProtocolSubscription_max_version "kc::ConsumerProtocolSubscription::max_version"
