# Declares network/request.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int16_t, int32_t, int64_t, map, string, uint8_t, uint64_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.base.window_stats cimport WindowStats
from kconsumer._core.network.security cimport SecurityConfig
from kconsumer._core.protocol.wire cimport Writer
from kconsumer._core.records.columns cimport Block


cdef extern from "network/request.hpp" namespace "kc" nogil:
    cdef enum Channel:
        CHANNEL_CONTROL
        CHANNEL_FETCH
        CHANNEL_COORDINATOR
        CHANNEL_JOIN

    const int32_t ANY_NODE

    cdef cppclass RequestBody:
        int16_t api_key()
        int16_t min_version()
        int16_t max_version()
        int16_t request_header_version(int16_t version)
        int16_t response_header_version(int16_t version)
        void encode(Writer& w, int16_t version)

    cdef cppclass BodyOf[M](RequestBody):
        BodyOf()
        M message
        int16_t lowest
        int16_t highest

    cdef cppclass Request:
        Request()
        RequestBody* body
        int32_t node_id
        Channel channel
        int64_t deadline_ms
        int64_t wait_ms
        int64_t hold_ms
        int64_t created_ms
        int64_t sent_ms
        void* handler
        int32_t kind
        uint64_t cookie
        size_t expected_bytes

    cdef cppclass Response:
        Response()
        Block* block
        const uint8_t* body
        size_t length
        int16_t version
        int32_t node_id
        Channel channel
        int64_t received_ms

    cdef cppclass NodeAddress:
        NodeAddress()
        int32_t id
        string host
        int32_t port
        string rack

    cdef cppclass NetworkConfig:
        NetworkConfig()
        string client_id
        string software_name
        string software_version
        vector[NodeAddress] bootstrap
        int32_t reconnect_backoff_ms
        int32_t reconnect_backoff_max_ms
        int32_t socket_timeout_ms
        int32_t connection_setup_timeout_ms
        int32_t connections_max_idle_ms
        int32_t socket_send_buffer_bytes
        int32_t socket_receive_buffer_bytes
        bint socket_keepalive
        bint socket_nagle_disable
        int32_t socket_max_fails
        int32_t silence_ms
        int32_t address_family
        int32_t broker_address_ttl_ms
        bint use_all_dns_ips
        bint canonical_bootstrap
        bint api_version_request
        bint cluster_check
        bint log_connection_close
        int32_t api_version_request_timeout_ms
        int64_t receive_message_max_bytes
        SecurityConfig security

    cdef cppclass NodeStats:
        NodeStats()
        int32_t node_id
        string name
        string state
        int64_t tx
        int64_t tx_bytes
        int64_t rx
        int64_t rx_bytes
        int64_t connects
        int64_t disconnects
        int64_t tx_errors
        int64_t rx_errors
        int64_t req_timeouts
        int64_t unmatched
        int64_t wakeups
        int32_t waitresp_count
        int64_t state_since_ms
        int64_t last_tx_us
        int64_t last_rx_us
        int64_t throttle_ms
        map[int16_t, int64_t] requests
        WindowStats rtt_us
        WindowStats outbuf_latency_us
        WindowStats throttles_ms
