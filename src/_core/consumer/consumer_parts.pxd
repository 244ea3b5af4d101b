# ConsumerParts: all objects that N works on, and the thread itself. thread: A makes and ends it.
from kconsumer._core.base.base cimport Clock
from kconsumer._core.consumer.application_event_processor cimport ApplicationEventProcessor
from kconsumer._core.consumer.consumer_network_thread cimport ConsumerNetworkThread
from kconsumer._core.consumer.fetch_buffer cimport FetchBuffer
from kconsumer._core.consumer.fetch_decoder cimport FetchDecoder
from kconsumer._core.consumer.fetch_handler cimport FetchHandler
from kconsumer._core.consumer.poll_idle cimport PollIdle
from kconsumer._core.events.application_event_queue cimport ApplicationEventQueue
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.managers.managers cimport FetchErrors, FetchSender, MetadataRequestManager, OffsetsRequestManager
from kconsumer._core.state.request_state cimport BackoffConfig
from kconsumer._core.network.network cimport Network, NetworkClientDelegate
from kconsumer._core.records.columns cimport BlockPool
from kconsumer._core.state.fetch_config cimport FetchConfig, FetchCounters
from kconsumer._core.state.group cimport Liveness
from kconsumer._core.state.state cimport FetchPositions, SubscriptionState


cdef class ConsumerParts:
    cdef Clock clock                           # thread: any
    cdef Network network                       # thread: N (wakeup: any)
    cdef NetworkClientDelegate delegate        # thread: N
    cdef SubscriptionState subscription        # shared: its lock
    cdef FetchPositions positions              # thread: N
    cdef MetadataRequestManager metadata       # thread: N
    cdef OffsetsRequestManager offsets         # thread: N
    cdef FetchErrors fetch_errors              # thread: N
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
    cdef Liveness liveness                     # shared: atomics
    cdef PollIdle idle                         # shared: inside

    cdef bint in_child(self) noexcept nogil
    cdef void stop_thread(self) noexcept
    # private
    cdef void _leave_to_parent(self) noexcept
