# Declares NetworkClient, the Network with sockets: the broker list, readiness, requests in flight. thread: N.


cdef class NetworkClient(Authenticator):
    cdef map[int32_t, Node*] nodes        # thread: N
    cdef vector[NodeAddress] awaiting_canonical  # thread: N; bootstrap names whose canonical names are being resolved
    cdef vector[Node*] retired            # thread: N; removed from the list, with requests still in flight
    cdef vector[SelectorEvent] events     # thread: N
    cdef bint reads_pending               # thread: N; a transport has bytes that the selector cannot see
    cdef bint parts_only                  # thread: N; the events of this wait were parts of responses, nothing else
    cdef int first_channel                # thread: N; the channel that check_node() visits first
    cdef int64_t turn_ms                  # thread: N; when the latest poll() had waited
    cdef bint turned_late                 # thread: N; this process was suspended during the latest turn
    cdef bint on_bootstrap                # thread: N; `nodes` is the bootstrap list
    cdef bint abandoned                   # thread: A, in the child of a fork

    # thread: A, before N starts. Copies the configuration, retains the pool and opens the selector. Returns 0 or an
    # errno. The log queue must outlive this object.
    cdef int open(self, const NetworkConfig& config, BlockPool* pool, LogQueue* log, Clock clock)
    # thread: A, in the child of a fork: closes the descriptors. Does not send, and does not free data that N may have
    # been changing.
    cdef void abandon(self) noexcept nogil

    cdef void use_bootstrap(self) noexcept nogil
    cdef void expand_bootstrap(self, int64_t now_ms) noexcept nogil
    cdef Node* find_node(self, int32_t node_id) noexcept nogil
    cdef Connection* find_connection(self, int32_t node_id, int channel) noexcept nogil
    cdef void drop_node(self, Node* node, bint linger, const string& why, int64_t now_ms) noexcept nogil

    cdef int common_version(self, Connection* c, int16_t api_key, int16_t low, int16_t high) noexcept nogil
    cdef void read_in(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void take_frame(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void handle_event(self, Connection* c, int ready, int64_t now_ms) noexcept nogil

    cdef void run_timers(self, int64_t now_ms) noexcept nogil
    cdef void check_node(self, Node* node, int64_t now_ms) noexcept nogil
    cdef void check_connection(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void expire_in_flight(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void expire_silence(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void arm_silence(self, Connection* c, int64_t due_ms, int64_t now_ms) noexcept nogil
    cdef void give_up_silent(self, Connection* c, int64_t silent_ms, int64_t now_ms) noexcept nogil
    cdef bint is_suspect(self, Connection* c, int64_t now_ms) noexcept nogil
    cdef void visit_unselected(self, int64_t now_ms) noexcept nogil
    cdef void visit_node(self, Node* node, int64_t now_ms) noexcept nogil
    cdef void free_retired(self, int64_t now_ms) noexcept nogil
    cdef void heed_credentials(self, int64_t now_ms) noexcept nogil
