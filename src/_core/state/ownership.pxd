# Declares state/ownership.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport vector
from kconsumer._core.events.topic_partition cimport TopicPartition


cdef extern from "state/ownership.hpp" namespace "kc" nogil:
    cdef cppclass Ownership:
        Ownership()
        const vector[TopicPartition]& owned()
        const vector[TopicPartition]& revoking()
        const vector[TopicPartition]& assigning()
        const vector[TopicPartition]& target()
        vector[TopicPartition] ours()
        vector[TopicPartition] claimed()
        void aim_at(const vector[TopicPartition]& target)
        void drop_target()
        bint waits()
        bint begin()
        void give_up(const vector[TopicPartition]& partitions)
        void given_up()
        void committed()
        bint take()
        void untake()
        void taken(const vector[TopicPartition]& owned)
        void lose()
        void clear()
        void report(const vector[TopicPartition]& reported)
        void answered()
        void begin_session()
