"""Owns: ScriptedNetwork, the Network of tests and simulations: without sockets or waits; the test sets every answer.

Threads: that of the test, in the role of N. Never: part of the consumer, reads a clock (time is an argument of poll).
"""

cdef struct SentRequest:
    uint64_t id
    Request* request
    int32_t version


@cython.no_gc
cdef class ScriptedNetwork(Network):
    """A Network whose answers a test sets. By default every known node is ready.

    Args:
        bootstrap: (host, port) pairs; they are nodes -2, -3, … until set_nodes().
    """
    cdef BlockPool* pool                                # thread: the test's; holds one reference
    cdef map[int32_t, NodeAddress] nodes                # thread: the test's
    cdef vector[NodeAddress] bootstrap                  # thread: the test's
    cdef map[pair[int32_t, int32_t], int32_t] states    # thread: the test's; (node, channel) to Readiness
    cdef map[pair[int32_t, int32_t], Status] failures   # thread: the test's; for take_connection_failure()
    cdef vector[NodeLoss] losses                        # thread: the test's; for take_losses()
    cdef int32_t renewed                                # thread: the test's
    cdef map[pair[int32_t, int32_t], int64_t] throttled_until_ms  # thread: the test's
    cdef map[int32_t, pair[int32_t, int32_t]] versions  # thread: the test's; api to lowest and highest
    cdef vector[SentRequest] sent                       # thread: the test's; requests without an answer
    cdef vector[Completion] finished                    # thread: the test's; the result of the next poll()
    cdef public bint encrypts                           # thread: the test's; the result of encrypted()
    cdef public bint receives                           # thread: the test's; quiet() is then always false
    cdef Writer scratch                                 # thread: the test's
    cdef uint64_t next_id                               # thread: the test's
    cdef int32_t set_nodes_calls                        # thread: the test's
    cdef int32_t rebootstraps                           # thread: the test's
    cdef int32_t polls                                  # thread: the test's
    cdef int32_t wakeups                                # thread: the test's
    cdef int64_t last_timeout_ms                        # thread: the test's

    def __cinit__(self, bootstrap=(("bootstrap", 9092),)):
        cdef NodeAddress address
        self.pool = BlockPool.create()
        self.next_id = 1
        for i, (host, port) in enumerate(bootstrap):
            address.id = -2 - i
            address.host = utf8(host)
            address.port = port
            self.bootstrap.push_back(address)
            self.nodes[address.id] = address

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.sent.size()):
            del self.sent[i].request
        for i in range(self.finished.size()):
            if self.finished[i].response.block != NULL:
                BlockPool.release(self.finished[i].response.block)
            del self.finished[i].request
        self.pool.unref()

    # Takes all later blocks from this pool.
    cdef void use_pool(self, BlockPool* pool) noexcept nogil:
        pool.ref()
        self.pool.unref()
        self.pool = pool

    # -- Network -------------------------------------------------------------------------------------------------------

    cdef Readiness ready(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        cdef pair[int32_t, int32_t] key = pair[int32_t, int32_t](node_id, <int32_t>channel)
        cdef size_t i
        if self.nodes.count(node_id) == 0:
            return NODE_UNKNOWN
        if self.states.count(key) != 0 and self.states[key] != NODE_READY:
            return <Readiness>self.states[key]
        if self.throttled_until_ms.count(key) != 0 and self.throttled_until_ms[key] > now_ms:
            return NODE_BUSY
        if channel == CHANNEL_FETCH or channel == CHANNEL_JOIN:
            for i in range(self.sent.size()):
                if self.sent[i].request.node_id == node_id and self.sent[i].request.channel == channel:
                    return NODE_BUSY
        return NODE_READY

    cdef void send(self, Request* request, int64_t now_ms) noexcept nogil:
        cdef SentRequest sent
        sent.id = self.next_id
        sent.request = request
        sent.version = self.common_version(request.body.api_key(), request.body.min_version(),
                                           request.body.max_version())
        if sent.version < 0:
            self.finish_failed(request, ERR_UNSUPPORTED_FEATURE, describe(
                b"no common version of %s", api_name(request.body.api_key())))
            return
        request.sent_ms = now_ms
        self.next_id += 1
        self.sent.push_back(sent)

    cdef int32_t common_version(self, int32_t api_key, int32_t low, int32_t high) noexcept nogil:
        if self.versions.count(api_key) == 0:
            return high
        high = min(high, self.versions[api_key].second)
        return high if high >= max(low, self.versions[api_key].first) else -1

    cdef void poll(self, int64_t timeout_ms, int64_t now_ms, vector[Completion]& done) noexcept nogil:
        cdef vector[SentRequest] waiting
        cdef size_t i
        self.polls += 1
        self.last_timeout_ms = timeout_ms
        waiting.swap(self.sent)
        for i in range(waiting.size()):
            if waiting[i].request.deadline_ms <= now_ms:
                self.finish_failed(waiting[i].request, ERR_TIMED_OUT, describe(
                    b"timed out waiting for the response to %s", api_name(waiting[i].request.body.api_key())))
            else:
                self.sent.push_back(waiting[i])
        for i in range(self.finished.size()):
            self.finished[i].response.received_ms = now_ms
            done.push_back(self.finished[i])
        self.finished.clear()

    cdef void finish_failed(self, Request* request, int32_t code, const string& detail) noexcept nogil:
        cdef Completion ended
        ended.request = request
        ended.failed = True
        ended.status = Status(code, detail)
        self.finished.push_back(ended)

    cdef void fail_sent(self, int32_t node_id, int32_t channel, int32_t code, const string& detail) noexcept nogil:
        """Fail the sent requests of a connection; channel -1: of all connections."""
        cdef vector[SentRequest] waiting
        cdef size_t i
        waiting.swap(self.sent)
        for i in range(waiting.size()):
            if waiting[i].request.node_id == node_id and (
                    channel < 0 or <int32_t>waiting[i].request.channel == channel):
                self.finish_failed(waiting[i].request, code, detail)
            else:
                self.sent.push_back(waiting[i])

    cdef bint take_connection_failure(self, int32_t node_id, Channel channel, Status* out) noexcept nogil:
        cdef pair[int32_t, int32_t] key = pair[int32_t, int32_t](node_id, <int32_t>channel)
        if self.failures.count(key) == 0 or self.failures[key].ok():
            return False
        out[0] = self.failures[key]
        self.failures[key] = Status()
        return True

    cdef int32_t least_loaded_node(self, int64_t now_ms) noexcept nogil:
        """Return the ready node with the lowest id, so that the test knows the node."""
        cdef map[int32_t, NodeAddress].iterator it = self.nodes.begin()
        while it != self.nodes.end():
            if self.ready(deref(it).first, <Channel>0, now_ms) == NODE_READY:
                return deref(it).first
            inc(it)
        return -1

    cdef void set_nodes(self, const vector[NodeAddress]& nodes, int64_t now_ms) noexcept nogil:
        cdef map[int32_t, NodeAddress] before
        cdef map[int32_t, NodeAddress].iterator it
        cdef size_t i
        self.set_nodes_calls += 1
        before.swap(self.nodes)
        for i in range(nodes.size()):
            self.nodes[nodes[i].id] = nodes[i]
        if nodes.empty():
            for i in range(self.bootstrap.size()):
                self.nodes[self.bootstrap[i].id] = self.bootstrap[i]
        it = before.begin()
        while it != before.end():
            # Requests to a bootstrap address can still get a response, as in NetworkClient.
            if deref(it).first >= -1 and self.nodes.count(deref(it).first) == 0:
                self.fail_sent(deref(it).first, -1, ERR_TRANSPORT, string(b"the broker is gone"))
            inc(it)

    cdef void rebootstrap(self, int64_t now_ms) noexcept nogil:
        cdef map[int32_t, NodeAddress].iterator it = self.nodes.begin()
        cdef size_t i
        self.rebootstraps += 1
        while it != self.nodes.end():
            self.fail_sent(deref(it).first, -1, ERR_TRANSPORT, string(b"the client returns to the bootstrap servers"))
            inc(it)
        self.nodes.clear()
        for i in range(self.bootstrap.size()):
            self.nodes[self.bootstrap[i].id] = self.bootstrap[i]

    cdef void throttle(self, int32_t node_id, Channel channel, int32_t throttle_ms, int64_t now_ms) noexcept nogil:
        cdef pair[int32_t, int32_t] place = pair[int32_t, int32_t](node_id, <int32_t>channel)
        if throttle_ms > 0:
            self.throttled_until_ms[place] = max(self.throttled_until_ms[place], now_ms + throttle_ms)

    cdef void disconnect(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        self.fail_sent(node_id, <int32_t>channel, ERR_TRANSPORT, string(b"disconnected by the client"))

    cdef int32_t usable_version(self, int32_t node_id, Channel channel, int32_t api_key, int32_t low,
                                int32_t high) noexcept nogil:
        if self.nodes.count(node_id) == 0:
            return -1
        return self.common_version(api_key, low, high)

    cdef int64_t next_timeout_ms(self, int64_t now_ms) noexcept nogil:
        cdef int64_t due = INT64_MAX
        cdef map[pair[int32_t, int32_t], int64_t].iterator it = self.throttled_until_ms.begin()
        cdef size_t i
        if not self.finished.empty():
            return 0
        for i in range(self.sent.size()):
            due = min(due, self.sent[i].request.deadline_ms)
        while it != self.throttled_until_ms.end():
            if deref(it).second > now_ms:
                due = min(due, deref(it).second)
            inc(it)
        return due if due == INT64_MAX else max(<int64_t>0, due - now_ms)

    cdef void wakeup(self) noexcept nogil:
        self.wakeups += 1

    cdef void close_all(self) noexcept nogil:
        cdef vector[SentRequest] waiting
        cdef size_t i
        waiting.swap(self.sent)
        for i in range(waiting.size()):
            self.finish_failed(waiting[i].request, ERR_TRANSPORT, string(b"the client is closing"))
        self.nodes.clear()

    cdef bint quiet(self) noexcept nogil:
        return not self.receives

    cdef bint encrypted(self) noexcept nogil:
        return self.encrypts

    cdef int32_t in_flight(self) noexcept nogil:
        return <int32_t>(self.sent.size() + self.finished.size())

    cdef string node_name(self, int32_t node_id) noexcept nogil:
        if self.nodes.count(node_id) == 0:
            return string()
        return host_and_port(self.nodes[node_id].host, self.nodes[node_id].port)

    cdef void take_losses(self, vector[NodeLoss]& out) noexcept nogil:
        out.swap(self.losses)
        self.losses.clear()

    cdef void renew(self, int32_t node_id, Channel channel, int64_t now_ms) noexcept nogil:
        self.renewed += 1
        self.fail_sent(node_id, <int32_t>channel, ERR_TRANSPORT, string(b"closed for a more urgent request"))

    cdef bint any_connected(self) noexcept nogil:
        cdef map[int32_t, NodeAddress].iterator it = self.nodes.begin()
        while it != self.nodes.end():
            if self.ready(deref(it).first, <Channel>0, 0) == NODE_READY:
                return True
            inc(it)
        return False

    cdef void collect_stats(self, vector[NodeStats]& out) noexcept nogil:
        cdef map[int32_t, NodeAddress].iterator it = self.nodes.begin()
        while it != self.nodes.end():
            out.emplace_back()
            out.back().node_id = deref(it).first
            out.back().name = self.node_name(deref(it).first)
            out.back().state.assign(b"UP" if self.ready(deref(it).first, <Channel>0, 0) == NODE_READY else b"DOWN")
            inc(it)

    # -- the script ----------------------------------------------------------------------------------------------------

    cdef int64_t index_of(self, uint64_t request_id) noexcept nogil:
        cdef size_t i
        for i in range(self.sent.size()):
            if self.sent[i].id == request_id:
                return <int64_t>i
        return -1

    def set_version(self, int api, int low, int high):
        """Set the versions of one API that every broker supports.

        Without a call, brokers support all versions.
        """
        self.versions[api] = pair[int32_t, int32_t](low, high)

    def set_readiness(self, int node, int channel, int readiness):
        """Set the answer of ready() for a connection (a Readiness number)."""
        self.states[pair[int32_t, int32_t](node, channel)] = readiness

    def fail_connection(self, int node, int channel, int code=-195, str detail="connection refused"):
        """Fail a connection attempt, for take_connection_failure(), and the sent requests."""
        self.failures[pair[int32_t, int32_t](node, channel)] = Status(code, utf8(detail))
        self.fail_sent(node, channel, code, utf8(detail))
        self.lose(node, code, detail)

    def lose(self, int node, int code=-195, str detail="connection refused", bint was_ready=False, bint repeated=False):
        """Add a lost connection or a failed attempt to the result of take_losses()."""
        cdef NodeLoss loss
        loss.node_id = node
        loss.was_ready = was_ready
        loss.repeated = repeated
        loss.status = Status(code, utf8(detail))
        self.losses.push_back(loss)

    def requests(self, api=None):
        """Return the sent requests without an answer, oldest first.

        Each is a dict with id, node, channel, api, version, body, kind, deadline_ms and sent_ms.
        """
        cdef Request* request
        cdef size_t i
        result = []
        for i in range(self.sent.size()):
            request = self.sent[i].request
            if api is not None and request.body.api_key() != api:
                continue
            self.scratch.clear()
            request.body.encode(self.scratch, <int16_t>self.sent[i].version)
            result.append({
                "id": self.sent[i].id, "node": request.node_id, "channel": <int>request.channel,
                "api": request.body.api_key(), "version": self.sent[i].version, "kind": request.kind,
                "deadline_ms": request.deadline_ms, "sent_ms": request.sent_ms,
                "body": (<const char*>self.scratch.data())[:self.scratch.size()] if self.scratch.size() else b"",
            })
        return result

    def answer(self, uint64_t request_id, bytes body not None):
        """End a request with a response of its version; ``body`` is after the header."""
        cdef int64_t index = self.index_of(request_id)
        cdef Completion ended
        cdef Block* block
        if index < 0:
            raise KeyError(request_id)
        block = self.pool.take(max(1, len(body)))
        if block == NULL:
            raise MemoryError
        memcpy(block.data, <const char*>body, len(body))
        block.size = len(body)
        ended.request = self.sent[index].request
        ended.response.block = block
        ended.response.body = block.data
        ended.response.length = block.size
        ended.response.version = <int16_t>self.sent[index].version
        ended.response.node_id = ended.request.node_id
        ended.response.channel = ended.request.channel
        self.sent.erase(self.sent.begin() + <size_t>index)
        self.finished.push_back(ended)

    def fail(self, uint64_t request_id, int code=-195, str detail="connection lost"):
        """End a request with a failure."""
        cdef int64_t index = self.index_of(request_id)
        if index < 0:
            raise KeyError(request_id)
        self.finish_failed(self.sent[index].request, code, utf8(detail))
        self.sent.erase(self.sent.begin() + <size_t>index)

    @property
    def node_list(self):
        """The known nodes: {id: "host:port"}."""
        cdef map[int32_t, NodeAddress].iterator it = self.nodes.begin()
        cdef string name
        result = {}
        while it != self.nodes.end():
            name = host_and_port(deref(it).second.host, deref(it).second.port)
            result[deref(it).first] = name.data()[:name.size()].decode()
            inc(it)
        return result

    @property
    def calls(self):
        """The number of calls of set_nodes, rebootstrap, renew, poll and wakeup."""
        return {"renew": self.renewed,
                "set_nodes": self.set_nodes_calls, "rebootstrap": self.rebootstraps, "poll": self.polls,
                "wakeup": self.wakeups}

    @property
    def timeout_ms(self):
        """The timeout of the latest poll."""
        return self.last_timeout_ms

    @property
    def live_bytes(self):
        """The bytes in referenced blocks."""
        return self.pool.live_bytes()
