# ConsumerParts: all objects that N works on, and the thread itself. thread: A makes and ends it.


cdef class ConsumerParts:
    cdef Clock clock                           # thread: any
    cdef Network network                       # thread: N (wakeup: any)
    cdef NetworkClientDelegate delegate        # thread: N
    cdef SubscriptionState subscription        # shared: its lock
    cdef FetchPositions positions              # thread: N
    cdef MetadataRequestManager metadata       # thread: N
    cdef OffsetsRequestManager offsets         # thread: N
    cdef tuple managers                        # thread: A (keeps those of N's list)
    cdef FetchSender fetch_sender              # thread: N
    cdef FetchDecoder decoder                  # shared: its gate (N decodes, or A while it waits)
    cdef ApplicationEventProcessor processor   # thread: N
    cdef ApplicationEventQueue application     # shared: its lock
    cdef ConsumerNetworkThread network_thread  # thread: N
    cdef FetchHandler handler                  # thread: A (the exclusive call)
    cdef FetchConfig config                    # shared: atomics
    cdef FetchCounters counters                # shared: atomics
    cdef BackoffConfig backoff                 # thread: N
    cdef BackgroundEventQueue background       # shared: inside
    cdef FetchBuffer buffer                    # shared: inside
    cdef BlockPool* pool                       # shared: inside
    cdef bint opened                           # thread: A (set by __init__)
    cdef bint threaded                         # thread: A (False: a test steps the loop)
    cdef unsigned long fork_generation         # thread: A (fork_count of the process that created it)
    cdef GroupConfig group                     # thread: any (written before N starts)
    cdef Membership member                     # thread: N
    cdef GroupShared shared                    # shared: inside
    cdef Liveness liveness                     # shared: atomics
    cdef PollIdle idle                         # shared: inside

    cdef bint in_child(self) noexcept nogil
    cdef void stop_thread(self) noexcept
    # private
    cdef void _leave_to_parent(self) noexcept
