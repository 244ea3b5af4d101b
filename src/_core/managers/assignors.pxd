# Declares managers/assignment.hpp and managers/assignors.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport string, unordered_map, vector
from kconsumer._core.events.assignor_call cimport GroupMember, TopicInput, TopicPartitions


cdef extern from "managers/assignment.hpp" namespace "kc" nogil:
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
