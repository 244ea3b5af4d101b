# ListOffsets and OffsetForLeaderEpoch: resets, validations, and what the application asks. thread: N.
from kconsumer._core.base.cpp cimport deque, int32_t, int64_t, string, uint64_t, unordered_map, vector
from kconsumer._core.events.application_event cimport ListOffsetsEvent
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.managers.metadata_request_manager cimport MetadataRequestManager
from kconsumer._core.managers.request_manager cimport RequestManager
from kconsumer._core.managers.request_state cimport BackoffConfig, Jitter
from kconsumer._core.state.fetch_positions cimport FetchPositions
from kconsumer._core.state.partition_state cimport PartitionState


cdef extern from "managers/offsets_context.hpp" namespace "kc" nogil:
    cdef cppclass AskedPartition:
        AskedPartition()
        PartitionState* partition
        uint64_t position_epoch
        int32_t query

    cdef cppclass OffsetsContext:
        OffsetsContext()
        ListOffsetsEvent* event
        vector[AskedPartition] partitions
        unordered_map[string, size_t] places


cdef class OffsetsRequestManager(RequestManager):
    cdef FetchPositions positions                              # thread: N
    cdef MetadataRequestManager metadata                       # thread: N
    cdef BackgroundEventQueue* background                      # thread: N
    cdef BackoffConfig* backoff                                # thread: N
    cdef Jitter jitter                                         # thread: N
    cdef unordered_map[uint64_t, OffsetsContext] contexts      # thread: N (by cookie)
    cdef uint64_t next_cookie                                  # thread: N
    cdef deque[ListOffsetsEvent*] events                       # thread: N (a reference each)
    cdef int64_t events_retry_at_ms                            # thread: N
    cdef int32_t events_attempts                               # thread: N

    cdef void ask(self, ListOffsetsEvent* event) noexcept nogil
    cdef void expire(self, int64_t now_ms) noexcept nogil
    cdef int64_t next_deadline_ms(self) noexcept nogil
