# Declares state/metadata.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, unordered_map, vector
from kconsumer._core.network.request cimport NodeAddress
from kconsumer._core.protocol.types cimport Uuid


cdef extern from "state/metadata.hpp" namespace "kc" nogil:
    cdef cppclass PartitionEntry:
        PartitionEntry()
        int32_t id
        int32_t error
        int32_t leader_id
        int32_t leader_epoch
        vector[int32_t] replicas

    cdef cppclass TopicEntry:
        TopicEntry()
        string name
        Uuid id
        int32_t error
        bint internal
        int64_t updated_ms
        unordered_map[int32_t, PartitionEntry] partitions

    cdef cppclass ClusterCache:
        ClusterCache()
        string cluster_id
        int32_t controller_id
        vector[NodeAddress] brokers
        unordered_map[string, TopicEntry] topics
        TopicEntry* topic(const string& name)
        PartitionEntry* partition(const string& name, int32_t id)
        const string* name_of(const Uuid& id)
        void put(TopicEntry entry)
        void forget(const string& name)
        bint has_broker(int32_t id)
        void put_broker(const NodeAddress& node)
