# Declares managers/commit_context.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, uint8_t, uint64_t, unordered_map, vector
from kconsumer._core.events.application_event cimport CommitEvent, FetchCommittedEvent
from kconsumer._core.events.background_event cimport MergedCommitsHold
from kconsumer._core.events.topic_partition cimport PartitionOffset
from kconsumer._core.protocol.types cimport Uuid
from kconsumer._core.state.partition_state cimport PartitionState
from kconsumer._core.state.request_state cimport RequestState


cdef extern from "managers/commit_context.hpp" namespace "kc" nogil:
    const int BY_NAME_VERSION
    const int64_t NAMES_MS
    bint is_final(int32_t code)
    bint is_lost_request(int32_t code)

    cdef enum CommitStep:
        COMMIT_OPEN
        COMMIT_SENT
        COMMIT_DONE

    cdef cppclass QueuedCommit:
        QueuedCommit()
        CommitEvent* event
        vector[CommitStep] steps
        size_t left
        int64_t deadline_ms
        vector[int64_t] deadlines
        RequestState request
        bint failed
        bint untried
        bint on_wire
        bint unknown_topic
        int32_t unknown_topics
        uint64_t coordinator_failures
        int32_t epoch
        bint as_member
        bint departing
        bint held
        vector[uint8_t] ours
        bint lost
        MergedCommitsHold merged
        unordered_map[size_t, PartitionOffset] in_doubt

    cdef cppclass CommitPlace:
        CommitPlace()
        uint64_t sequence
        size_t index

    cdef cppclass SentOffset:
        SentOffset()
        string topic
        int32_t partition
        int64_t offset
        int32_t leader_epoch
        string metadata
        bint answered
        vector[CommitPlace] places

    cdef cppclass SentCommit:
        SentCommit()
        vector[SentOffset] offsets
        unordered_map[string, size_t] places
        unordered_map[Uuid, string] names
        bint as_member
        string member_id
        int32_t epoch

    cdef cppclass QueuedQuestion:
        QueuedQuestion()
        FetchCommittedEvent* event
        vector[uint8_t] answered
        size_t left
        RequestState request
        int32_t last_error
        uint64_t coordinator_failures

    cdef cppclass AskedCommitted:
        AskedCommitted()
        PartitionState* partition
        uint64_t position_epoch
        size_t index
        bint answered
        int64_t twin

    cdef cppclass SentFetch:
        SentFetch()
        uint64_t question
        vector[AskedCommitted] asked
        unordered_map[string, size_t] places
        unordered_map[Uuid, string] names
        bint as_member
        string member_id
        int32_t epoch
