# FetchDecoder: fetched bytes → columns → FetchBuffer, in bounded slices. thread: N, or A while it waits; D is the
# thread of the two that has passed the gate.


cdef enum AssistResult:
    ASSIST_NOTHING        # no work here, or the network thread does it
    ASSIST_DONE           # check the buffer again
    ASSIST_OUT_OF_MEMORY


cdef class FetchDecoder:
    cdef FetchSender sender                   # thread: N (wakeup: any)
    cdef FetchPositions positions             # thread: N
    cdef Clock clock                          # shared: reads only
    cdef DecodeGate gate                      # shared: inside
    cdef FetchBuffer* buffer                  # shared: inside
    cdef BackgroundEventQueue* background     # shared: inside
    cdef BlockPool* pool                      # shared: inside
    cdef PollIdle* idle                       # shared: inside (A's sleeps)
    cdef FetchConfig* config                  # shared: atomics
    cdef FetchHandler handler                 # thread: A (holds_back() only)
    cdef FetchCounters* counters              # shared: atomics
    cdef deque[FetchedItem*] items            # shared: gate (in order; the front item is being decoded)
    cdef Columns* columns                     # shared: gate (the arena to fill, or NULL)
    cdef vector[FetchEntry] entries           # shared: gate (not yet published)
    cdef deque[InflateAhead*] ahead           # thread: N (references; candidates for decompression ahead, in order)
    cdef atomic[int64_t] inflated_ahead       # shared: atomic (D and N write: bytes that are decompressed ahead)
    cdef atomic[bint] ahead_paused            # shared: atomic (D and N write: N paused, enough bytes are ready)
    cdef bint awaits                          # shared: gate (the last step reached a batch that N is decompressing)
    cdef atomic[bint] progressed              # shared: atomic (D writes: the last step made progress)
    cdef atomic[bint] blocked                 # shared: atomic (D writes: the last step ended for lack of room)
    cdef atomic[bint] network_first           # shared: atomic (N sets, D clears: N decodes even if A waits)
    cdef atomic[bint] few                     # shared: atomic (N writes: its latest data is decoded in microseconds)
    cdef AssistResult assisted                # thread: A (result of decoding in the current wait)
    cdef bint armed                           # thread: A (the current wait has asked N for a wakeup)

    cdef void take_over(self) noexcept nogil
    cdef bint network_decodes(self, int64_t* wait_ms) noexcept nogil
    cdef void decode_on_network(self) noexcept nogil
    cdef bint network_inflates(self, int64_t* wait_ms) noexcept nogil
    cdef void inflate_on_network(self) noexcept nogil
    cdef void settle(self, int64_t now_ms) noexcept nogil
    cdef AssistResult assist(self) noexcept nogil
    cdef WaitResult decode_or_sleep(self, uint32_t others, int64_t left_ms) noexcept nogil
    cdef bint begin_wait(self, uint32_t others) noexcept nogil
    cdef void drop_all(self) noexcept nogil
    cdef void end_wait(self, uint32_t others, bint slept, bint woken) noexcept nogil
    cdef bint _has_records(self) noexcept nogil
    cdef void leave_wait(self) noexcept nogil
    cdef void step(self, int64_t budget_bytes) noexcept nogil
    # private
    cdef void _offer(self, FetchedItem* item) noexcept nogil
    cdef void _drop_claimed(self) noexcept nogil
    cdef bint _is_far_ahead(self) noexcept nogil
    cdef bint _is_stale(self, FetchedItem* item) noexcept nogil
    cdef bint _must_wait(self) noexcept nogil
    cdef void _drop_front(self) noexcept nogil
    cdef bint _decode(self, FetchedItem* item, int64_t budget_bytes) noexcept nogil
    cdef int32_t _estimate_rows(self) noexcept nogil
    cdef void _add_rows(self, FetchedItem* item, int32_t first_row, bint finished) noexcept nogil
    cdef void _add_event(self, FetchedItem* item) noexcept nogil
    cdef void _fail(self, FetchedItem* item, const Status& status, int64_t offset, bint permanent) noexcept nogil
    cdef void _fail_oversized(self, FetchedItem* item) noexcept nogil
    cdef void _publish(self) noexcept nogil
