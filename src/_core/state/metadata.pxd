# Declares state/metadata.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int16_t, int32_t, int64_t, string, uint32_t, unordered_map, vector
from kconsumer._core.network.request cimport NodeAddress
from kconsumer._core.protocol.types cimport Int32Array, Uuid


cdef extern from "state/metadata.hpp" namespace "kc" nogil:
    cdef cppclass PartitionEntry:
        PartitionEntry()
        int32_t id
        int32_t leader_id
        int32_t leader_epoch
        int16_t error

    cdef cppclass Replicas:
        Replicas()
        const int32_t* nodes
        size_t count

    cdef cppclass PartitionList:
        void reserve(size_t count)
        void add(PartitionEntry entry, const Int32Array& replicas)
        void seal()
        PartitionEntry* find(int32_t id)
        size_t size()
        bint empty()
        void clear()

    cdef cppclass TopicEntry:
        TopicEntry()
        Uuid id
        int32_t error
        bint internal
        uint32_t update
        int64_t updated_ms
        int32_t former_ids
        PartitionList partitions

    cdef cppclass ClusterCache:
        ClusterCache()
        string cluster_id
        int32_t controller_id
        vector[NodeAddress] brokers
        unordered_map[string, TopicEntry] topics
        TopicEntry* topic(const string& name)
        PartitionEntry* partition(const string& name, int32_t id)
        Replicas replicas(const string& name, int32_t id)
        const string* name_of(const Uuid& id)
        TopicEntry* renew(const string& name, const Uuid& id)
        void retire(const Uuid& id, const Uuid& next)
        bint is_retired(const Uuid& id)
        void forget(const string& name)
        bint has_broker(int32_t id)
        bint put_broker(const NodeAddress& node)
