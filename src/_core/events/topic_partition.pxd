# Declares events/topic_partition.hpp for Cython. thread: any (values).
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, vector


cdef extern from "events/topic_partition.hpp" namespace "kc" nogil:
    cdef cppclass TopicPartition:
        TopicPartition()
        TopicPartition(string topic, int32_t partition)
        string topic
        int32_t partition

    cdef cppclass PartitionOffset:
        PartitionOffset()
        string topic
        int32_t partition
        int64_t offset
        int32_t leader_epoch
        string metadata
        int32_t error

    void sort_partitions(vector[TopicPartition]&)
    void sort_offsets(vector[PartitionOffset]&)
    void sort_names(vector[string]&)
    bint contains_name(const vector[string]& sorted, const string& name)
    bint holds_partition(const vector[TopicPartition]& sorted, const string& topic, int32_t partition)
    vector[TopicPartition] partitions_with(const vector[TopicPartition]&, const vector[TopicPartition]&)
    vector[TopicPartition] partitions_without(const vector[TopicPartition]&, const vector[TopicPartition]&)
