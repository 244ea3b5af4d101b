# Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
# Declares protocol/messages/consumer_protocol_assignment.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int16_t, int32_t, string, vector
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.protocol.wire cimport Reader, Writer


cdef extern from "protocol/messages/consumer_protocol_assignment.hpp" namespace "kc" nogil:
    cdef cppclass ConsumerProtocolAssignment_TopicPartition:
        ConsumerProtocolAssignment_TopicPartition()
        string topic
        vector[int32_t] partitions

    cdef cppclass ConsumerProtocolAssignment:
        ConsumerProtocolAssignment()
        vector[ConsumerProtocolAssignment_TopicPartition] assigned_partitions
        NullableString user_data
        void encode(Writer& w, int16_t version)
        void decode(Reader& r, int16_t version)
        bint can_encode(int16_t version, const char** field)

    const int16_t ConsumerProtocolAssignment_min_version "kc::ConsumerProtocolAssignment::min_version"
    const int16_t ConsumerProtocolAssignment_max_version "kc::ConsumerProtocolAssignment::max_version"
