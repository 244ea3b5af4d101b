"""Owns: MetadataRequestManager: the broker list and the topics of the assignment, and list_topics.

thread: N. Never: has more than one request for the assignment's topics in flight, empties the broker list because a
response names no broker.

Per-topic errors of a Metadata response:
  UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID  reported once per partition, asked again with backoff
  LEADER_NOT_AVAILABLE                          asked again with backoff
  INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED, others   reported once, asked again with backoff
Topics that were not requested are ignored. A response that cannot be read, lists more than types.hpp allows, has a
broker with a negative id or a topic with a NUL in its name, is reported once and requested again, from another broker
if there is one. "reported": to the application.
Top level: REBOOTSTRAP_REQUIRED (KIP-1102) drops all brokers and returns to the bootstrap list. So does this answer to
ApiVersions (KIP-1242).
"""


cdef extern from * nogil:
    """
    #include <malloc.h>
    // glibc keeps freed memory: the next response of the same size would not fit into its pieces.
    static inline void kc_return_memory() {
    #ifdef __GLIBC__
      malloc_trim(0);
    #endif
    }
    static inline int64_t kc_count_partitions(const kc::MetadataResponse& message) {
      size_t count = 0;
      for (const auto& topic : message.topics) count += topic.partitions.size();
      return static_cast<int64_t>(count);
    }
    static inline bool kc_has_nul_in_a_name(const kc::MetadataResponse& message) {
      for (const auto& topic : message.topics) {
        if (!topic.name.is_null && topic.name.value.find('\\0') != std::string::npos) return true;
      }
      return false;
    }
    static inline void kc_free_partitions(kc::MetadataResponse_MetadataResponseTopic& topic) {
      std::vector<kc::MetadataResponse_MetadataResponsePartition>().swap(topic.partitions);
    }
    """
    void return_memory "kc_return_memory"()
    int64_t count_partitions "kc_count_partitions"(const MetadataResponse& message)
    bint has_nul_in_a_name "kc_has_nul_in_a_name"(const MetadataResponse& message)
    void free_partitions "kc_free_partitions"(MetadataResponse_MetadataResponseTopic& topic)

cdef enum:
    # For a response of at least this size, return the memory to the system.
    LARGE_RESPONSE = 1 << 20
    KIND_UPDATE = 1      # the assignment's topics
    KIND_LIST = 2        # list_topics
    # Responses in a row with an id that a topic had before, until it counts again: the newer id may have been the wrong
    # one.
    MOST_FORMER_IDS = 4
    MISROUTED_PAUSE_MS = 1000       # doubles while it goes on: a rebootstrap ends the connections of all brokers
    MISROUTED_LONGEST_MS = 60000


cdef Status check(const MetadataResponse& message) noexcept nogil:
    """Return what makes a decoded response unusable; ok if nothing does."""
    cdef string detail
    cdef size_t i
    if count_partitions(message) > MAX_PARTITIONS:
        detail = string(b"MetadataResponse: field topics: ")
        detail.append(to_string(<long long>count_partitions(message))).append(b" partitions, but at most ")
        detail.append(to_string(<long long>MAX_PARTITIONS)).append(b" are accepted")
        return Status(<int>ERR_BAD_MSG, detail)
    for i in range(message.brokers.size()):
        # The client's names for "no broker" (-1) and for the addresses of bootstrap.servers. With a broker -1, there
        # would be a connection and no broker to send to
        # (test_an_answer_with_a_negative_broker_id_changes_nothing_and_is_asked_again).
        if message.brokers[i].node_id < 0:
            detail = string(b"MetadataResponse: field brokers: node_id ")
            detail.append(to_string(<long long>message.brokers[i].node_id)).append(b" is negative")
            return Status(<int>ERR_BAD_MSG, detail)
    if has_nul_in_a_name(message):
        # A TopicPartition cannot have it.
        return Status(<int>ERR_BAD_MSG, string(b"MetadataResponse: field topics: a name contains a NUL character"))
    return Status()


