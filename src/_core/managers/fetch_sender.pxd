# FetchSender: which partitions are asked from whom, in incremental fetch sessions. thread: N.
from kconsumer._core.base.cpp cimport deque, int16_t, int32_t, int64_t, string, uint64_t, unordered_map, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.managers.fetch_session cimport FetchedItem, FetchSession, SessionPartition
from kconsumer._core.managers.metadata_request_manager cimport MetadataRequestManager
from kconsumer._core.managers.request_manager cimport RequestManager
from kconsumer._core.managers.request_state cimport BackoffConfig, Jitter
from kconsumer._core.network.request cimport Request, Response
from kconsumer._core.protocol.messages.fetch cimport FetchResponse, FetchResponse_PartitionData
from kconsumer._core.records.columns cimport BlockPool
from kconsumer._core.state.fetch_config cimport FetchConfig, FetchCounters
from kconsumer._core.state.fetch_positions cimport FetchPositions
from kconsumer._core.state.partition_state cimport PartitionState


cdef class FetchSender(RequestManager):
    cdef FetchPositions positions                        # thread: N
    cdef MetadataRequestManager metadata                 # thread: N
    cdef BackgroundEventQueue* background                # thread: N
    cdef FetchConfig* config                             # thread: N
    cdef FetchCounters* counters                         # thread: N (atomics)
    cdef BlockPool* pool                                 # thread: N (shared inside)
    cdef BackoffConfig* backoff                          # thread: N
    cdef Jitter jitter                                   # thread: N
    cdef unordered_map[int32_t, FetchSession*] sessions  # thread: N (owned)
    cdef deque[FetchedItem*] fetched                     # thread: N (owned; FetchDecoder takes from the front)
    cdef vector[PartitionState*] delayed                 # thread: N (a reference each): backing off
    cdef uint64_t serve_count                            # thread: N
    cdef bint closing                                    # thread: N

    cdef bint nothing_undelivered(self) noexcept nogil
