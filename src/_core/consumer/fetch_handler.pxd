# FetchHandler: the source of records for poll, consume and consume_batch. thread: A (the exclusive call).


cdef class FetchHandler:
    cdef SubscriptionState subscription       # thread: A (its lock guards the shared fields)
    cdef FetchBuffer* buffer                  # thread: A (shared inside)
    cdef BackgroundEventQueue* background     # thread: A (shared inside)
    cdef BlockPool* pool                      # thread: A (shared inside)
    cdef FetchConfig* config                  # thread: A (atomics)
    cdef FetchCounters* counters              # thread: A (atomics)
    cdef Network network                      # thread: A (only wakeup() is called)
    cdef Clock clock                          # thread: A (reads only)
    cdef Session* session                     # thread: A (an atomic; NULL without a group)
    cdef dict topics                          # thread: A (bytes → str, one object per topic)
    cdef deque[FetchEntry] ready              # thread: A (taken, in order; the front entry is current while is_open)
    cdef deque[FetchEntry] parked             # thread: A (of paused partitions, in order)
    cdef int64_t parked_records               # thread: A

    # the open entry, unpacked for the fast path
    cdef bint is_open                         # thread: A
    cdef Columns* columns                     # thread: A
    cdef PartitionState* partition            # thread: A
    cdef uint64_t position_epoch              # thread: A
    cdef int32_t row                          # thread: A
    cdef int32_t row_end                      # thread: A
    cdef int64_t next_offset                  # thread: A
    cdef int32_t next_leader_epoch            # thread: A
    cdef int32_t partition_id                 # thread: A
    cdef object topic                         # thread: A (str)
    cdef size_t run                           # thread: A (index into columns.runs)
    cdef int32_t run_end                      # thread: A
    cdef int32_t leader_epoch                 # thread: A (of the run)
    cdef bint crowded                         # thread: A (half of the memory is in use: messages must not pin it)
    cdef bint epoch_moved                     # thread: A (no record of the run was returned yet)
    cdef int8_t timestamp_type                # thread: A

    # used entries of a call that may still fail, with the first used row of each and the offset of that row
    cdef bint transactional                   # thread: A
    cdef bint copies                          # thread: A; the call keeps no references to the arenas that it has used
    cdef int64_t copied_bytes                 # thread: A; bytes of large values since the last release of arenas
    cdef size_t let_go                        # thread: A; number of `used` entries without their arena
    cdef bint moved                           # thread: A; the position moved over hidden records since begin()
    cdef vector[FetchEntry] used              # thread: A
    cdef vector[int32_t] used_from            # thread: A
    cdef vector[int64_t] used_first           # thread: A
    cdef int32_t opened_at                    # thread: A

    cdef bint open_next(self)
    # Whether this member's session is over: until the coordinator answers, no records are returned.
    cdef bint holds_back(self) noexcept nogil
    cdef Message next_message(self)
    cdef void revalidate(self) noexcept nogil
    cdef void find_next_records(self, NextRecords& found) noexcept nogil
    cdef bint has_error(self) noexcept nogil
    cdef FetchEntry* front_event(self) noexcept nogil
    cdef void drop_front(self) noexcept nogil
    cdef void begin_call(self) noexcept nogil
    cdef void begin(self, bint copies=*) noexcept nogil
    cdef void commit(self) noexcept nogil
    cdef void rollback(self) noexcept nogil
    cdef void drop_parked(self) noexcept nogil
    cdef void drop_all(self) noexcept nogil
    cdef object topic_name(self, PartitionState* p)
    cdef int32_t take_rows(self, int32_t most) noexcept nogil
    # private
    cdef bint _take_in_hand(self, FetchEntry* entry, int32_t leader_epoch) noexcept nogil
    cdef void _store_position(self, int64_t offset) noexcept nogil
    cdef void _publish_row(self) noexcept nogil
    cdef void _publish_position(self, PartitionState* p, uint64_t position_epoch, int64_t offset,
                                int32_t leader_epoch) noexcept nogil
    cdef void _next_run(self) noexcept nogil
    cdef int _open(self, FetchEntry* entry) except -1
    cdef void _close_entry(self) noexcept nogil
    cdef void _publish(self, FetchEntry* entry, int32_t row) noexcept nogil
    cdef void _remember(self, FetchEntry* entry, bint whole) noexcept nogil
    cdef void _use(self, const FetchEntry& entry, int32_t first_row) noexcept nogil
    cdef void _let_go(self) noexcept nogil
    cdef bint _is_crowded(self) noexcept nogil
    cdef void _fetch_again(self) noexcept nogil
    cdef void _forget_used(self) noexcept nogil
    cdef bint _is_stale(self, FetchEntry* entry) noexcept nogil
    cdef void _drop(self, FetchEntry* entry) noexcept nogil
    cdef void _park(self) noexcept nogil
    cdef void _unpark(self, FetchEntry* entry) noexcept nogil
    cdef void _ran_dry(self) noexcept nogil
    cdef void _open_rows(self, FetchEntry* entry) noexcept nogil
    cdef void _put_back(self, FetchEntry entry, int32_t first_row) noexcept nogil
    cdef void put_back(self, int64_t kept) noexcept nogil
