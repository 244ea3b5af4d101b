# Declares managers/commit_merging.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int64_t, map, uint64_t, vector
from kconsumer._core.events.application_event cimport CommitEvent
from kconsumer._core.events.background_event cimport MergedCommitsHold
from kconsumer._core.events.topic_partition cimport PartitionOffset
from kconsumer._core.managers.commit_context cimport QueuedCommit


cdef extern from "managers/commit_merging.hpp" namespace "kc" nogil:
    cdef cppclass CommitMerging:
        CommitMerging()
        uint64_t find(map[uint64_t, QueuedCommit]& queue, const vector[PartitionOffset]& offsets)
        QueuedCommit* supersede(map[uint64_t, QueuedCommit]& queue, uint64_t older, uint64_t sequence,
                                CommitEvent* event)
        void absorb(QueuedCommit& newer, QueuedCommit& older)
        void note(uint64_t sequence, const vector[PartitionOffset]& offsets)
        void forget(uint64_t sequence, QueuedCommit& queued)
        MergedCommitsHold expire(QueuedCommit& queued, int64_t now_ms)
