# Declares events/assignor_call.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int32_t, string, uint64_t, vector
from kconsumer._core.protocol.types cimport NullableString


cdef extern from "events/assignor_call.hpp" namespace "kc" nogil:
    cdef cppclass TopicPartitions:
        TopicPartitions()
        string topic
        vector[int32_t] partitions

    cdef cppclass GroupMember:
        GroupMember()
        string member_id
        NullableString group_instance_id
        vector[string] topics
        vector[TopicPartitions] owned
        int32_t generation
        string rack
        NullableString user_data

    cdef cppclass TopicInput:
        TopicInput()
        string topic
        int32_t partition_count
        vector[vector[string]] replica_racks

    cdef cppclass MemberAssignment:
        MemberAssignment()
        string member_id
        vector[TopicPartitions] partitions
        NullableString user_data

    cdef cppclass AssignorData:
        AssignorData()
        string assignor
        NullableString user_data

    cdef cppclass AssignorCall:
        AssignorCall()
        uint64_t id
        string assignor
        vector[GroupMember] members
        vector[TopicInput] topics
        vector[string] subscribed
