# Declares managers/classic_group_names.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport int32_t, vector
from kconsumer._core.events.assignor_call cimport TopicPartitions
from kconsumer._core.events.topic_partition cimport TopicPartition


cdef extern from "managers/classic_group_names.hpp" namespace "kc" nogil:
    const char* ASSIGNOR_RAISED "kc::kAssignorRaised"
    const char* classic_error(int32_t code)
    void group_by_topic(const vector[TopicPartition]& sorted, vector[TopicPartitions]& out)
    void flatten(const vector[TopicPartitions]& sorted, vector[TopicPartition]& out)
