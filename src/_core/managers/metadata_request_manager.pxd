# Keeps FetchPositions.cluster fresh and answers list_topics. thread: N.
from kconsumer._core.base.cpp cimport deque, int32_t, int64_t, string, uint64_t, unordered_map, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.application_event cimport TopicMetadataEvent
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.managers.request_manager cimport RequestManager
from kconsumer._core.managers.request_state cimport BackoffConfig, Jitter, RequestState
from kconsumer._core.protocol.messages.metadata cimport MetadataResponse
from kconsumer._core.protocol.types cimport Uuid
from kconsumer._core.state.fetch_positions cimport FetchPositions


cdef class MetadataRequestManager(RequestManager):
    cdef FetchPositions positions                              # thread: N
    cdef BackgroundEventQueue* background                      # thread: N
    cdef BackoffConfig* backoff                                # thread: N
    cdef Jitter jitter                                         # thread: N
    cdef RequestState state                                    # thread: N
    cdef bint update_wanted                                    # thread: N
    cdef bint has_metadata                                     # thread: N
    cdef int64_t updated_ms                                    # thread: N
    cdef int64_t unreachable_since_ms                          # thread: N (0: reachable)
    cdef bint all_down_reported                                # thread: N
    cdef deque[TopicMetadataEvent*] waiting                    # thread: N (a reference each)
    cdef unordered_map[uint64_t, TopicMetadataEvent*] asked    # thread: N (by cookie; a reference each)
    cdef unordered_map[uint64_t, int64_t] retry_at             # thread: N
    cdef uint64_t next_cookie                                  # thread: N

    cdef void want_update(self) noexcept nogil
    cdef void ask(self, TopicMetadataEvent* event) noexcept nogil
    cdef void expire(self, int64_t now_ms) noexcept nogil
    cdef int64_t next_deadline_ms(self) noexcept nogil
