"""Owns: RequestManager, the contract of all managers: most send requests to brokers, some only serve one that does.
ManagerContext: the parts of a consumer that managers share.

thread: N only, so there are no locks. Never: does I/O, blocks. Requests go to the NetworkClientDelegate's queue; the
results come back through on_response / on_failure.
"""


@cython.no_gc
cdef class ManagerContext(ResponseHandler):
    """The parts of a consumer that managers share."""


@cython.no_gc
cdef class RequestManager(ManagerContext):
    def __cinit__(self, ManagerContext context not None, *parts):
        self.delegate = context.delegate
        self.positions = context.positions
        self.background = context.background
        self.backoff = context.backoff
        self.config = context.config
        self.counters = context.counters
        self.pool = context.pool
        self.group = context.group
        self.member = context.member
        self.shared = context.shared
        self.liveness = context.liveness

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        return INT64_MAX

    cdef void expire(self, int64_t now_ms) noexcept nogil:
        pass

    cdef int64_t next_deadline_ms(self) noexcept nogil:
        return INT64_MAX

    cdef void refuse(self, const Status& why, int64_t now_ms) noexcept nogil:
        pass

    cdef bint busy(self) noexcept nogil:
        return False

    cdef bint last_requests(self, int64_t now_ms) noexcept nogil:
        return False

    cdef void end(self, int64_t now_ms) noexcept nogil:
        self.refuse(Status(<int>ERR_DESTROY), now_ms)

    cdef Request* send(self, RequestBody* body, int32_t node_id, Channel channel, int32_t kind, int64_t now_ms,
                       int64_t until_ms) noexcept nogil:
        cdef Request* request = new Request()
        self.last_cookie += 1
        request.body = body
        request.node_id = node_id
        request.channel = channel
        request.created_ms = now_ms
        request.deadline_ms = min(until_ms, now_ms + self.backoff.request_timeout_ms)
        request.handler = <void*>self
        request.kind = kind
        request.cookie = self.last_cookie
        self.delegate.add(request)
        return request

    cdef bint readable(self, const Status& decoded, Response* response, int32_t throttle_time_ms, const char* facility,
                       int64_t now_ms) noexcept nogil:
        if decoded.ok():
            self.delegate.network.throttle(response.node_id, response.channel, throttle_time_ms, now_ms)
            return True
        self.background.log.push(3, facility, decoded.detail)
        self.delegate.network.disconnect(response.node_id, response.channel, now_ms)
        return False
