# ConsumerCore: the one class of the core that Python sees. thread: A; it owns everything N works on.
from libc.stdint cimport INT64_MAX

from kconsumer._core.base.clock cimport Clock
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, uint32_t
from kconsumer._core.consumer.application_event_processor cimport ApplicationEventProcessor
from kconsumer._core.consumer.consumer_network_thread cimport ConsumerNetworkThread
from kconsumer._core.consumer.fetch_buffer cimport FetchBuffer
from kconsumer._core.consumer.fetch_decoder cimport FetchDecoder
from kconsumer._core.consumer.fetch_handler cimport FetchHandler
from kconsumer._core.consumer.poll_idle cimport PollIdle
from kconsumer._core.consumer.record_batch cimport RecordBatch
from kconsumer._core.events.application_event cimport ApplicationEvent
from kconsumer._core.events.application_event_queue cimport ApplicationEventQueue
from kconsumer._core.events.background_event cimport BackgroundEvent, BackgroundEventQueue
from kconsumer._core.managers.fetch_sender cimport FetchSender
from kconsumer._core.managers.metadata_request_manager cimport MetadataRequestManager
from kconsumer._core.managers.offsets_request_manager cimport OffsetsRequestManager
from kconsumer._core.state.request_state cimport BackoffConfig
from kconsumer._core.network.network cimport Network
from kconsumer._core.network.network_client_delegate cimport NetworkClientDelegate
from kconsumer._core.records.columns cimport BlockPool
from kconsumer._core.state.fetch_config cimport FetchConfig, FetchCounters
from kconsumer._core.state.group cimport Liveness
from kconsumer._core.state.fetch_positions cimport FetchPositions
from kconsumer._core.state.subscription_state cimport SubscriptionState


cdef inline int64_t in_ms(int64_t deadline_us) noexcept nogil:
    """A deadline of the application's calls as the network thread has it; INT64_MAX: none."""
    return deadline_us if deadline_us == INT64_MAX else deadline_us // 1000


cdef class ConsumerCore:
    cdef Clock clock                           # thread: any
    cdef Network network                       # thread: N (wakeup: any)
    cdef NetworkClientDelegate delegate        # thread: N
    cdef SubscriptionState subscription        # shared: its lock
    cdef FetchPositions positions              # thread: N
    cdef MetadataRequestManager metadata       # thread: N
    cdef OffsetsRequestManager offsets         # thread: N
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
    cdef atomic[int32_t] busy                  # shared: atomic (an exclusive call is running)
    cdef bint opened                           # thread: A (set by __init__)
    cdef bint closed                           # thread: A
    cdef bint threaded                         # thread: A (False: a test steps the loop)
    cdef unsigned long fork_generation         # thread: A
    cdef object callback_lock                  # thread: A
    cdef Liveness liveness                     # shared: atomics
    cdef PollIdle idle                         # shared: inside
    cdef list told                             # thread: A (consumer errors that poll hands out before records)
    cdef list told_taken                       # thread: A (those that a running consume has taken)
    cdef object fatal                          # thread: A (the KafkaError that ended this consumer)
    cdef bint fatal_told                       # thread: A (a call has given it)

    cdef int enter(self) except -1
    cdef int check_usable(self) except -1
    cdef int attend(self) except -1
    cdef object take_event(self)
    cdef int wait(self, int64_t deadline_us) except -1
    cdef object fatal_error(self, int64_t deadline_us)
    cdef object await_event(self, ApplicationEvent* event)
    cdef int changed(self) except -1
    cdef int64_t deadline_us(self, object timeout) except -1
    cdef object poll_slow(self, object timeout)
    cdef int attend_group(self, uint32_t bits) except -1
    cdef int leave_group(self, int64_t timeout_us) except -1
    cdef int64_t end_deadline(self, int64_t timeout_us) noexcept
    cdef int ask_application(self, BackgroundEvent& event) except -1
    cdef int await_until(self, ApplicationEvent* event, int64_t deadline_us) except -1
    # private
    cdef void _leave_to_parent(self) noexcept
    cdef void _stop(self) noexcept
    cdef int _dispatch(self, BackgroundEvent& event) except -1
    cdef object _serve_or_yield(self, ApplicationEvent* event)
    cdef int _consume_into(self, list out, Py_ssize_t most, int64_t deadline) except -1
    cdef RecordBatch batch_or_moved(self, object max_records, object timeout, bint or_moved)
    cdef RecordBatch _take_batch(self, int32_t most, int64_t deadline, bint or_moved)
    cdef int _raise_event(self) except -1
