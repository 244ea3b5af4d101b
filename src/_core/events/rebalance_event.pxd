# Declares events/rebalance_event.hpp for Cython. thread: made on N, served on A.
from kconsumer._core.base.cpp cimport int32_t, string, uint64_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.topic_partition cimport TopicPartition
from kconsumer._core.protocol.types cimport NullableString


cdef extern from "events/rebalance_event.hpp" namespace "kc" nogil:
    cdef enum RebalanceKind:
        REBALANCE_REVOKE
        REBALANCE_ASSIGN
        REBALANCE_LOST
        REBALANCE_ERROR
        REBALANCE_GIVEN_UP

    cdef cppclass RebalanceEvent:
        RebalanceEvent()
        RebalanceKind kind
        uint64_t id
        uint64_t epoch
        bint eager
        vector[TopicPartition] partitions
        Status status
        string assignor
        int32_t generation
        vector[TopicPartition] target
        NullableString user_data
