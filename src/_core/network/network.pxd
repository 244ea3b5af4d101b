# The seam between managers and the wire: what NetworkClient does over sockets and tests do by script. thread: N.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.network.request cimport Channel, NodeAddress, NodeStats, Request, Response


cdef class ResponseHandler:
    # Base of every RequestManager. Both calls come from NetworkClientDelegate.poll; the request is freed after them.
    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil
    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil


# One finished request. response.block is released by the delegate after dispatch.
cdef extern from "network/completion.hpp" namespace "kc" nogil:
    cdef cppclass Completion:
        Completion()
        Request* request
        bint failed
        Response response
        Status status


cdef extern from "network/node_loss.hpp" namespace "kc" nogil:
    cdef cppclass NodeLoss:
        NodeLoss()
        int32_t node_id
        bint was_ready
        bint repeated
        Status status


cdef enum Readiness:
    NODE_READY = 0        # send() will take a request now
    NODE_CONNECTING = 1   # not yet; a connection is being made (started by this call if need be)
    NODE_BACKOFF = 2      # not yet; waiting before the next attempt
    NODE_BUSY = 3         # connected, but throttled (KIP-219) or its one in-flight slot (FETCH) is taken
    NODE_UNKNOWN = 4      # no such node in the current list


cdef class Network:
    cdef Readiness ready(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil
    # Takes ownership of the request. Only after ready() said NODE_READY in the same turn.
    cdef void send(self, Request* request, int64_t now_ms) noexcept nogil
    # Does I/O, waiting at most timeout_ms; appends what finished. Request deadlines of sent requests are kept here.
    cdef void poll(self, int64_t timeout_ms, int64_t now_ms, vector[Completion]& done) noexcept nogil
    # The status of the latest failed attempt of this connection, once; of a refusal until the next attempt is due.
    cdef bint take_connection_failure(self, int32_t node_id, Channel channel, Status* out) noexcept nogil
    # A node with a ready connection and fewest in flight, else one being connected, else one not in backoff;
    # -1 when there is none. Nodes are those of set_nodes, or the bootstrap list while that is empty.
    cdef int32_t least_loaded_node(self, int64_t now_ms) noexcept nogil
    # Replaces the broker list (from Metadata). Connections of nodes that are gone or moved are closed.
    cdef void set_nodes(self, const vector[NodeAddress]& nodes, int64_t now_ms) noexcept nogil
    # Forget all known nodes and go back to the bootstrap list (KIP-899, KIP-1102); names are resolved again.
    cdef void rebootstrap(self, int64_t now_ms) noexcept nogil
    # No request to this node for throttle_ms (KIP-219), on any of its channels.
    cdef void throttle(self, int32_t node_id, int32_t throttle_ms, int64_t now_ms) noexcept nogil
    # Closes a connection; its requests fail with ERR_TRANSPORT at the next poll.
    cdef void disconnect(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil
    # Closes a connection on purpose, to make it again without back-off; its requests fail with ERR_INTR.
    cdef void renew(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil
    # Highest version both sides speak on this (connected) channel, or -1.
    cdef int32_t usable_version(self, int32_t node_id, Channel channel, int32_t api_key, int32_t low,
                                int32_t high) noexcept nogil
    # How long until this object wants poll() for its own sake (backoff, timeouts); INT64_MAX for never.
    cdef int64_t next_timeout_ms(self, int64_t now_ms) noexcept nogil
    # Interrupts a poll() that waits. thread: any.
    cdef void wakeup(self) noexcept nogil
    # Closes every connection at once; requests in flight fail at the next poll.
    cdef void close_all(self) noexcept nogil
    # Whether the last poll() found nothing to receive or to send.
    cdef bint quiet(self) noexcept nogil
    # Whether brokers encrypt what they send.
    cdef bint encrypted(self) noexcept nogil
    cdef int32_t in_flight(self) noexcept nogil
    cdef string node_name(self, int32_t node_id) noexcept nogil
    # Whether any connection is up.
    cdef bint any_connected(self) noexcept nogil
    # Connections lost and attempts failed since the last call, without repetitions of the same failure.
    cdef void take_losses(self, vector[NodeLoss]& out) noexcept nogil
    # Whether a response has begun to arrive on this channel.
    cdef bint receiving(self, int32_t node_id, Channel channel) noexcept nogil
    # Whether no connection is up and the latest failed one was refused, by the broker or by us: then a call fails at
    # once with that error.
    cdef bint refusal(self, Status* out) noexcept nogil
    # Whether to ask the application for a token; true once, until it has answered.
    cdef bint take_token_request(self, int64_t now_ms) noexcept nogil
    cdef void collect_stats(self, vector[NodeStats]& out) noexcept nogil
