# Declares managers/consumer_protocol.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, string, uint8_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.assignor_call cimport GroupMember, TopicPartitions
from kconsumer._core.managers.assignors cimport AssignorKind
from kconsumer._core.protocol.types cimport NullableString


cdef extern from "managers/consumer_protocol.hpp" namespace "kc" nogil:
    bint encode_subscription(const GroupMember& member, string& out)
    Status decode_subscription(const uint8_t* data, size_t length, GroupMember& member)
    bint encode_assignment(const vector[TopicPartitions]& partitions, const NullableString& user_data, string& out)
    Status decode_assignment(
        const uint8_t* data, size_t length, vector[TopicPartitions]& partitions, NullableString& user_data)
    NullableString assignor_user_data(AssignorKind kind, const vector[TopicPartitions]* last, int32_t generation)
    void read_sticky_user_data(const string& data, vector[TopicPartitions]& previous, int32_t& generation)
    int32_t read_cooperative_user_data(const string& data)
