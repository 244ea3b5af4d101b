# Declares network/connection.hpp for Cython, and the functions that receive and send its bytes. thread: N.


cdef extern from "network/connection.hpp" namespace "kc" nogil:
    cdef cppclass SaslSessionPtr "std::shared_ptr<kc::SaslSession>":
        void reset()

    cdef enum ConnectionState:
        CONN_DOWN
        CONN_RESOLVING
        CONN_CONNECTING
        CONN_HANDSHAKE
        CONN_API_VERSIONS
        CONN_SASL
        CONN_READY

    const int kChannels

    cdef cppclass InFlight:
        InFlight()
        Request* request
        int32_t correlation_id
        int16_t api_key
        int16_t version
        int16_t response_header_version
        bint internal
        bint bare
        bint given_up
        int64_t deadline_ms
        int64_t wait_ms
        int64_t hold_ms
        int64_t sent_us
        size_t expected_bytes

    cdef cppclass SilenceLimit:
        int64_t ms(int64_t first_ms, int64_t now_ms)
        void raise_ "raise"(int64_t first_ms, int64_t most_ms, int64_t now_ms)
        void learn(int64_t late_ms, int64_t first_ms, int64_t most_ms, int64_t now_ms)

    cdef cppclass DialLimit:
        int64_t next_ms()
        void dialled(int64_t now_ms)
        void set_failing(bint failing)

    cdef cppclass Dial:
        Dial()
        int fd
        size_t address

    cdef cppclass Connection:
        Connection(Node*, Channel)
        Node* node
        Channel channel
        ConnectionState state
        int fd
        uint8_t interest
        vector[SocketAddress] addresses
        size_t address_index
        size_t addresses_tried
        vector[Dial] dials
        int64_t next_dial_ms
        int64_t handshake_ms
        bint unreachable
        bint answered
        string attempt_errors
        int64_t attempt_started_ms
        int64_t setup_deadline_ms
        uint64_t credentials
        int16_t api_versions_version
        int32_t failures
        int64_t next_attempt_ms
        Status failure
        bint refused
        int64_t last_used_ms
        int64_t throttled_until_ms
        string logged_detail
        int64_t logged_ms
        Writer out
        size_t out_sent
        deque[InFlight] in_flight
        int32_t next_correlation_id
        int32_t timeouts
        int64_t last_read_ms
        bint served
        uint8_t* size_bytes
        size_t size_have
        size_t frame_length
        Block* frame
        ApiVersionTable api_versions
        SaslSessionPtr sasl
        int32_t take_correlation_id()
        void use(Transport* made)
        Transport* wire()
        int64_t silent_since_ms()
        void reset_io()
        const SocketAddress& address()
        void address_failed(size_t address, const string& why)
        void next_address()
        void adopt_addresses(const vector[SocketAddress]& found, bint all)

    cdef cppclass OpenDescriptors:
        void add(int fd)
        void remove(int fd)
        void close_all()

    cdef cppclass Node:
        Node(const NodeAddress&)
        int32_t id
        string host
        int32_t port
        string rack
        string name
        bint retiring
        string refusal
        bint silent
        SilenceLimit silence
        DialLimit dials
        NodeStats* stats()
        void collect_stats(vector[NodeStats]& out)
        Connection* connection(Channel)
        Connection* make_connection(Channel)
        void adopt_connections(Node& other)
        bint at(const NodeAddress&)
        bint retry_by(int64_t latest_ms, bint refused)
        void enter(Connection& c, ConnectionState state, int64_t now_ms)
        const char* state_word()


cdef enum IoOutcome:
    IO_AGAIN = 0     # the socket is empty or full: wait for the selector
    IO_FRAME = 1     # connection.frame contains a whole frame
    IO_SPENT = 2     # the budget of this turn is used up; the socket may have more bytes
    IO_BROKEN = 3    # the connection is lost; `why` has the reason

# Reads bytes of the next frame, at most `budget` bytes, and subtracts the bytes read from `budget`.
cdef IoOutcome receive(Connection* c, BlockPool* pool, int64_t receive_max_bytes, size_t* budget,
                       Status* why) noexcept nogil
# Writes queued bytes until the socket is full. Returns IO_AGAIN (c.out may still have bytes) or IO_BROKEN.
cdef IoOutcome flush(Connection* c, Status* why) noexcept nogil
