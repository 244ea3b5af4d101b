"""Owns: CoordinatorRequestManager: finds the broker that coordinates the group (FindCoordinator).

thread: N. Never: asks while no manager needs the coordinator, has two requests in flight, asks again after a final
error before a manager needs the coordinator again.

Errors of a FindCoordinator response:
  COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT, a
  lost connection, an answer that does not parse or does not name the group   asked again with backoff
  GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID, UNSUPPORTED_VERSION, …   `fatal`: waiting requests fail with it, and
                                                  error_cb is called once; asked again at the next need
"""


cdef bint is_retriable_lookup(int32_t code) noexcept nogil:
    return (code == <int>COORDINATOR_NOT_AVAILABLE or code == <int>COORDINATOR_LOAD_IN_PROGRESS
            or code == <int>NOT_COORDINATOR or code == <int>UNKNOWN_SERVER_ERROR or code == <int>REQUEST_TIMED_OUT)


@cython.no_gc
cdef class CoordinatorRequestManager(RequestManager):
    def __cinit__(self, ManagerContext context):
        self.node = -1

    cdef int32_t coordinator(self) noexcept nogil:
        if self.node < 0:
            self.wanted = True
        return self.node

    cdef void mark_unknown(self, int32_t node_id, const char* why, int64_t now_ms) noexcept nogil:
        if self.node < 0 or node_id != self.node:
            return
        self.background.log.write(6, 0, b"COORDINATOR", b"group %s: coordinator %d was dropped: %s",
                                  self.group.group_id.c_str(), node_id, why)
        self.node = -1

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        if self.node >= 0 or not self.wanted or self.state.in_flight:
            return INT64_MAX
        if self.positions.cluster.brokers.empty():
            # Metadata comes first: the coordinator's address must not be the only broker in the list.
            return INT64_MAX
        if now_ms < self.state.not_before_ms:
            return self.state.wait_ms(now_ms)
        self._send(now_ms)
        return INT64_MAX

    cdef void _send(self, int64_t now_ms) noexcept nogil:
        cdef BodyOf[FindCoordinatorRequest]* body = new BodyOf[FindCoordinatorRequest]()
        # Fill both forms: versions 0 to 3 carry the key, later ones a list of keys.
        body.message.key = self.group.group_id
        body.message.key_type = 0
        body.message.coordinator_keys.push_back(self.group.group_id)
        self.state.on_send()
        self.send(body, ANY_NODE, CHANNEL_CONTROL, 0, now_ms, INT64_MAX)

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        self.background.log.write(7, DBG_CGRP, b"COORDINATOR", b"FindCoordinator failed: %s", status.detail.c_str())
        self.state.on_failure(now_ms, dereference(self.backoff), self.jitter)
        # Not for ERR_AUTHENTICATION: the application may replace the credentials, so a member need not end.
        if status.code == <int>ERR_UNSUPPORTED_FEATURE:
            self._fail(status)

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef FindCoordinatorResponse message
        cdef FindCoordinatorResponse_Coordinator found
        cdef Reader reader = Reader(response.body, response.length)
        cdef size_t i
        message.decode(reader, response.version)
        # In an error, librdkafka's mock cluster sends a null host, which no version allows. Handle the error first.
        if ((reader.ok() or response.version >= 4 or message.error_code == 0)
                and not self.readable(reader.status(), response, message.throttle_time_ms, b"COORDINATOR", now_ms)):
            self.state.on_failure(now_ms, dereference(self.backoff), self.jitter)
            return
        if response.version < 4:
            found.node_id = message.node_id
            found.host = message.host
            found.port = message.port
            found.error_code = message.error_code
            found.error_message = message.error_message
            self._take(found, now_ms)
            return
        for i in range(message.coordinators.size()):
            if message.coordinators[i].key == self.group.group_id:
                self._take(message.coordinators[i], now_ms)
                return
        self.state.on_failure(now_ms, dereference(self.backoff), self.jitter)

    cdef void _take(self, FindCoordinatorResponse_Coordinator& found, int64_t now_ms) noexcept nogil:
        cdef NodeAddress address
        cdef string said
        if found.error_code != 0 or found.node_id < 0:
            self.state.on_failure(now_ms, dereference(self.backoff), self.jitter)
            self.background.log.write(7, DBG_CGRP, b"COORDINATOR", b"group %s: no coordinator: error %d",
                                      self.group.group_id.c_str(), <int>found.error_code)
            if found.error_code != 0 and not is_retriable_lookup(found.error_code):
                if not found.error_message.is_null:
                    said = found.error_message.value
                self._fail(Status(found.error_code, coordinator_reason(found.error_code, self.group.group_id, said)))
            return
        if not self.positions.cluster.has_broker(found.node_id):
            # The broker list of the metadata is older than this broker.
            address.id = found.node_id
            address.host = found.host
            address.port = found.port
            if not self.positions.cluster.put_broker(address):
                self.state.on_failure(now_ms, dereference(self.backoff), self.jitter)
                return
            self.delegate.network.set_nodes(self.positions.cluster.brokers, now_ms)
        self.state.on_success()
        self.fatal = Status()
        self.reported = False
        self.wanted = False
        self.node = found.node_id
        self.background.log.write(7, DBG_CGRP, b"COORDINATOR", b"group %s is coordinated by broker %d",
                                  self.group.group_id.c_str(), found.node_id)

    cdef void _fail(self, const Status& status) noexcept nogil:
        """Fail waiting requests with a final error.

        No request is sent until a manager needs the coordinator again.
        """
        cdef BackgroundEvent event
        self.fatal = status
        self.failures += 1
        self.wanted = False
        if not self.reported:
            self.reported = True
            event.type = BACKGROUND_ERROR
            event.status = status
            self.background.add(event)
