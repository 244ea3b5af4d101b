# FetchDecoder: fetched bytes → columns → FetchBuffer, in bounded slices. thread: N.
from kconsumer._core.base.cpp cimport int32_t, int64_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.consumer.fetch_buffer cimport FetchBuffer, FetchEntry
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.managers.fetch_sender cimport FetchSender
from kconsumer._core.managers.fetch_session cimport FetchedItem
from kconsumer._core.records.columns cimport BlockPool, Columns
from kconsumer._core.state.fetch_config cimport FetchConfig, FetchCounters
from kconsumer._core.state.fetch_positions cimport FetchPositions


cdef class FetchDecoder:
    cdef FetchSender sender                   # thread: N
    cdef FetchPositions positions             # thread: N
    cdef FetchBuffer* buffer                  # thread: N (shared inside)
    cdef BackgroundEventQueue* background     # thread: N (shared inside)
    cdef BlockPool* pool                      # thread: N (shared inside)
    cdef FetchConfig* config                  # thread: N
    cdef FetchCounters* counters              # thread: N (atomics)
    cdef Columns* columns                     # thread: N (the arena being filled, or NULL)
    cdef vector[FetchEntry] entries           # thread: N (not yet published)
    cdef bint blocked                         # thread: N (the last step ended for want of room)

    cdef void step(self, int64_t budget_bytes) noexcept nogil
    # Something to decode, and room for it as far as the last step knows.
    cdef bint has_work(self) noexcept nogil
    # private
    cdef bint _is_stale(self, FetchedItem* item) noexcept nogil
    cdef bint _must_wait(self) noexcept nogil
    cdef void _drop_front(self) noexcept nogil
    cdef bint _decode(self, FetchedItem* item, int64_t budget_bytes) noexcept nogil
    cdef int32_t _estimate_rows(self) noexcept nogil
    cdef void _add_rows(self, FetchedItem* item, int32_t first_row, bint finished) noexcept nogil
    cdef void _add_event(self, FetchedItem* item) noexcept nogil
    cdef void _fail(self, FetchedItem* item, const Status& status, int64_t offset) noexcept nogil
    cdef void _fail_oversized(self, FetchedItem* item) noexcept nogil
    cdef void _publish(self) noexcept nogil
