# Declares events/background_event.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, string, uint32_t, uint64_t, vector
from kconsumer._core.base.log cimport LogQueue
from kconsumer._core.base.status cimport Status
from kconsumer._core.base.wakeup_fd cimport WakeupFd
from kconsumer._core.events.assignor_call cimport AssignorCall
from kconsumer._core.events.rebalance_event cimport RebalanceEvent
from kconsumer._core.events.topic_partition cimport PartitionOffset


cdef extern from "events/background_event.hpp" namespace "kc" nogil:
    cdef enum BackgroundEventType:
        BACKGROUND_ERROR
        BACKGROUND_THROTTLE
        BACKGROUND_STATS
        BACKGROUND_COMMIT
        BACKGROUND_ASSIGNOR
        BACKGROUND_TOKEN

    cdef cppclass AssignorCallHold "std::shared_ptr<const kc::AssignorCall>":
        const AssignorCall* get()
        void reset(const AssignorCall*)

    cdef cppclass MergedCommits:
        int64_t deadline_ms()
        void narrow(vector[PartitionOffset]& entry)

    cdef cppclass CommitMemory:
        pass

    cdef cppclass MergedCommitsHold "std::shared_ptr<kc::MergedCommits>":
        MergedCommits* get()

    Status commit_status(const vector[PartitionOffset]& offsets)

    cdef cppclass BackgroundEvent:
        BackgroundEvent()
        BackgroundEventType type
        Status status
        bint fatal
        string text
        int32_t broker_id
        int64_t number
        vector[PartitionOffset] offsets
        bint whole
        MergedCommitsHold merged
        size_t commits()
        vector[PartitionOffset] take_commit(Status& result)
        AssignorCallHold assignor_call

    cdef enum Attention:
        ATTENTION_CONTROL
        ATTENTION_EVENTS
        ATTENTION_WAKEUP
        ATTENTION_CLOSED
        ATTENTION_FATAL
        ATTENTION_REBALANCE
        ATTENTION_COMMIT

    cdef cppclass AttentionWord:
        uint32_t get()
        bint quiet()
        bint no_bits_except(uint32_t)
        void set(uint32_t)
        uint32_t clear(uint32_t)

    cdef cppclass BackgroundEventQueue:
        BackgroundEventQueue()
        AttentionWord attention
        LogQueue log
        WakeupFd wakeup
        atomic[bint] waiting
        WakeupFd events_ready
        CommitMemory commit_memory
        void add(BackgroundEvent)
        bint take(BackgroundEvent&)
        void put_back(BackgroundEvent)
        size_t size()
        void add_rebalance(RebalanceEvent)
        bint take_rebalance(RebalanceEvent&)
        bint withdraw_rebalance(uint64_t id)
        void announce()
        void wake()
        void force_wake()
        atomic[int64_t] wakes
        int64_t locks_taken()
