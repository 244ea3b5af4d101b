# Declares managers/commit_merging.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, int64_t, map, uint64_t
from kconsumer._core.events.application_event cimport CommitEvent
from kconsumer._core.events.background_event cimport CommitMemory, MergedCommitsHold
from kconsumer._core.managers.commit_context cimport QueuedCommit


cdef extern from "managers/commit_merging.hpp" namespace "kc" nogil:
    cdef cppclass CommitMerging:
        CommitMerging()
        void wire(CommitMemory memory)
        void note(uint64_t sequence)
        void forget(uint64_t sequence)
        QueuedCommit* join(map[uint64_t, QueuedCommit]& queue, uint64_t sequence, CommitEvent* event, bint as_member,
                           int32_t epoch, int64_t deadline_ms)
        uint64_t newer(map[uint64_t, QueuedCommit]& queue, uint64_t failed)
        void absorb(QueuedCommit& entry, QueuedCommit& older)
        MergedCommitsHold expire(QueuedCommit& entry, int64_t now_ms)
