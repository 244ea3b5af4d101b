# Declares state/group.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, string, uint64_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.topic_partition cimport TopicPartition
from kconsumer._core.state.session cimport Session
from kconsumer._core.state.timing cimport Timing


cdef extern from "state/group.hpp" namespace "kc" nogil:
    cdef cppclass GroupConfig:
        GroupConfig()
        string group_id
        string group_instance_id
        bint consumer_protocol
        bint cooperative
        string remote_assignor
        vector[string] strategies
        bint assignors_have_user_data
        string client_id
        string rack
        int32_t session_timeout_ms
        int32_t heartbeat_interval_ms
        int32_t max_poll_interval_ms
        int32_t application_wait_ms
        bint auto_commit
        int32_t auto_commit_interval_ms
        bint auto_offset_store
        bint exclude_internal_topics

    cdef cppclass Membership:
        Membership()
        bint subscribed
        bint joined
        bint leaving
        string member_id
        int32_t epoch
        bint joining
        Status fatal
        const vector[TopicPartition]* owned
        bint owns(const string& topic, int32_t partition)

    cdef cppclass GroupShared:
        GroupShared()
        atomic[int32_t] state
        Session session
        atomic[uint64_t] lost_rebalance_id
        Timing rebalances
        atomic[int64_t] rebalanced_ms
        Timing heartbeats
        Timing commits
        atomic[uint64_t] assignor_call
        void publish(const string& member_id, int32_t epoch)
        void read(string& member_id, int32_t& epoch)

    cdef cppclass Liveness:
        Liveness()
        atomic[uint64_t] polls
        atomic[bint] in_poll
        atomic[bint] on_loop
        void count()
