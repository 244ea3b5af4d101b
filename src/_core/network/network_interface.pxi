"""Owns: Network and ResponseHandler, the abstract classes on both sides of NetworkClientDelegate.

thread: N (Network.wakeup: any). Never: does I/O.
"""


@cython.no_gc
cdef class ResponseHandler:
    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        pass

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        pass


@cython.no_gc
cdef class Network:
    cdef Readiness ready(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        return NODE_UNKNOWN

    cdef void send(self, Request* request, int64_t now_ms) noexcept nogil:
        pass

    cdef void poll(self, int64_t timeout_ms, int64_t now_ms, vector[Completion]& done) noexcept nogil:
        pass

    cdef bint take_connection_failure(self, int32_t node_id, Channel channel, Status* out) noexcept nogil:
        return False

    cdef int32_t least_loaded_node(self, int64_t now_ms) noexcept nogil:
        return -1

    cdef void set_cluster(self, const string& cluster_id) noexcept nogil:
        pass

    cdef void set_nodes(self, const vector[NodeAddress]& nodes, int64_t now_ms) noexcept nogil:
        pass

    cdef void rebootstrap(self, int64_t now_ms) noexcept nogil:
        pass

    cdef void throttle(self, int32_t node_id, Channel channel, int32_t throttle_ms, int64_t now_ms) noexcept nogil:
        pass

    cdef void disconnect(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        pass

    cdef void renew(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        pass

    cdef int32_t usable_version(self, int32_t node_id, Channel channel, int32_t api_key, int32_t low,
                                int32_t high) noexcept nogil:
        return -1

    cdef int64_t next_timeout_ms(self, int64_t now_ms) noexcept nogil:
        return INT64_MAX

    cdef void wakeup(self) noexcept nogil:
        pass

    cdef void close_all(self) noexcept nogil:
        pass

    cdef bint quiet(self) noexcept nogil:
        return True

    cdef bint encrypted(self) noexcept nogil:
        return False

    cdef int32_t in_flight(self) noexcept nogil:
        return 0

    cdef string node_name(self, int32_t node_id) noexcept nogil:
        return string()

    cdef bint any_connected(self) noexcept nogil:
        return False

    cdef bint names_pending(self) noexcept nogil:
        return False

    cdef void take_losses(self, vector[NodeLoss]& out) noexcept nogil:
        pass

    cdef bint receiving(self, int32_t node_id, Channel channel) noexcept nogil:
        return False

    cdef void collect_stats(self, vector[NodeStats]& out) noexcept nogil:
        pass

    cdef bint refusal(self, Status* out) noexcept nogil:
        return False

    cdef bint take_token_request(self, int64_t now_ms) noexcept nogil:
        return False
