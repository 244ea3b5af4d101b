"""Owns: write_statistics, the JSON of stats_cb under librdkafka's field names (STATISTICS.md).

thread: N. Never: asks a broker.

Fields about a producer's work are 0 here, as in librdkafka's consumer. Windows (`rtt`, `throttle`, `outbuf_latency`)
contain the values since the last document. Some fields are left out, because nothing here corresponds to them:
  zbuf_grow      decompression grows its block by design, so growth means nothing
  fetchq_size    a block holds the records of several partitions: fetch_buffer_bytes is the size of all of them
  committed_leader_epoch   the broker stores it, and the consumer does not need it later
  rx_ver_drops   data that a seek makes stale is mostly dropped before decoding, so its records are not counted
"""


cdef extern from *:
    """
    #include <time.h>
    #include <map>
    static inline int64_t kc_wall_seconds() { return (int64_t)time(nullptr); }
    // JSON string: characters that JSON does not allow become \\u escapes.
    static inline void kc_json_string(std::string& out, const std::string& text) {
      out += '"';
      char escaped[8];
      for (unsigned char c : text) {
        if (c == '"' || c == 92) { out += (char)92; out += (char)c; }
        else if (c < 32) { snprintf(escaped, sizeof escaped, "%cu%04x", 92, c); out += escaped; }
        else out += (char)c;
      }
      out += '"';
    }
    """
    int64_t wall_seconds "kc_wall_seconds"() nogil
    void json_string "kc_json_string"(string& out, const string& text) nogil


cdef void number(string& out, const char* name, int64_t value) noexcept nogil:
    if out.data()[out.size() - 1] != b"{":
        out.push_back(b",")
    out.push_back(b'"')
    out.append(name).append(b'":').append(to_string(<long long>value))


cdef void text(string& out, const char* name, const string& value) noexcept nogil:
    if out.data()[out.size() - 1] != b"{":
        out.push_back(b",")
    out.push_back(b'"')
    out.append(name).append(b'":')
    json_string(out, value)


cdef void truth(string& out, const char* name, bint value) noexcept nogil:
    if out.data()[out.size() - 1] != b"{":
        out.push_back(b",")
    out.push_back(b'"')
    out.append(name).append(b'":').append(b"true" if value else b"false")


cdef void open_object(string& out, const char* name) noexcept nogil:
    if out.data()[out.size() - 1] != b"{":
        out.push_back(b",")
    json_string(out, string(name))
    out.append(b":{")


cdef void write_window(string& out, const char* name, WindowStats& window) noexcept nogil:
    open_object(out, name)
    number(out, b"min", window.min)
    number(out, b"max", window.max)
    number(out, b"avg", window.average())
    number(out, b"sum", window.sum)
    number(out, b"stddev", window.deviation())
    number(out, b"p50", window.percentile(50))
    number(out, b"p75", window.percentile(75))
    number(out, b"p90", window.percentile(90))
    number(out, b"p95", window.percentile(95))
    number(out, b"p99", window.percentile(99))
    number(out, b"p99_99", window.percentile(99.99))
    number(out, b"outofrange", window.out_of_range)
    number(out, b"hdrsize", <int64_t>WindowStats.histogram_bytes())
    number(out, b"cnt", window.count)
    out.append(b"}")


# ---- brokers


cdef void write_broker(string& out, NodeStats& node, FetchSession* session, int32_t unsent, int64_t started_us,
                       int64_t now_us) noexcept nogil:
    cdef string name = node.name
    cdef WindowStats nothing_produced
    name.append(b"/").append(to_string(<long long>node.node_id) if node.node_id >= 0 else string(b"bootstrap"))
    open_object(out, name.c_str())
    text(out, b"name", name)
    number(out, b"nodeid", max(node.node_id, -1))
    text(out, b"nodename", node.name)
    text(out, b"source", string(b"learned" if node.node_id >= 0 else b"configured"))
    text(out, b"state", node.state)
    number(out, b"stateage", now_us - (1000 * node.state_since_ms if node.state_since_ms > 0 else started_us))
    number(out, b"outbuf_cnt", unsent)
    number(out, b"outbuf_msg_cnt", 0)
    number(out, b"waitresp_cnt", node.waitresp_count)
    number(out, b"waitresp_msg_cnt", 0)
    number(out, b"tx", node.tx)
    number(out, b"txbytes", node.tx_bytes)
    number(out, b"txerrs", node.tx_errors)
    # A failed request is not sent again: its manager makes a new one from its state at that time.
    number(out, b"txretries", 0)
    number(out, b"txidle", now_us - node.last_tx_us if node.last_tx_us >= 0 else -1)
    number(out, b"req_timeouts", node.req_timeouts)
    number(out, b"rx", node.rx)
    number(out, b"rxbytes", node.rx_bytes)
    number(out, b"rxerrs", node.rx_errors)
    number(out, b"rxcorriderrs", node.unmatched)
    number(out, b"rxpartial", session.partial_batches if session != NULL else 0)
    number(out, b"rxidle", now_us - node.last_rx_us if node.last_rx_us >= 0 else -1)
    number(out, b"buf_grow", 0)
    number(out, b"wakeups", node.wakeups)
    number(out, b"connects", node.connects)
    number(out, b"disconnects", node.disconnects)
    write_window(out, b"int_latency", nothing_produced)
    write_window(out, b"outbuf_latency", node.outbuf_latency_us)
    write_window(out, b"rtt", node.rtt_us)
    write_window(out, b"throttle", node.throttles_ms)
    write_requests(out, node.requests)
    write_toppars(out, session)
    out.append(b"}")


