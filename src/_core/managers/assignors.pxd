# Declares managers/assignment.hpp and managers/assignors.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, string, unordered_map, vector
from kconsumer._core.protocol.types cimport NullableString


cdef extern from "managers/assignment.hpp" namespace "kc" nogil:
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

    cdef enum AssignorKind:
        ASSIGNOR_RANGE
        ASSIGNOR_ROUNDROBIN
        ASSIGNOR_STICKY
        ASSIGNOR_COOPERATIVE_STICKY

    ctypedef unordered_map[string, vector[TopicPartitions]] GroupAssignment


cdef extern from "managers/assignors.hpp" namespace "kc" nogil:
    const char* assignor_name(AssignorKind kind)
    bint find_assignor(const string& name, AssignorKind* out)
    bint supports_cooperative(AssignorKind kind)
    void assign(AssignorKind kind, const vector[GroupMember]& members, const vector[TopicInput]& topics,
                GroupAssignment& out)
