# Declares Connector, which opens, negotiates and closes connections, and writes to them. thread: N.


cdef class Connector(Network):
    cdef Clock clock                      # thread: N
    cdef NetworkConfig config             # thread: N; a copy, fixed by open()
    cdef BlockPool* pool                  # thread: N; holds one reference
    cdef LogQueue* log                    # shared: its mutex; outlives this object
    cdef Selector selector                # thread: N; wakeup: any
    cdef Resolver resolver                # thread: N
    cdef OpenDescriptors descriptors      # shared: atomics
    cdef vector[Completion] finished      # thread: N; ended requests that poll() has not returned yet
    cdef vector[NodeLoss] losses          # thread: N; losses for take_losses(), at most MAX_LOSSES
    cdef Writer scratch                   # thread: N
    cdef int64_t next_timer_ms            # thread: N; no timer is due before this time
    cdef int32_t in_flight_count          # thread: N
    cdef int32_t resolving_count          # thread: N
    cdef uint64_t random_state            # thread: N
    cdef string cluster_id                # thread: N; empty: not known yet
    cdef bint brokers_check               # thread: N; the latest broker that answered checks connections (KIP-1242)
    cdef bint closed                      # thread: N; close_all() was called: no request may be sent

    cdef void arm(self, int64_t due_ms) noexcept nogil
    cdef uint64_t random(self) noexcept nogil
    cdef int64_t backoff_ms(self, int32_t failures) noexcept nogil

    # Node.retry_by() with the timer for it.
    cdef void retry_by(self, Node* node, int64_t latest_ms, bint refused) noexcept nogil
    cdef void start_attempt(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void resolve(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void connect_next(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef bint dial(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void dial_again(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void check_dials(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void advance_dials(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void hang_up(self, Connection* c, size_t number) noexcept nogil
    cdef void report_slow(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void connected(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef bint credentials_checked(self, Connection* c) noexcept nogil
    cdef void advance_handshake(self, Connection* c, int64_t now_ms) noexcept nogil
    # Whether a broker is asked to check that a connection is meant for it.
    cdef bint checks_cluster(self, Node* node) noexcept nogil
    cdef void begin_api_versions(self, Connection* c, int16_t version, int64_t now_ms) noexcept nogil
    cdef void introduced(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef Status judge(self, Connection* c, const Status& why) noexcept nogil
    cdef bint unnamed(self, Connection* c, const Status& why) noexcept nogil
    cdef void forget_identity(self, Connection* c, const Status& status, int64_t now_ms) noexcept nogil
    cdef void ask_api_versions(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void take_api_versions(self, Connection* c, const InFlight& asked, Reader& body,
                                int64_t now_ms) noexcept nogil
    cdef void become_ready(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void lose(self, Connection* c, const Status& why, int64_t now_ms) noexcept nogil
    cdef int64_t silence_ms(self, Node* node, int64_t now_ms) noexcept nogil
    cdef void set_silent(self, Node* node, int64_t now_ms) noexcept nogil
    cdef bint log_loss(self, Connection* c, const Status& status, bint was_ready, bint was_idle,
                       int64_t now_ms) noexcept nogil
    cdef void note_loss(self, Connection* c, const Status& status, bint was_ready, bint is_news) noexcept nogil
    cdef void close_socket(self, Connection* c) noexcept nogil
    cdef void fail_in_flight(self, Connection* c, const Status& why) noexcept nogil
    cdef void finish_failed(self, Request* request, int32_t code, const string& detail) noexcept nogil

    cdef void put_on_wire(self, Connection* c, const InFlight& sent, int64_t now_ms) noexcept nogil
    cdef void watch(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void watch_for(self, Connection* c, int wanted, int64_t now_ms) noexcept nogil
    cdef void write_out(self, Connection* c, int64_t now_ms) noexcept nogil
