"""Owns: GroupSessionTimeout, which asks the coordinator for the group's consumer.session.timeout.ms (KIP-848).

thread: N. Never: delays a heartbeat, keeps the value itself (Session does).

Under group.protocol=consumer the broker decides the session timeout, and no answer to a group request contains it. A
group may have its own (a dynamic configuration of the group), so the broker's default is not enough: a member that is
cut off could deliver records after the coordinator gave its partitions away.

The question is asked when the member has joined, and again after REFRESH_MS. After NOT_COORDINATOR it is repeated with
backoff, and MOST_LOST times after a lost connection. After any other error (no permission to describe the configuration
of the group, a broker without DescribeConfigs or without configurations of groups) the latest known value stays: at
first the property's.
"""

cdef enum:
    GROUP_RESOURCE = 32             # org.apache.kafka.common.config.ConfigResource.Type.GROUP
    REFRESH_MS = 300000
    MOST_LOST = 3                   # questions whose connection was lost, perhaps because of them


@cython.no_gc
cdef class GroupSessionTimeout(RequestManager):
    def __cinit__(self, ManagerContext context not None, CoordinatorRequestManager coordinator not None):
        self.coordinator = coordinator

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef int64_t due = max(self.due_ms, self.asking.not_before_ms)
        cdef int32_t node
        if not self.member.joined:
            self.due_ms = 0
            return INT64_MAX
        if self.asking.in_flight:
            return INT64_MAX
        if now_ms < due:
            return due - now_ms
        node = self.coordinator.coordinator()
        if node >= 0:
            self._send(node, now_ms)
        return INT64_MAX

    cdef void _send(self, int32_t node, int64_t now_ms) noexcept nogil:
        cdef BodyOf[DescribeConfigsRequest]* body = new BodyOf[DescribeConfigsRequest]()
        cdef DescribeConfigsRequest_DescribeConfigsResource asked
        asked.resource_type = GROUP_RESOURCE
        asked.resource_name = self.group.group_id
        asked.configuration_keys.set_present()
        asked.configuration_keys.value.push_back(b"consumer.session.timeout.ms")
        body.message.resources.push_back(asked)
        self.asking.on_send()
        self.send(body, node, CHANNEL_COORDINATOR, 0, now_ms, INT64_MAX)

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef DescribeConfigsResponse message
        cdef Reader reader = Reader(response.body, response.length)
        message.decode(reader, response.version)
        if not self.readable(reader.status(), response, message.throttle_time_ms, b"GROUP", now_ms):
            self.on_failure(request, reader.status(), now_ms)
        elif message.results.size() != 1:
            self._later(b"the coordinator described another number of groups than one", now_ms)
        else:
            self._take(message.results[0], now_ms)

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        if status.code == <int>ERR_UNSUPPORTED_FEATURE or self.asking.attempts >= MOST_LOST:
            self._later(status.detail.c_str(), now_ms)
        else:
            self.asking.on_failure(now_ms, dereference(self.backoff), self.jitter)

    cdef void _take(self, DescribeConfigsResponse_DescribeConfigsResult& found, int64_t now_ms) noexcept nogil:
        cdef long value = 0
        if found.error_code == <int>NOT_COORDINATOR or found.error_code == <int>COORDINATOR_NOT_AVAILABLE:
            self.asking.on_failure(now_ms, dereference(self.backoff), self.jitter)
            return
        if found.error_code != 0:
            self._later(found.error_message.value.c_str(), now_ms)
            return
        if found.configs.size() == 1:
            value = strtol(found.configs[0].value.value.c_str(), NULL, 10)
        if value <= 0 or value > INT32_MAX:
            self._later(b"the answer contains no value", now_ms)
            return
        self.shared.session.set_timeout(<int32_t>value)
        self._later(NULL, now_ms)

    cdef void _later(self, const char* why, int64_t now_ms) noexcept nogil:
        self.asking.on_success()
        self.due_ms = now_ms + REFRESH_MS
        if why != NULL:
            self.background.log.write(7, DBG_CGRP, b"SESSION", b"group %s: cannot read its session timeout, %d ms "
                                      b"counts: %s", self.group.group_id.c_str(),
                                      self.shared.session.timeout_ms(), why)