cdef void write_requests(string& out, map[int16_t, int64_t]& requests) noexcept nogil:
    cdef map[int16_t, int64_t].iterator it = requests.begin()
    open_object(out, b"req")
    while it != requests.end():
        number(out, api_name(dereference(it).first), dereference(it).second)
        preincrement(it)
    out.append(b"}")


cdef void write_toppars(string& out, FetchSession* session) noexcept nogil:
    """Write the partitions that are fetched from this broker."""
    cdef unordered_map[string, SessionTopic].iterator it
    cdef unordered_map[int32_t, SessionPartition].iterator jt
    cdef string name
    open_object(out, b"toppars")
    if session != NULL:
        it = session.topics.begin()
        while it != session.topics.end():
            jt = dereference(it).second.partitions.begin()
            while jt != dereference(it).second.partitions.end():
                name = dereference(it).first
                name.append(b"-").append(to_string(<int>dereference(jt).first))
                open_object(out, name.c_str())
                text(out, b"topic", dereference(it).first)
                number(out, b"partition", dereference(jt).first)
                out.append(b"}")
                preincrement(jt)
            preincrement(it)
    out.append(b"}")


# ---- topics


cdef const char* fetch_state(PartitionState* p) noexcept nogil:
    if p.state == FETCH_ACTIVE:
        return b"active"
    if p.state == FETCH_AWAIT_COMMITTED:
        return b"offset-wait"
    if p.state == FETCH_AWAIT_RESET:
        return b"offset-query"
    if p.state == FETCH_AWAIT_VALIDATION:
        return b"validate-epoch-wait"
    return b"stopped"


cdef int64_t query_offset(PartitionState* p) noexcept nogil:
    """Return the latest requested logical offset or time."""
    if p.reset_tail > 0:
        return OFFSET_TAIL_BASE - p.reset_tail
    return p.reset_timestamp


cdef void write_partition(string& out, FetchPositions positions, PartitionState* p) noexcept nogil:
    cdef int64_t offset = 0
    cdef int32_t leader_epoch = 0
    cdef int64_t high = p.high_watermark.load()
    cdef int64_t stable = p.last_stable_offset.load()
    cdef int64_t end = stable if positions.config.read_committed and stable >= 0 else high
    cdef int64_t committed = p.committed_offset.load()
    cdef int64_t stored, at
    cdef int32_t stored_epoch
    p.read_position(offset, leader_epoch)
    positions.subscription.lock.lock()
    stored = p.stored_offset
    stored_epoch = p.stored_leader_epoch
    positions.subscription.lock.unlock()
    at = committed if committed >= 0 else offset
    open_object(out, to_string(<int>p.partition).c_str())
    number(out, b"partition", p.partition)
    number(out, b"broker", p.session_node)
    number(out, b"leader", p.leader_id)
    truth(out, b"desired", True)
    truth(out, b"unknown", positions.cluster.partition(p.topic, p.partition) == NULL)
    number(out, b"msgq_cnt", 0)
    number(out, b"msgq_bytes", 0)
    number(out, b"xmit_msgq_cnt", 0)
    number(out, b"xmit_msgq_bytes", 0)
    number(out, b"fetchq_cnt", p.undelivered_records.load())
    text(out, b"fetch_state", string(fetch_state(p)))
    number(out, b"query_offset", query_offset(p))
    number(out, b"next_offset", p.fetch_offset.load())
    number(out, b"app_offset", offset)
    number(out, b"stored_offset", stored)
    number(out, b"stored_leader_epoch", stored_epoch)
    number(out, b"committed_offset", committed)
    # librdkafka has the field with both spellings.
    number(out, b"commited_offset", committed)
    number(out, b"eof_offset", p.eof_reported_at if p.eof_reported_at >= 0 else <int64_t>OFFSET_INVALID)
    number(out, b"lo_offset", p.low_watermark.load())
    number(out, b"hi_offset", high)
    number(out, b"ls_offset", stable)
    number(out, b"consumer_lag", max(end - at, <int64_t>0) if end >= 0 and at >= 0 else -1)
    number(out, b"consumer_lag_stored", max(end - stored, <int64_t>0) if end >= 0 and stored >= 0 else -1)
    number(out, b"leader_epoch", p.leader_epoch)
    number(out, b"txmsgs", 0)
    number(out, b"txbytes", 0)
    number(out, b"rxmsgs", p.received_records.load())
    number(out, b"rxbytes", p.received_bytes)
    number(out, b"msgs", p.received_records.load())
    number(out, b"msgs_inflight", 0)
    number(out, b"next_ack_seq", 0)
    number(out, b"next_err_seq", 0)
    number(out, b"acked_msgid", 0)
    out.append(b"}")


