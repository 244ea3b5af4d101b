# Declares Network, the interface between managers and brokers. NetworkClient implements it with sockets,
# ScriptedNetwork with a test's script. thread: N.


cdef class ResponseHandler:
    # The base of every RequestManager. NetworkClientDelegate.poll() calls the methods and then frees the request.
    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil
    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil


# An ended request. The delegate releases response.block after the handler's call.
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
    NODE_READY = 0        # send() accepts a request now
    NODE_CONNECTING = 1   # the connection is being opened (this call started it if necessary)
    NODE_BACKOFF = 2      # waiting before the next attempt
    NODE_BUSY = 3         # connected, but throttled (KIP-219), authenticating, or at its limit of requests in flight
    NODE_UNKNOWN = 4      # no such node in the current list


cdef class Network:
    cdef Readiness ready(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil
    # Takes ownership of the request. Call it only after ready() returned NODE_READY in the same turn.
    cdef void send(self, Request* request, int64_t now_ms) noexcept nogil
    # Does I/O and waits at most timeout_ms. Appends ended requests to `done`. Fails sent requests at their deadline.
    cdef void poll(self, int64_t timeout_ms, int64_t now_ms, vector[Completion]& done) noexcept nogil
    # Takes the error of this connection's latest failed attempt. A refusal is returned until the next attempt is due,
    # any other error once.
    cdef bint take_connection_failure(self, int32_t node_id, Channel channel, Status* out) noexcept nogil
    # Returns the ready node with the fewest requests in flight; otherwise a connecting node, or a node that is not in
    # back-off; -1 if there is none. The nodes are those of set_nodes(), or the bootstrap list while that is empty.
    cdef int32_t least_loaded_node(self, int64_t now_ms) noexcept nogil
    # Sets the id of the cluster that the nodes of set_nodes() belong to.
    cdef void set_cluster(self, const string& cluster_id) noexcept nogil
    # Replaces the broker list (from Metadata). Closes the connections of nodes that are removed or have a new address.
    cdef void set_nodes(self, const vector[NodeAddress]& nodes, int64_t now_ms) noexcept nogil
    # Forgets all known nodes and returns to the bootstrap list (KIP-899, KIP-1102); resolves all names again.
    cdef void rebootstrap(self, int64_t now_ms) noexcept nogil
    # Blocks requests on this channel for throttle_ms (KIP-219): the broker reads nothing from its connection meanwhile.
    cdef void throttle(self, int32_t node_id, Channel channel, int32_t throttle_ms, int64_t now_ms) noexcept nogil
    # Closes a connection; its requests fail with ERR_TRANSPORT at the next poll.
    cdef void disconnect(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil
    # Closes a connection in order to open it again without back-off; its requests fail with ERR_INTR.
    cdef void renew(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil
    # Returns the highest version that both sides support on this (connected) channel, or -1.
    cdef int32_t usable_version(self, int32_t node_id, Channel channel, int32_t api_key, int32_t low,
                                int32_t high) noexcept nogil
    # Returns the time until this object needs the next poll() (back-off, timeouts); INT64_MAX if there is no timer.
    cdef int64_t next_timeout_ms(self, int64_t now_ms) noexcept nogil
    # Interrupts a waiting poll(). thread: any.
    cdef void wakeup(self) noexcept nogil
    # Closes all connections immediately; requests in flight fail at the next poll.
    cdef void close_all(self) noexcept nogil
    # Returns whether the last poll() had no socket events and no pending bytes.
    cdef bint quiet(self) noexcept nogil
    # Returns whether responses are encrypted.
    cdef bint encrypted(self) noexcept nogil
    cdef int32_t in_flight(self) noexcept nogil
    cdef string node_name(self, int32_t node_id) noexcept nogil
    # Returns whether any connection is ready.
    cdef bint any_connected(self) noexcept nogil
    # Returns whether the bootstrap list is not complete, because its canonical names are being resolved.
    cdef bint names_pending(self) noexcept nogil
    # Takes the lost connections and failed attempts since the last call.
    cdef void take_losses(self, vector[NodeLoss]& out) noexcept nogil
    # Returns whether a response has begun to arrive on this channel.
    cdef bint receiving(self, int32_t node_id, Channel channel) noexcept nogil
    # Returns whether an identity was refused, by the broker or by the client, in the latest attempt at every node. A
    # blocking call then fails at once with this error.
    cdef bint refusal(self, Status* out) noexcept nogil
    # Returns whether to ask the application for a token; true only once until the application has answered.
    cdef bint take_token_request(self, int64_t now_ms) noexcept nogil
    cdef void collect_stats(self, vector[NodeStats]& out) noexcept nogil