@cython.no_gc
cdef class MetadataRequestManager(RequestManager):
    def __cinit__(self, ManagerContext context):
        self.update_wanted = True

    def __dealloc__(self):
        cdef TopicMetadataEvent* event
        for event in self.waiting:
            event.release()
        it = self.asked.begin()
        while it != self.asked.end():
            dereference(it).second.release()
            preincrement(it)

    cdef void want_update(self) noexcept nogil:
        """Ask for metadata after a sign that leaders have moved.

        The answer to a request in flight counts too.
        """
        if not self.state.in_flight:
            self.update_wanted = True

    cdef void clear_backoff(self) noexcept nogil:
        self.news.on_success()

    cdef uint64_t want_news(self, int64_t now_ms) noexcept nogil:
        if self.has_metadata and now_ms - self.updated_ms < self.backoff.retry_backoff_ms:
            return self.updates
        self.clear_backoff()
        self.want_update()
        return self.updates + 1

    cdef void want_all_topics(self, bint wanted) noexcept nogil:
        """Ask for all topics, because the client matches patterns.

        A request in flight does not count: it may be older.
        """
        self.all_topics_wanted = wanted
        self.all_topics_known = False
        self.wanted_since += 1
        if wanted:
            self.topics_wanted = True

    cdef void ask(self, TopicMetadataEvent* event) noexcept nogil:
        """Answer list_topics; takes over one reference."""
        self.waiting.push_back(event)
        self.lists.clear_backoff()

    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        cdef int64_t wait = self._poll_lists(now_ms)
        cdef int64_t due
        if self.large_response:
            # The response was freed after on_response().
            self.large_response = False
            return_memory()
        if self.positions.interest_changed:
            self.positions.interest_changed = False
            self.update_wanted = True
            self.topics_wanted = True
            self.clear_backoff()
        self._check_reachable(now_ms)
        if self.state.in_flight:
            return wait
        due = max(self._due_ms(now_ms), self.state.not_before_ms)
        if now_ms < due:
            return min(wait, due - now_ms)
        self._send_update(now_ms)
        return wait

    cdef int64_t _poll_lists(self, int64_t now_ms) noexcept nogil:
        cdef TopicMetadataEvent* event
        if self.waiting.empty():
            return INT64_MAX
        if now_ms < self.lists.not_before_ms:
            return self.lists.wait_ms(now_ms)
        while not self.waiting.empty():
            event = self.waiting.front()
            self.waiting.pop_front()
            self._send_list(event, now_ms)
        return INT64_MAX

    cdef int64_t _due_ms(self, int64_t now_ms) noexcept nogil:
        """Return the time of the next update.

        New topics: immediately. Other updates: once per retry backoff for all callers together, and less often while
        they bring no change. Otherwise: at the maximum age.
        """
        if not self.has_metadata or self.topics_wanted:
            return 0
        if self.update_wanted:
            if now_ms - self.news.not_before_ms > self.backoff.retry_backoff_max_ms:
                # No update was needed for a while, so this one has a new cause: reset the backoff.
                self.news.on_success()
            return max(self.updated_ms + self.backoff.retry_backoff_ms, self.news.not_before_ms)
        return self.updated_ms + self.positions.config.metadata_max_age_ms

    cdef void _send_update(self, int64_t now_ms) noexcept nogil:
        cdef BodyOf[MetadataRequest]* body = new BodyOf[MetadataRequest]()
        cdef MetadataRequest_MetadataRequestTopic topic
        if self.all_topics_wanted:
            body.message.topics.set_null()
        else:
            body.message.topics.set_present()
            it = self.positions.interest.begin()
            while it != self.positions.interest.end():
                topic.name.set(dereference(it).first)
                body.message.topics.value.push_back(topic)
                preincrement(it)
        body.message.allow_auto_topic_creation = (
            self.positions.config.allow_auto_create_topics and not self.all_topics_wanted)
        # Version 0 cannot ask for "no topics": its empty list means all
        # (test_null_topics_are_allowed_from_metadata_v1).
        body.lowest = 1
        self.background.log.write(7, DBG_METADATA, b"METADATA", b"requesting metadata for %s%zu topics",
                                  b"all topics, in use: " if self.all_topics_wanted else b"",
                                  self.positions.interest.size())
        self.state.on_send()
        self.news_asked = self.update_wanted and not self.topics_wanted
        self.update_wanted = False
        self.topics_wanted = False
        self.send(body, ANY_NODE, CHANNEL_CONTROL, KIND_UPDATE, now_ms, INT64_MAX).cookie = (
            self.wanted_since if self.all_topics_wanted else 0)

    cdef void _send_list(self, TopicMetadataEvent* event, int64_t now_ms) noexcept nogil:
        cdef BodyOf[MetadataRequest]* body = new BodyOf[MetadataRequest]()
        cdef MetadataRequest_MetadataRequestTopic topic
        cdef size_t i
        if event.all_topics:
            body.message.topics.set_null()
        else:
            body.message.topics.set_present()
            for i in range(event.topics.size()):
                topic.name.set(event.topics[i])
                body.message.topics.value.push_back(topic)
        body.message.allow_auto_topic_creation = (
            self.positions.config.allow_auto_create_topics and not event.all_topics)
        body.lowest = 1
        self.asked[self.send(body, ANY_NODE, CHANNEL_CONTROL, KIND_LIST, now_ms, event.deadline_ms).cookie] = event

    cdef void _take_losses(self, int64_t now_ms) noexcept nogil:
        """Report lost and failed connections to error_cb.

        After a lost connection, ask for metadata: the leaders on that broker may have moved. A broker that is not the
        one meant (KIP-1242) makes the client return to the bootstrap list. If the addresses that brokers advertise are
        wrong, this helps only until the next metadata: the pause keeps it from being a loop.
        """
        cdef BackgroundEvent event
        cdef bint misrouted = False
        cdef size_t i
        self.losses.clear()
        self.delegate.network.take_losses(self.losses)
        for i in range(self.losses.size()):
            misrouted = misrouted or self.losses[i].status.code == <int>REBOOTSTRAP_REQUIRED
            self.last_cause = self.losses[i].status.detail
            if not self.losses[i].repeated:
                event.type = BACKGROUND_ERROR
                event.status = self.losses[i].status
                event.broker_id = self.losses[i].node_id
                self.background.add(event)
            if self.losses[i].was_ready:
                self.clear_backoff()
                self.want_update()
        if misrouted and now_ms >= self.misrouted_again_ms:
            if now_ms - self.misrouted_again_ms > MISROUTED_LONGEST_MS:
                self.misrouted_pause_ms = 0
            self.misrouted_pause_ms = min(max(2 * self.misrouted_pause_ms, <int64_t>MISROUTED_PAUSE_MS),
                                          <int64_t>MISROUTED_LONGEST_MS)
            self.misrouted_again_ms = now_ms + self.misrouted_pause_ms
            self._rebootstrap(now_ms, b"a broker is not the one that metadata names")

    cdef void _check_reachable(self, int64_t now_ms) noexcept nogil:
        """Report once that no broker answers, and return to the bootstrap list (KIP-899).

        Only while a request is needed. Immediately when every known broker has refused, else after
        metadata.recovery.rebootstrap.trigger.ms (KIP-1102).
        """
        cdef BackgroundEvent event
        cdef bint connected
        cdef bint gone = False
        if not self.state.in_flight and self.asked.empty() and self.failing_since_ms == 0:
            return
        connected = self.delegate.network.any_connected()
        if connected:
            self.all_down_reported = False
            self.last_cause.clear()
        elif self.state.in_flight or not self.asked.empty():
            gone = (self.delegate.network.least_loaded_node(now_ms) == ANY_NODE
                    and not self.delegate.network.names_pending())
        if not connected and not self.all_down_reported and (gone or self.state.attempts > 1):
            self.all_down_reported = True
            event.type = BACKGROUND_ERROR
            event.status = Status(<int>ERR_ALL_BROKERS_DOWN, unreachable_reason(self.last_cause))
            self.background.add(event)
        if not self.positions.config.rebootstrap or self.positions.cluster.brokers.empty():
            return
        if gone or (not connected and self.state.attempts > 2) or (
                self.failing_since_ms != 0
                and now_ms - self.failing_since_ms >= self.positions.config.rebootstrap_trigger_ms):
            self._rebootstrap(now_ms, b"no known broker answers")

    cdef void _rebootstrap(self, int64_t now_ms, const char* why) noexcept nogil:
        self.background.log.write(5, 0, b"REBOOTSTRAP", b"returning to the bootstrap list: %s", why)
        self.positions.cluster.brokers.clear()
        self.delegate.network.rebootstrap(now_ms)
        self.failing_since_ms = now_ms
        self.update_wanted = True
        self.clear_backoff()

    cdef void on_failure(self, Request* request, const Status& status, int64_t now_ms) noexcept nogil:
        cdef TopicMetadataEvent* event
        self.background.log.write(7, DBG_METADATA, b"METADATA", b"request failed: %s", status.detail.c_str())
        if not status.detail.empty() and status.code != <int>ERR_TIMED_OUT:
            self.last_cause = status.detail
        if request.kind == KIND_UPDATE and self.failing_since_ms == 0:
            # Not after a list_topics, which has a separate deadline: the brokers may work and the list may be long
            # (test_many_lists_that_time_out_do_not_start_the_clock).
            self.failing_since_ms = now_ms
        if status.code == <int>ERR_UNSUPPORTED_FEATURE:
            self._report_unsupported(status)
            if request.kind == KIND_LIST:
                event = self._take_asked(request.cookie)
                if event != NULL:
                    event.complete(status)
                    event.release()
                return
        self._failed(request, now_ms)

    cdef void _report_unsupported(self, const Status& status) noexcept nogil:
        cdef BackgroundEvent event
        if not self.unsupported_reported:
            self.unsupported_reported = True
            event.type = BACKGROUND_ERROR
            event.status = status
            self.background.add(event)

    cdef void _failed(self, Request* request, int64_t now_ms) noexcept nogil:
        """Ask again with backoff; for a list_topics only until its deadline."""
        cdef TopicMetadataEvent* event
        if request.kind == KIND_UPDATE:
            self.state.on_failure(now_ms, dereference(self.backoff), self.jitter)
            self.update_wanted = True
            return
        event = self._take_asked(request.cookie)
        if event == NULL:
            return
        if now_ms >= self.lists.not_before_ms:
            # Lists that fail together wait together.
            self.lists.on_failure(now_ms, dereference(self.backoff), self.jitter)
        self.waiting.push_back(event)
        self._end_late_calls(now_ms)

    cdef TopicMetadataEvent* _take_asked(self, uint64_t cookie) noexcept nogil:
        cdef TopicMetadataEvent* event
        it = self.asked.find(cookie)
        if it == self.asked.end():
            return NULL
        event = dereference(it).second
        self.asked.erase(it)
        return event

    cdef void expire(self, int64_t now_ms) noexcept nogil:
        self._take_losses(now_ms)
        self._end_late_calls(now_ms)

    cdef void _end_late_calls(self, int64_t now_ms) noexcept nogil:
        cdef TopicMetadataEvent* event
        cdef size_t n = self.waiting.size()
        for _ in range(n):
            event = self.waiting.front()
            self.waiting.pop_front()
            if now_ms >= event.deadline_ms:
                event.complete(self._too_late())
                event.release()
            else:
                self.waiting.push_back(event)
        it = self.asked.begin()
        while it != self.asked.end():
            event = dereference(it).second
            if now_ms >= event.deadline_ms:
                event.complete(self._too_late())
                event.release()
                it = self.asked.erase(it)
            else:
                preincrement(it)

    cdef Status _too_late(self) noexcept nogil:
        cdef string detail = string(b"no broker answered the Metadata request in time")
        if not self.unusable.ok():
            detail.append(b" with a usable response: ").append(self.unusable.detail)
        else:
            detail.append(b": check bootstrap.servers, and the log for failed connections")
        return Status(<int>ERR_TIMED_OUT, detail)

    cdef int64_t next_deadline_ms(self) noexcept nogil:
        cdef int64_t earliest = INT64_MAX
        cdef TopicMetadataEvent* event
        for event in self.waiting:
            earliest = min(earliest, event.deadline_ms)
        it = self.asked.begin()
        while it != self.asked.end():
            earliest = min(earliest, dereference(it).second.deadline_ms)
            preincrement(it)
        return earliest

    cdef void refuse(self, const Status& why, int64_t now_ms) noexcept nogil:
        cdef TopicMetadataEvent* event
        while not self.waiting.empty():
            event = self.waiting.front()
            self.waiting.pop_front()
            event.complete(why)
            event.release()
        it = self.asked.begin()
        while it != self.asked.end():
            dereference(it).second.complete(why)
            dereference(it).second.release()
            preincrement(it)
        self.asked.clear()

    cdef void on_response(self, Request* request, Response* response, int64_t now_ms) noexcept nogil:
        cdef MetadataResponse message
        cdef Reader reader = Reader(response.body, response.length)
        cdef TopicMetadataEvent* event
        cdef Status why
        self.large_response = response.length > LARGE_RESPONSE
        message.decode(reader, response.version)
        why = check(message) if reader.ok() else reader.status()
        if not self.readable(why, response, message.throttle_time_ms, b"METADATA", now_ms):
            self._refuse_response(why, request, response.node_id, now_ms)
            return
        if message.error_code == <int>REBOOTSTRAP_REQUIRED:
            self._rebootstrap(now_ms, b"a broker requires it")
            self._failed(request, now_ms)
            return
        if message.brokers.empty():
            # A broker that is starting does not know the cluster yet.
            self._failed(request, now_ms)
            return
        self.failing_since_ms = 0
        self.all_down_reported = False
        self.unsupported_reported = False
        self.unusable = Status()
        self.background.log.write(7, DBG_METADATA, b"METADATA", b"broker %d answered: %zu brokers, %zu topics",
                                  response.node_id, message.brokers.size(), message.topics.size())
        self._take_brokers(message, now_ms)
        if request.kind == KIND_UPDATE:
            self.state.on_success()
            self.has_metadata = True
            self.updated_ms = now_ms
            self._take_topics(message, request.cookie != 0, now_ms)
            if request.cookie == self.wanted_since and self.all_topics_wanted:
                self.all_topics_known = True
            self.updates += 1
        else:
            self.lists.on_success()
            event = self._take_asked(request.cookie)
            if event != NULL:
                event.keep(dereference(response))
                event.orig_broker_name = self.delegate.network.node_name(response.node_id)
                event.complete(Status())
                event.release()

    cdef void _refuse_response(self, const Status& why, Request* request, int32_t node_id,
                               int64_t now_ms) noexcept nogil:
        cdef BackgroundEvent event
        if self.unusable.ok():
            event.type = BACKGROUND_ERROR
            event.status = why
            event.broker_id = node_id
            self.background.add(event)
        self.unusable = why
        self._failed(request, now_ms)

    cdef void _take_brokers(self, MetadataResponse& message, int64_t now_ms) noexcept nogil:
        cdef size_t i
        cdef unordered_map[int32_t, int32_t] before
        cdef NodeAddress node
        self.brokers_changed = self.positions.cluster.brokers.size() != message.brokers.size()
        for i in range(self.positions.cluster.brokers.size()):
            before[self.positions.cluster.brokers[i].id] = 1
        self.listed.clear()
        for i in range(message.brokers.size()):
            self.listed[message.brokers[i].node_id] = True
            if before.count(message.brokers[i].node_id) == 0:
                self.brokers_changed = True
        self.positions.cluster.brokers.clear()
        self.racks = False
        for i in range(message.brokers.size()):
            node.id = message.brokers[i].node_id
            node.host = message.brokers[i].host
            node.port = message.brokers[i].port
            node.rack = message.brokers[i].rack.value
            self.racks = self.racks or not node.rack.empty()
            self.positions.cluster.brokers.push_back(node)
        if not message.cluster_id.is_null:
            if self.positions.cluster.cluster_id != message.cluster_id.value:
                self.background.log.write(7, DBG_GENERIC | DBG_METADATA, b"CLUSTERID", b"cluster id \"%s\" -> \"%s\"",
                                          self.positions.cluster.cluster_id.c_str(),
                                          message.cluster_id.value.c_str())
            self.positions.cluster.cluster_id = message.cluster_id.value
        self.positions.cluster.controller_id = message.controller_id
        self.delegate.network.set_cluster(self.positions.cluster.cluster_id)
        self.delegate.network.set_nodes(self.positions.cluster.brokers, now_ms)

    cdef void _take_topics(self, MetadataResponse& message, bint of_all, int64_t now_ms) noexcept nogil:
        cdef MetadataResponse_MetadataResponseTopic absent
        cdef TopicEntry* known
        cdef size_t i
        cdef bint again = False
        cdef bint changed = self.brokers_changed
        cdef bint wanted
        self.response_number += 1
        for i in range(message.topics.size()):
            wanted = self.positions.interest.count(message.topics[i].name.value) != 0
            if wanted and self._is_news(message.topics[i]):
                changed = True
                self.background.log.write(7, DBG_TOPIC | DBG_METADATA, b"TOPIC", b"%s: %zu partitions, error %d",
                                          message.topics[i].name.value.c_str(), message.topics[i].partitions.size(),
                                          <int>message.topics[i].error_code)
            # A topic without partitions and without an error cannot exist in Kafka.
            if wanted or (of_all and (message.topics[i].partitions.size() != 0 or message.topics[i].error_code != 0)):
                if not self._take_topic(message.topics[i], now_ms) and wanted:
                    again = True
            # The cache now holds the partitions: free those of the response, so that memory holds them only once.
            free_partitions(message.topics[i])
        if of_all:
            self._forget_unnamed()
            absent.error_code = <int>UNKNOWN_TOPIC_OR_PARTITION
            it = self.positions.interest.begin()
            while it != self.positions.interest.end():
                known = self.positions.cluster.topic(dereference(it).first)
                if known == NULL or known.update != self.response_number:
                    absent.name.set(dereference(it).first)
                    changed = changed or self._is_news(absent)
                    self._take_topic(absent, now_ms)
                    message.topics.push_back(absent)
                    again = True
                preincrement(it)
        self.positions.on_metadata(now_ms)
        if self._report_missing(message, now_ms):
            again = True
        if again:
            self.update_wanted = True
        # A response without the expected change is a failure: without this backoff, a missing topic would be requested
        # ten times per second. Any change ends it (tests/unit/managers/test_metadata_backoff.py).
        if changed or not (again or self.news_asked):
            self.news.on_success()
        else:
            self.news.on_failure(now_ms, dereference(self.backoff), self.jitter)

    cdef bint _is_news(self, MetadataResponse_MetadataResponseTopic& found) noexcept nogil:
        """Whether the answer changes a topic: another error, partition or leader."""
        cdef TopicEntry* known = self.positions.cluster.topic(found.name.value)
        cdef PartitionEntry* before
        cdef size_t i
        if known == NULL or known.error != found.error_code:
            return True
        if found.error_code != 0:
            return False
        if known.partitions.size() != found.partitions.size():
            return True
        for i in range(found.partitions.size()):
            before = self.positions.cluster.partition(found.name.value, found.partitions[i].partition_index)
            if before == NULL or before.error != found.partitions[i].error_code:
                return True
            if found.partitions[i].leader_epoch >= 0 and found.partitions[i].leader_epoch < before.leader_epoch:
                # Older than the cache.
                continue
            if (before.leader_id != found.partitions[i].leader_id
                    or before.leader_epoch != found.partitions[i].leader_epoch):
                return True
        return False

    cdef void _forget_unnamed(self) noexcept nogil:
        """Mark topics that a response with all topics does not name: they do not exist."""
        cdef vector[string] gone
        cdef size_t i
        it = self.positions.cluster.topics.begin()
        while it != self.positions.cluster.topics.end():
            if (dereference(it).second.update != self.response_number
                    and self.positions.interest.count(dereference(it).first) == 0):
                gone.push_back(dereference(it).first)
            preincrement(it)
        for i in range(gone.size()):
            self.positions.cluster.forget(gone[i])

    cdef bint _take_topic(self, MetadataResponse_MetadataResponseTopic& found, int64_t now_ms) noexcept nogil:
        """Take a topic of the response; False when it must be requested again soon."""
        cdef TopicEntry* entry
        cdef PartitionEntry p
        cdef Uuid id = found.topic_id
        cdef size_t i
        cdef bint complete = True
        if found.name.is_null:
            return True
        if found.error_code != 0:
            self._take_topic_error(found, now_ms)
            return False
        entry = self.positions.cluster.topic(found.name.value)
        if entry != NULL and id.is_zero():
            # In a cluster upgrade, an old broker does not send ids.
            id = entry.id
        if entry != NULL and not (entry.id == id) and not entry.id.is_zero():
            if self.positions.cluster.is_retired(id) and entry.former_ids < MOST_FORMER_IDS:
                # The response is of a broker that has not learned of the new topic. Ask again.
                entry.former_ids += 1
                entry.update = self.response_number
                return False
            self.positions.cluster.retire(entry.id, id)
            self._recreated(found.name.value)
        elif entry != NULL:
            self._keep_newer_leaders(found, entry)
        entry = self.positions.cluster.renew(found.name.value, id)
        entry.update = self.response_number
        entry.internal = found.is_internal
        entry.updated_ms = now_ms
        entry.partitions.reserve(found.partitions.size())
        for i in range(found.partitions.size()):
            p.id = found.partitions[i].partition_index
            p.error = found.partitions[i].error_code
            p.leader_id = found.partitions[i].leader_id
            p.leader_epoch = found.partitions[i].leader_epoch
            if p.leader_id < 0 or p.error == <int>LEADER_NOT_AVAILABLE:
                complete = False
            entry.partitions.add(p, found.partitions[i].replica_nodes)
        entry.partitions.seal()
        return complete

    cdef void _keep_newer_leaders(self, MetadataResponse_MetadataResponseTopic& found,
                                  TopicEntry* known) noexcept nogil:
        """Keep newer leaders: a newer response or a leader hint may be in the cache.

        But not one that the cluster does not list: no broker could be asked, and the partition would wait for an epoch
        above that one (test_an_older_leader_epoch_counts_if_the_newer_leader_is_no_broker).
        """
        cdef PartitionEntry* before
        cdef size_t i
        for i in range(found.partitions.size()):
            if found.partitions[i].leader_epoch < 0:
                continue
            before = known.partitions.find(found.partitions[i].partition_index)
            if (before != NULL and before.leader_epoch > found.partitions[i].leader_epoch
                    and (before.leader_id < 0 or self.listed.count(before.leader_id) != 0)):
                found.partitions[i].leader_id = before.leader_id
                found.partitions[i].leader_epoch = before.leader_epoch

    cdef void _take_topic_error(self, MetadataResponse_MetadataResponseTopic& found, int64_t now_ms) noexcept nogil:
        """Keep the known topic, above all its id, which shows whether it was recreated."""
        cdef TopicEntry* known = self.positions.cluster.topic(found.name.value)
        if known == NULL:
            known = self.positions.cluster.renew(found.name.value, Uuid())
        known.update = self.response_number
        known.error = found.error_code
        known.updated_ms = now_ms
        if found.error_code == <int>UNKNOWN_TOPIC_OR_PARTITION:
            known.partitions.clear()

    cdef void _recreated(self, const string& topic) noexcept nogil:
        """Reset partitions of a recreated topic: old epochs and offsets are invalid."""
        cdef PartitionState* p
        self.background.log.write(5, 0, b"TOPICID", b"topic %s was recreated: its id changed", topic.c_str())
        for p in self.positions.tracked:
            if p.topic == topic:
                p.leader_epoch = -1
                p.leader_id = -1
                p.preferred_replica = -1
                p.fetch_leader_epoch = -1
                p.eof_reported_at = -1
                p.drop_fetched()
                p.request.on_given_up()
                if p.state == FETCH_AWAIT_RESET or p.state == FETCH_AWAIT_COMMITTED:
                    continue
                self.positions.reset_by_policy(p, <int>UNKNOWN_TOPIC_ID, string(b"the topic was recreated"),
                                               p.fetch_offset.load(), 0)

    cdef bint _report_missing(self, MetadataResponse& message, int64_t now_ms) noexcept nogil:
        """Report assigned partitions that do not exist, once; True when there are any."""
        cdef PartitionState* p
        cdef unordered_map[string, int32_t] errors
        cdef size_t i
        cdef int32_t error
        cdef string detail
        cdef bint any_missing = False
        for i in range(message.topics.size()):
            if self.positions.interest.count(message.topics[i].name.value) != 0:
                errors[message.topics[i].name.value] = message.topics[i].error_code
        for p in self.positions.tracked:
            if errors.count(p.topic) == 0:
                continue
            error = errors[p.topic]
            if error == <int>LEADER_NOT_AVAILABLE:
                continue
            if error == 0:
                if self.positions.cluster.partition(p.topic, p.partition) != NULL:
                    if p.last_error == <int>UNKNOWN_TOPIC_OR_PARTITION:
                        p.last_error = 0
                    continue
                error = <int>UNKNOWN_TOPIC_OR_PARTITION
            any_missing = True
            p.leader_id = -1
            self.positions.mark_dirty(p)
            if p.last_error != error:
                p.last_error = error
                if error == <int>UNKNOWN_TOPIC_OR_PARTITION:
                    detail = string(b"partition ")
                    detail.append(p.name()).append(b" does not exist")
                    if errors[p.topic] != 0:
                        detail.append(b": check the topic's name, or create the topic")
                else:
                    detail = p.name()
                    detail.append(b": ").append(topic_reason(error, p.topic))
                self.positions.report(p, Status(error, detail), OFFSET_INVALID)
        return any_missing
