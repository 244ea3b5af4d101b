"""Owns: write_statistics, the JSON of stats_cb under librdkafka's field names (STATISTICS.md), for what a consumer has.

thread: N. Never: asks anything of a broker. Fields of producers and of consumer groups are left out.
"""
from kconsumer._core.base.cpp cimport int32_t, to_string, vector
from kconsumer._core.network.request cimport NodeStats
from kconsumer._core.state.partition_state cimport (
    FETCH_ACTIVE,
    FETCH_AWAIT_COMMITTED,
    FETCH_AWAIT_RESET,
    FETCH_AWAIT_VALIDATION,
    PartitionState,
)

cdef extern from *:
    """
    #include <time.h>
    #include <map>
    static inline int64_t kc_wall_seconds() { return (int64_t)time(nullptr); }
    // JSON string: what JSON cannot hold as it is becomes \\u escapes.
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


cdef void open_object(string& out, const char* name) noexcept nogil:
    if out.data()[out.size() - 1] != b"{":
        out.push_back(b",")
    json_string(out, string(name))
    out.append(b":{")


cdef void write_broker(string& out, NodeStats& node, const char* source) noexcept nogil:
    cdef string name = node.name
    name.append(b"/").append(to_string(<long long>node.node_id) if node.node_id >= 0 else string(b"bootstrap"))
    open_object(out, name.c_str())
    text(out, b"name", name)
    number(out, b"nodeid", max(node.node_id, -1))
    text(out, b"nodename", node.name)
    text(out, b"source", string(source))
    text(out, b"state", node.state)
    number(out, b"waitresp_cnt", node.waitresp_count)
    number(out, b"tx", node.tx)
    number(out, b"txbytes", node.tx_bytes)
    number(out, b"txerrs", node.tx_errors)
    number(out, b"req_timeouts", node.req_timeouts)
    number(out, b"rx", node.rx)
    number(out, b"rxbytes", node.rx_bytes)
    number(out, b"rxerrs", node.rx_errors)
    number(out, b"connects", node.connects)
    number(out, b"disconnects", node.disconnects)
    open_object(out, b"rtt")
    number(out, b"avg", node.rtt_us_sum // node.rtt_count if node.rtt_count > 0 else 0)
    number(out, b"sum", node.rtt_us_sum)
    number(out, b"cnt", node.rtt_count)
    out.append(b"}")
    open_object(out, b"throttle")
    number(out, b"sum", node.throttle_ms)
    out.append(b"}}")


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


cdef void write_partition(string& out, PartitionState* p) noexcept nogil:
    cdef int64_t offset = 0
    cdef int32_t leader_epoch = 0
    cdef int64_t high = p.high_watermark.load()
    cdef int64_t stable = p.last_stable_offset.load()
    p.read_position(offset, leader_epoch)
    open_object(out, to_string(<int>p.partition).c_str())
    number(out, b"partition", p.partition)
    number(out, b"broker", p.session_node)
    number(out, b"leader", p.leader_id)
    text(out, b"fetch_state", string(fetch_state(p)))
    number(out, b"next_offset", p.fetch_offset.load())
    number(out, b"app_offset", offset)
    number(out, b"lo_offset", p.low_watermark.load())
    number(out, b"hi_offset", high)
    number(out, b"ls_offset", stable)
    number(out, b"consumer_lag", high - offset if high >= 0 and offset >= 0 else -1)
    number(out, b"leader_epoch", p.leader_epoch)
    out.append(b"}")


cdef void write_topics(string& out, FetchPositions positions) noexcept nogil:
    """Partitions grouped by topic, both in order."""
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
            open_object(out, topic.c_str())
            text(out, b"topic", topic)
            open_object(out, b"partitions")
        write_partition(out, p)
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


cdef string write_statistics(NetworkClientDelegate delegate, FetchPositions positions, FetchCounters* counters,
                             BlockPool* pool, const string& client_id, int64_t started_us,
                             int64_t now_us) noexcept nogil:
    cdef vector[NodeStats] nodes
    cdef string out = string(b"{")
    cdef size_t i
    cdef int64_t tx = 0, tx_bytes = 0, rx = 0, rx_bytes = 0
    delegate.network.collect_stats(nodes)
    text(out, b"name", client_id)
    text(out, b"client_id", client_id)
    text(out, b"type", string(b"consumer"))
    number(out, b"ts", now_us)
    number(out, b"time", wall_seconds())
    number(out, b"age", now_us - started_us)
    number(out, b"replyq", 0)
    number(out, b"fetch_buffer_bytes", pool.live_bytes())
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
        write_broker(out, nodes[i], b"learned" if nodes[i].node_id >= 0 else b"configured")
    out.append(b"}")
    write_topics(out, positions)
    number(out, b"tx", tx)
    number(out, b"tx_bytes", tx_bytes)
    number(out, b"rx", rx)
    number(out, b"rx_bytes", rx_bytes)
    number(out, b"rxmsgs", counters.records.load())
    number(out, b"rxmsg_bytes", counters.fetched_bytes.load())
    out.append(b"}")
    return out
