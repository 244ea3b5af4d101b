# ConsumerNetworkThread: the loop. thread: N; start, stop and join are called on A.


cdef class ConsumerNetworkThread:
    cdef Clock clock                              # thread: N
    cdef NetworkClientDelegate delegate           # thread: N
    cdef ApplicationEventQueue application        # thread: N (shared inside)
    cdef ApplicationEventProcessor processor      # thread: N
    cdef RequestManagers managers                 # thread: N
    cdef FetchPositions positions                 # thread: N
    cdef FetchSender fetch_sender                 # thread: N (for statistics)
    cdef FetchDecoder decoder                     # thread: N
    cdef BackgroundEventQueue* background         # thread: N (shared inside)
    cdef FetchCounters* counters                  # thread: N (atomics)
    cdef string instance_name                     # thread: N (unique in the process)
    cdef string client_id                         # thread: N
    cdef int64_t started_ms                       # thread: N
    cdef int64_t statistics_interval_ms           # thread: N
    cdef int64_t statistics_due_ms                # thread: N
    cdef deque[ApplicationEvent*] drained         # thread: N (scratch)
    cdef int64_t flush_until_ms  # thread: N (dropped without close(): end of the wait for commits; 0: not yet)
    cdef atomic[bint] commits_awaited             # thread: any (set on A, read on N: the program has waited for them)
    cdef atomic[bint] stop_now                    # thread: any (set on A, read on N)
    cdef NativeThread thread                      # thread: A

    cdef void run_once(self, int64_t now_ms) noexcept nogil
    cdef void run(self) noexcept nogil
    cdef void end(self) noexcept nogil
    cdef void out_of_memory(self) noexcept nogil
    cdef int start(self)
    cdef void join(self) noexcept nogil
    cdef string statistics(self, int64_t now_ms) noexcept nogil
    # private
    cdef void _process_events(self, int64_t now_ms) noexcept nogil
    cdef void _process_drained(self, int64_t now_ms) noexcept nogil
    cdef int64_t _until_deadline(self, int64_t now_ms) noexcept nogil
    cdef bint may_close(self) noexcept nogil
    cdef void _attend_identity(self, int64_t now_ms) noexcept nogil
    cdef void _publish_statistics(self, int64_t now_ms) noexcept nogil
    cdef void _flush_commits(self) noexcept nogil
    cdef void _close(self) noexcept nogil
