"""Owns: FetchErrors, which handles partitions whose Fetch failed or whose batch cannot be read.

thread: N. Never: sends a request, reads records.

Errors of one partition in a Fetch response:
  OFFSET_OUT_OF_RANGE   from a follower: ask the leader; from the leader: auto.offset.reset
  NOT_LEADER_OR_FOLLOWER, LEADER_NOT_AVAILABLE, FENCED_LEADER_EPOCH, REPLICA_NOT_AVAILABLE, KAFKA_STORAGE_ERROR,
  UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID   the leader hint or metadata, with backoff
  OFFSET_NOT_AVAILABLE, UNKNOWN_LEADER_EPOCH, UNKNOWN_SERVER_ERROR   again with backoff
  CORRUPT_MESSAGE   as a bad batch
  TOPIC_AUTHORIZATION_FAILED and others   reported to the application once, asked again with backoff

A bad batch (CORRUPT_MESSAGE, a wrong CRC, bytes that cannot be decoded) is fetched again with backoff, from each
replica in turn. The partition stops when the same batch was bad MOST_ATTEMPTS times. With a right CRC it stops
immediately: every replica has the same bytes. A stopped partition is logged each minute until a seek.

A batch without memory is not bad: it is reported once, logged each minute, and fetched again from the same broker until
there is memory.
"""


cdef extern from "managers/fetch_errors.hpp" namespace "kc" nogil:
    string bad_batch_text(const BatchFailure& failure)
    string bad_batch_remedy(const BatchFailure& failure, const BadBatch& bad)

cdef enum:
    MOST_ATTEMPTS = 5
    LOG_AGAIN_MS = 60000
    # How long a partition reads from another replica because of a bad batch.
    ELSEWHERE_MS = 10000