cdef void open_topic(string& out, FetchPositions positions, const string& name, int64_t now_ms) noexcept nogil:
    cdef TopicEntry* known = positions.cluster.topic(name)
    cdef WindowStats nothing_produced
    cdef unordered_map[string, int64_t].iterator since = positions.interest_since_ms.find(name)
    open_object(out, name.c_str())
    text(out, b"topic", name)
    if since != positions.interest_since_ms.end():
        number(out, b"age", now_ms - dereference(since).second)
    number(out, b"metadata_age", now_ms - known.updated_ms if known != NULL else -1)
    write_window(out, b"batchsize", nothing_produced)
    write_window(out, b"batchcnt", nothing_produced)
    open_object(out, b"partitions")


cdef void write_topics(string& out, FetchPositions positions, int64_t now_ms) noexcept nogil:
    """Write partitions grouped by topic, both in order."""
    cdef vector[PartitionState*] sorted_partitions = positions.tracked
    cdef PartitionState* p
    cdef string topic
    cdef bint any_topic = False
    sort_partitions(sorted_partitions)
    open_object(out, b"topics")
    for p in sorted_partitions:
        if not any_topic or not (p.topic == topic):
            if any_topic:
                out.append(b"}}")
            any_topic = True
            topic = p.topic
            open_topic(out, positions, topic, now_ms)
        write_partition(out, positions, p)
    if any_topic:
        out.append(b"}}")
    out.append(b"}")


cdef extern from *:
    """
    #include <algorithm>
    static inline void kc_sort_partitions(std::vector<kc::PartitionState*>& v) {
      std::sort(v.begin(), v.end(), [](const kc::PartitionState* a, const kc::PartitionState* b) {
        return a->topic != b->topic ? a->topic < b->topic : a->partition < b->partition;
      });
    }
    """
    void sort_partitions "kc_sort_partitions"(vector[PartitionState*]&) nogil


# ---- the whole document


cdef string write_statistics(FetchSender sender, BackgroundEventQueue* background, const string& name,
                             const string& client_id, int64_t started_us, int64_t now_us) noexcept nogil:
    cdef vector[NodeStats] nodes
    cdef FetchCounters* counters = sender.counters
    cdef string out = string(b"{")
    cdef FetchSession* session
    cdef size_t i
    cdef int64_t tx = 0, tx_bytes = 0, rx = 0, rx_bytes = 0
    sender.delegate.network.collect_stats(nodes)
    text(out, b"name", name)
    text(out, b"client_id", client_id)
    text(out, b"type", string(b"consumer"))
    number(out, b"ts", now_us)
    number(out, b"time", wall_seconds())
    number(out, b"age", now_us - started_us)
    number(out, b"replyq", <int64_t>background.size())
    number(out, b"msg_cnt", 0)
    number(out, b"msg_size", 0)
    number(out, b"msg_max", 0)
    number(out, b"msg_size_max", 0)
    number(out, b"simple_cnt", 0)
    number(out, b"metadata_cache_cnt", <int64_t>sender.positions.cluster.topics.size())
    number(out, b"fetch_buffer_bytes", sender.pool.live_bytes())
    number(out, b"fetch_reserved_bytes", counters.reserved_bytes.load())
    number(out, b"fetch_buffer_records", counters.undelivered_records.load())
    number(out, b"fetches", counters.fetches.load())
    number(out, b"fetch_stalls", counters.stalls.load())
    open_object(out, b"brokers")
    for i in range(nodes.size()):
        tx += nodes[i].tx
        tx_bytes += nodes[i].tx_bytes
        rx += nodes[i].rx
        rx_bytes += nodes[i].rx_bytes
        it = sender.sessions.find(nodes[i].node_id)
        session = dereference(it).second if it != sender.sessions.end() else NULL
        write_broker(out, nodes[i], session, sender.delegate.unsent_to(nodes[i].node_id), started_us, now_us)
    out.append(b"}")
    write_topics(out, sender.positions, now_us // 1000)
    number(out, b"tx", tx)
    number(out, b"tx_bytes", tx_bytes)
    number(out, b"rx", rx)
    number(out, b"rx_bytes", rx_bytes)
    number(out, b"txmsgs", 0)
    number(out, b"txmsg_bytes", 0)
    number(out, b"rxmsgs", counters.records.load())
    number(out, b"rxmsg_bytes", counters.fetched_bytes.load())
    out.append(b"}")
    return out
