# Declares ScriptedNetwork, a Network without sockets for tests. thread: that of the test, in the role of N.
from kconsumer._core.base.cpp cimport int32_t, int64_t, map, pair, string, uint64_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.network.network cimport Completion, Network, NodeLoss
from kconsumer._core.network.request cimport NodeAddress, Request
from kconsumer._core.protocol.wire cimport Writer
from kconsumer._core.records.columns cimport BlockPool


cdef struct SentRequest:
    uint64_t id
    Request* request
    int32_t version


cdef class ScriptedNetwork(Network):
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

    # Takes all later blocks from this pool.
    cdef void use_pool(self, BlockPool* pool) noexcept nogil
    cdef int32_t common_version(self, int32_t api_key, int32_t low, int32_t high) noexcept nogil
    cdef int64_t index_of(self, uint64_t request_id) noexcept nogil
    cdef void finish_failed(self, Request* request, int32_t code, const string& detail) noexcept nogil
    cdef void fail_sent(self, int32_t node_id, int32_t channel, int32_t code, const string& detail) noexcept nogil