@cython.no_gc
cdef class FetchErrors(RequestManager):
    def __cinit__(self, ManagerContext context, MetadataRequestManager metadata not None):
        self.metadata = metadata

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.stopped.size()):
            self.stopped[i].partition.release()
        for i in range(self.elsewhere.size()):
            self.elsewhere[i].partition.release()

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef PartitionState* p
        for p in self.positions.stopped:
            self.stopped.push_back(TimedPartition(p, p.adopted_epoch, now_ms))
            p.release()
        self.positions.stopped.clear()
        cdef int64_t wait = self._log_stopped(now_ms)
        return min(wait, self._go_back(now_ms))

    cdef int64_t _log_stopped(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait = INT64_MAX
        cdef TimedPartition* entry
        cdef PartitionState* p
        cdef size_t i = 0
        while i < self.stopped.size():
            entry = &self.stopped[i]
            p = entry.partition
            if not p.tracked or p.state != FETCH_STOPPED or p.adopted_epoch != entry.position_epoch:
                p.release()
                self.stopped[i] = self.stopped.back()
                self.stopped.pop_back()
                continue
            if now_ms >= entry.due_ms:
                # stop_reason is written only on this thread, so it can be read without a lock.
                self.background.log.push(3, b"FETCHSTOP", string(b"stopped until a seek: ").append(p.stop_reason))
                entry.due_ms = now_ms + LOG_AGAIN_MS
            wait = min(wait, entry.due_ms - now_ms)
            i += 1
        return wait

    cdef int64_t _go_back(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait = INT64_MAX
        cdef TimedPartition* entry
        cdef size_t i = 0
        while i < self.elsewhere.size():
            entry = &self.elsewhere[i]
            if now_ms < entry.due_ms:
                wait = min(wait, entry.due_ms - now_ms)
                i += 1
                continue
            # The preferred replica has expired (read_node()): FetchSender moves the partition to its leader's session.
            self.positions.mark_dirty(entry.partition)
            entry.partition.release()
            self.elsewhere[i] = self.elsewhere.back()
            self.elsewhere.pop_back()
        return wait

    # ---- errors of a Fetch response

    cdef void on_partition_error(self, int32_t node_id, FetchResponse& message, PartitionState* p,
                                 FetchResponse_PartitionData* data, int64_t now_ms) noexcept nogil:
        cdef int32_t code = data.error_code
        cdef int64_t offset = p.fetch_offset.load()
        cdef BatchFailure failure
        cdef Status status
        self.background.log.write(7, DBG_FETCH, b"FETCH", b"%s: error %d from broker %d at offset %lld",
                                  p.name().c_str(), <int>code, node_id, <long long>offset)
        if code == <int>OFFSET_OUT_OF_RANGE:
            if node_id != p.leader_id:
                # Only the leader's answer counts; the log of a follower may be shorter.
                p.preferred_replica = -1
                self.positions.mark_dirty(p)
            else:
                self.positions.reset_by_policy(p, <int>OFFSET_OUT_OF_RANGE,
                                               string(b"the broker does not have the fetched offset"), offset, now_ms)
            return
        if code == <int>CORRUPT_MESSAGE:
            failure.partition = p
            failure.position_epoch = p.adopted_epoch
            failure.node_id = node_id
            failure.status = Status(code, string(b"the broker found a corrupt batch"))
            failure.offset = offset
            failure.resume_offset = offset
            failure.resume_leader_epoch = p.fetch_leader_epoch
            failure.refused = True
            self.on_bad_batch(failure, now_ms)
            return
        self._delay(p, now_ms)
        if p.request.attempts == 1:
            self.metadata.clear_backoff()
        if (code == <int>NOT_LEADER_OR_FOLLOWER or code == <int>FENCED_LEADER_EPOCH
                or code == <int>REPLICA_NOT_AVAILABLE or code == <int>KAFKA_STORAGE_ERROR
                or code == <int>LEADER_NOT_AVAILABLE
                or code == <int>UNKNOWN_TOPIC_OR_PARTITION or code == <int>UNKNOWN_TOPIC_ID
                or code == <int>INCONSISTENT_TOPIC_ID):
            p.preferred_replica = -1
            if not self._take_leader_hint(message, p, data, now_ms):
                self.metadata.want_update()
        elif code == <int>UNKNOWN_LEADER_EPOCH:
            self.metadata.want_update()
        elif code != <int>OFFSET_NOT_AVAILABLE and code != <int>UNKNOWN_SERVER_ERROR and p.last_error != code:
            p.last_error = code
            status.code = code
            status.detail = p.name()
            status.detail.append(b": ").append(fetch_reason(code, p.topic))
            self.positions.report(p, status, offset)

    cdef void _delay(self, PartitionState* p, int64_t now_ms) noexcept nogil:
        """Remove the partition from the session until its backoff ends.

        A session answers an error immediately, each time.
        """
        p.request.on_failure(now_ms, dereference(self.backoff), self.jitter)
        self.positions.mark_dirty(p)

    cdef bint _take_leader_hint(self, FetchResponse& message, PartitionState* p, FetchResponse_PartitionData* data,
                                int64_t now_ms) noexcept nogil:
        """Take the new leader and its address from the response (KIP-951).

        Returns False when the response names no new leader.
        """
        cdef NodeAddress node
        cdef PartitionEntry* known
        cdef size_t i
        if data.current_leader.leader_id < 0 or data.current_leader.leader_epoch <= p.leader_epoch:
            return False
        for i in range(message.node_endpoints.size()):
            if message.node_endpoints[i].node_id == data.current_leader.leader_id:
                node.id = message.node_endpoints[i].node_id
                node.host = message.node_endpoints[i].host
                node.port = message.node_endpoints[i].port
                node.rack = message.node_endpoints[i].rack.value
                self.positions.cluster.put_broker(node)
                self.delegate.network.set_nodes(self.positions.cluster.brokers, now_ms)
                break
        if not self.positions.cluster.has_broker(data.current_leader.leader_id):
            return False
        known = self.positions.cluster.partition(p.topic, p.partition)
        if known != NULL:
            known.leader_id = data.current_leader.leader_id
            known.leader_epoch = data.current_leader.leader_epoch
        self.positions.set_leader(p, data.current_leader.leader_id, data.current_leader.leader_epoch)
        return True

    # ---- bad batches

    cdef void on_bad_batch(self, const BatchFailure& failure, int64_t now_ms) noexcept nogil:
        cdef PartitionState* p = failure.partition
        cdef BadBatch* bad = &p.bad_batch
        cdef Status status
        cdef bint first
        if not p.tracked or p.adopted_epoch != failure.position_epoch:
            return
        if not failure.refused:
            # Everything that N has fetched since then starts after the batch.
            p.drop_fetched()
        if p.state != FETCH_ACTIVE and p.state != FETCH_AWAIT_VALIDATION:
            return
        p.fetch_offset.store(failure.resume_offset)
        p.fetch_leader_epoch = failure.resume_leader_epoch
        if p.fetch_leader_epoch < 0:
            p.state = FETCH_ACTIVE  # without an epoch there is nothing to validate
        p.eof_reported_at = -1
        status.code = failure.status.code
        status.detail = bad_batch_text(failure)
        first = bad.offset != failure.resume_offset
        if first:
            bad.offset = failure.resume_offset
            bad.attempts = 0
            bad.nodes.clear()
        if status.code == <int>ERR_CRIT_SYS_RESOURCE:
            self._wait_for_memory(p, status, first, now_ms)
            return
        bad.attempts += 1
        if bad.nodes.empty() or bad.nodes.back() != failure.node_id:
            bad.nodes.push_back(failure.node_id)
        self.counters.bad_batches.fetch_add(1)
        if failure.permanent or bad.attempts >= MOST_ATTEMPTS:
            status.detail.append(bad_batch_remedy(failure, dereference(bad)))
            self.positions.stop(p, status, failure.offset)
        else:
            self._retry(p, status.detail, now_ms)

    cdef void _wait_for_memory(self, PartitionState* p, Status& status, bint first, int64_t now_ms) noexcept nogil:
        p.request.attempts = MOST_ATTEMPTS - 1  # not earlier than after retry.backoff.max.ms
        self._delay(p, now_ms)
        status.detail.append(b"; it is fetched again until there is memory")
        if first:
            self.positions.report(p, status, p.fetch_offset.load())
        if first or now_ms - self.memory_logged_ms >= LOG_AGAIN_MS:
            self.memory_logged_ms = now_ms
            self.background.log.push(4, b"FETCHBAD", status.detail)

    cdef void _retry(self, PartitionState* p, const string& reason, int64_t now_ms) noexcept nogil:
        cdef int32_t node = self._next_replica(p)
        cdef string text = reason
        # A response has arrived meanwhile, which counts as success and resets the attempts.
        p.request.attempts = p.bad_batch.attempts - 1
        self._delay(p, now_ms)
        self._read_from(p, node, now_ms)
        text.append(b"; fetching it again from broker ").append(to_string(<long long>p.read_node(now_ms)))
        text.append(b" in ").append(to_string(<long long>p.request.wait_ms(now_ms))).append(b" ms (attempt ")
        text.append(to_string(<long long>p.bad_batch.attempts + 1)).append(b" of ")
        text.append(to_string(<long long>MOST_ATTEMPTS)).append(b")")
        self.background.log.push(4, b"FETCHBAD", text)
        self.metadata.want_update()

    cdef int32_t _next_replica(self, PartitionState* p) noexcept nogil:
        """Return the replica after the one that sent the bad batch, in replica order.

        Returns the leader if no other replica is known. Replicas may serve consumers since Kafka 2.4 (KIP-392); an
        older one answers NOT_LEADER_OR_FOLLOWER, and the leader is used again.
        """
        cdef Replicas replicas = self.positions.cluster.replicas(p.topic, p.partition)
        cdef int32_t latest = p.bad_batch.nodes.back()
        cdef int32_t node
        cdef size_t i
        cdef size_t at = 0
        for i in range(replicas.count):
            if replicas.nodes[i] == latest:
                at = i + 1
        for i in range(replicas.count):
            node = replicas.nodes[(at + i) % replicas.count]
            if node != latest and self.positions.cluster.has_broker(node):
                return node
        return p.leader_id

    cdef void _read_from(self, PartitionState* p, int32_t node_id, int64_t now_ms) noexcept nogil:
        if node_id == p.leader_id:
            p.preferred_replica = -1
            return
        p.preferred_replica = node_id
        p.preferred_until_ms = now_ms + ELSEWHERE_MS
        self.elsewhere.push_back(TimedPartition(p, p.adopted_epoch, p.preferred_until_ms))
