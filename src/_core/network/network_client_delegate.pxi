"""Owns: the requests that wait to be sent, and the dispatch of each ended request to its manager.

thread: N. Never: touches a socket, interprets a request, keeps a request after its handler's call.

A handler may add() requests while it handles a response. They are sent before the next handler's call, so that the next
Fetch is already sent when the handler reads the last response.
"""


@cython.no_gc
cdef class NetworkClientDelegate:
    def __cinit__(self, Network network not None, Clock clock not None):
        self.network = network
        self.clock = clock
        self.last_any_node = ANY_NODE

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.unsent.size()):
            del self.unsent[i]
        for i in range(self.done.size()):
            if self.done[i].response.block != NULL:
                BlockPool.release(self.done[i].response.block)
            del self.done[i].request

    cdef void add(self, Request* request) noexcept nogil:
        self.unsent.push_back(request)

    cdef int32_t unsent_to(self, int32_t node_id) noexcept nogil:
        cdef int32_t found = 0
        cdef size_t i
        for i in range(self.unsent.size()):
            found += self.unsent[i].node_id == node_id
        return found

    cdef bint has_unsent(self) noexcept nogil:
        return not self.unsent.empty()

    cdef void poll(self, int64_t timeout_ms, int64_t now_ms) noexcept nogil:
        self.send_unsent(now_ms)
        self.network.poll(self.wait_ms(timeout_ms, now_ms), now_ms, self.done)
        self.read_ms = now_ms = self.clock.now_ms()
        self.read_boot_us = self.clock.boot_us()
        self.dispatch(now_ms)
        # After this turn (a new connection, a free slot) older requests may be sendable.
        self.send_unsent(now_ms)
        self.dispatch(now_ms)

    cdef int64_t wait_ms(self, int64_t timeout_ms, int64_t now_ms) noexcept nogil:
        cdef int64_t due = INT64_MAX
        cdef size_t i
        if not self.done.empty():
            return 0
        for i in range(self.unsent.size()):
            due = min(due, self.unsent[i].deadline_ms)
        if due != INT64_MAX:
            timeout_ms = min(timeout_ms, max(<int64_t>0, due - now_ms))
        return min(timeout_ms, self.network.next_timeout_ms(now_ms))

    cdef void send_unsent(self, int64_t now_ms) noexcept nogil:
        """Send each request in the queue, fail it to `done`, or keep its place."""
        cdef deque[Request*] waiting
        cdef size_t i
        if self.unsent.empty():
            return
        self.fail_by_connection()
        waiting.swap(self.unsent)
        for i in range(waiting.size()):
            if not self.try_send(waiting[i], now_ms):
                self.unsent.push_back(waiting[i])

    cdef bint try_send(self, Request* request, int64_t now_ms) noexcept nogil:
        """Send or fail the request; return False if it must wait."""
        cdef int32_t node_id = request.node_id
        cdef Readiness readiness
        if request.deadline_ms <= now_ms:
            self.fail(request, ERR_TIMED_OUT, describe(
                b"%s was not sent within %lld ms%s%s", api_name(request.body.api_key()),
                <long long>(now_ms - request.created_ms), b"" if self.last_failure.empty() else b": ",
                self.last_failure.c_str()))
            return True
        if node_id == ANY_NODE:
            node_id = self.network.least_loaded_node(now_ms)
            if node_id == ANY_NODE:
                return False
            self.last_any_node = node_id
        readiness = self.network.ready(node_id, request.channel, now_ms)
        if readiness == NODE_UNKNOWN:
            self.fail(request, ERR_UNKNOWN_BROKER, describe(b"%s: no broker with id %d is known",
                                                            api_name(request.body.api_key()), node_id))
            return True
        if readiness != NODE_READY:
            return False
        request.node_id = node_id
        self.network.send(request, now_ms)
        return True

    cdef void fail_by_connection(self) noexcept nogil:
        """Fail the requests to nodes whose connection attempt failed.

        Their managers may know another node.
        """
        cdef Status why
        cdef size_t i = 0
        if self.last_any_node != ANY_NODE and self.network.take_connection_failure(self.last_any_node, CHANNEL_CONTROL,
                                                                                   &why):
            self.last_failure = why.detail
            self.fail_bound_to(self.last_any_node, CHANNEL_CONTROL, why)
        while i < self.unsent.size():
            if self.unsent[i].node_id != ANY_NODE and self.network.take_connection_failure(
                    self.unsent[i].node_id, self.unsent[i].channel, &why):
                self.last_failure = why.detail
                self.fail_bound_to(self.unsent[i].node_id, self.unsent[i].channel, why)
                i = 0  # the queue has changed
            else:
                i += 1

    cdef void fail_bound_to(self, int32_t node_id, Channel channel, const Status& why) noexcept nogil:
        cdef deque[Request*] kept
        cdef size_t i
        for i in range(self.unsent.size()):
            if self.unsent[i].node_id == node_id and self.unsent[i].channel == channel:
                self.fail(self.unsent[i], why.code, why.detail)
            else:
                kept.push_back(self.unsent[i])
        self.unsent.swap(kept)

    cdef bint fail_unsent_of(self, void* handler, const Status& why) noexcept nogil:
        cdef deque[Request*] kept
        cdef size_t i
        cdef bint found
        for i in range(self.unsent.size()):
            if self.unsent[i].handler == handler:
                self.fail(self.unsent[i], why.code, why.detail)
            else:
                kept.push_back(self.unsent[i])
        found = kept.size() < self.unsent.size()
        self.unsent.swap(kept)
        return found

    cdef void fail(self, Request* request, int32_t code, const string& detail) noexcept nogil:
        cdef Completion ended
        ended.request = request
        ended.failed = True
        ended.status = Status(code, detail)
        self.done.push_back(ended)

    cdef void fail_unsent(self, int32_t code, int64_t now_ms) noexcept nogil:
        cdef deque[Request*] waiting
        cdef size_t i
        waiting.swap(self.unsent)
        for i in range(waiting.size()):
            self.fail(waiting[i], code, describe(b"%s was not sent", api_name(waiting[i].body.api_key())))
        self.dispatch(now_ms)

    cdef void dispatch(self, int64_t now_ms) noexcept nogil:
        cdef vector[Completion] ended
        cdef Completion* c
        cdef size_t i, before
        while not self.done.empty():
            ended.swap(self.done)
            for i in range(ended.size()):
                c = &ended[i]
                before = self.unsent.size()
                if c.failed:
                    (<ResponseHandler>c.request.handler).on_failure(c.request, c.status, now_ms)
                else:
                    (<ResponseHandler>c.request.handler).on_response(c.request, &c.response, now_ms)
                    BlockPool.release(c.response.block)
                del c.request
                if self.unsent.size() > before:
                    self.send_unsent(now_ms)
            ended.clear()
