# Declares NetworkClientDelegate, the queue of unsent requests between managers and a Network. thread: N.


cdef class NetworkClientDelegate:
    cdef Network network            # thread: N
    cdef Clock clock                # thread: N
    cdef deque[Request*] unsent     # thread: N; in the order of add()
    cdef vector[Completion] done    # thread: N; ended requests that are not dispatched yet
    cdef int32_t last_any_node      # thread: N; the node chosen for the latest request to ANY_NODE
    cdef string last_failure        # thread: N; the error of the latest failed connection attempt
    cdef int64_t read_ms            # thread: N; when the sockets were last read: a deadline after that is not over yet
    cdef int64_t read_boot_us       # thread: N; the same by Clock.boot_us()

    cdef void add(self, Request* request) noexcept nogil
    # Sends requests whose connection is ready, polls the network for at most timeout_ms, and passes each ended request
    # to its handler.
    cdef void poll(self, int64_t timeout_ms, int64_t now_ms) noexcept nogil
    # Returns the number of requests that wait for a connection to the node.
    cdef int32_t unsent_to(self, int32_t node_id) noexcept nogil
    cdef bint has_unsent(self) noexcept nogil
    # Fails every unsent request with `code` (at close).
    cdef void fail_unsent(self, int32_t code, int64_t now_ms) noexcept nogil

    cdef void send_unsent(self, int64_t now_ms) noexcept nogil
    cdef bint try_send(self, Request* request, int64_t now_ms) noexcept nogil
    cdef void fail_by_connection(self) noexcept nogil
    cdef void fail_bound_to(self, int32_t node_id, Channel channel, const Status& why) noexcept nogil
    # Fail the requests of this handler that wait to be sent. Return whether there were any.
    cdef bint fail_unsent_of(self, void* handler, const Status& why) noexcept nogil
    cdef void fail(self, Request* request, int32_t code, const string& detail) noexcept nogil
    cdef int64_t wait_ms(self, int64_t timeout_ms, int64_t now_ms) noexcept nogil
    cdef void dispatch(self, int64_t now_ms) noexcept nogil
