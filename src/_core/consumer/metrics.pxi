"""Owns: the values of Consumer.metrics() and Consumer.lag(), read from the objects that hold them.

thread: A, any; the network thread is not asked. Never: writes anything, uses a name that is not in
kconsumer/telemetry/metrics.py.
"""

cdef enum:
    # A broker answers a Fetch within fetch.wait.max.ms, or when a watermark changes. If this much more time passes, the
    # end offset is out of date.
    JUST_MS = 1000


def core_metrics(ConsumerCore core not None):
    """Return the metrics of any consumer, by name."""
    cdef int64_t now_us = core.clock.now_us()
    return {
        "fetch_buffer_bytes": core.pool.live_bytes(),
        "fetch_reserved_bytes": core.counters.reserved_bytes.load(),
        "fetch_buffer_full": core.pool.starved.load(),
        "fetch_buffer_records": core.counters.undelivered_records.load(),
        "fetches_total": core.counters.fetches.load(),
        "fetch_latency_us_total": core.counters.fetch_times.total_us.load(),
        "fetch_latency_max_us": core.counters.fetch_times.longest_us.load(),
        "fetch_latency_buckets": buckets_of(&core.counters.fetch_times),
        "fetched_bytes_total": core.counters.fetched_bytes.load(),
        "fetched_records_total": core.counters.records.load(),
        "returned_records_total": returned_records(core),
        "fetch_stalls_total": core.counters.stalls.load(),
        "bad_batches_total": core.counters.bad_batches.load(),
        "stopped_partitions": stopped_partitions(core),
        "network_turns_total": core.counters.turns.load(),
        "application_events_total": core.application.added.load(),
        "poll_waits_total": core.idle.waits(),
        "poll_idle_us_total": core.idle.total_us(now_us),
        "poll_idle_ratio": core.idle.ratio(now_us),
    }


cdef int64_t returned_records(ConsumerCore core):
    """Return the number of returned records. poll() counts those of the open entry when it closes it."""
    cdef int64_t closed = core.counters.returned_records.load()
    if GIL_DISABLED or not core.handler.is_open or core.handler.transactional:
        return closed
    return closed + core.handler.row - core.handler.opened_at


cdef tuple buckets_of(Timing* found):
    return tuple([found.buckets[i].load() for i in range(19)])  # Timing.kBuckets


cdef dict stopped_partitions(ConsumerCore core):
    """Return {(topic, partition): reason of the stop until a seek}."""
    cdef vector[PartitionState*] assigned
    cdef PartitionState* p
    cdef string reason
    cdef dict out = {}
    core.subscription.snapshot(assigned)
    for p in assigned:
        core.subscription.lock.lock()
        reason = p.stop_reason
        core.subscription.lock.unlock()
        if not reason.empty():
            out[text_of(p.topic), p.partition] = text_of(reason)
        p.release()
    return out


def group_metrics(GroupCore core not None):
    """Return the metrics of a member of a group, by name."""
    cdef int64_t rebalanced = core.shared.rebalanced_ms.load()
    return {
        **timing("rebalance", &core.shared.rebalances),
        "last_rebalance_ago_ms": core.clock.now_ms() - rebalanced if rebalanced >= 0 else -1,
        **timing("heartbeat", &core.shared.heartbeats),
        "session_age_ms": core.shared.session.age_ms(core.clock.boot_us()),
        "session_timeout_ms": core.shared.session.timeout_ms(),
        **timing("commit", &core.shared.commits),
    }


cdef dict timing(str name, Timing* found):
    return {
        f"{name}s_total": found.count.load(),
        f"{name}_latency_us": found.latest_us.load(),
        f"{name}_latency_max_us": found.longest_us.load(),
        f"{name}_latency_us_total": found.total_us.load(),
        f"{name}_latency_buckets": buckets_of(found),
    }


def partition_facts(ConsumerCore core not None):
    """Return the state of the assigned partitions, as (topic, partition, at, end, just, next, returned, buffered,
    paused, error, answered).

    `at`, `end` and `just` are as in ends(). `next` is the timestamp of the next record that was received, `returned`
    that of the latest returned one, in ms; -1: unknown. `buffered` is the number of decoded records. `error`: it is
    stopped until a seek, or the broker's latest answer was an error. `answered` is the age in ms of the latest answer
    of its fetch session; -1: it is in none.
    """
    cdef vector[PartitionState*] assigned
    cdef PartitionState* p
    cdef NextRecords following
    cdef bint stopped
    cdef int64_t now_ms = core.clock.now_ms()
    cdef int64_t until_ms = now_ms - core.config.wait_max_ms.load() - JUST_MS
    cdef int64_t answered_ms
    cdef list out = []
    core.handler.find_next_records(following)
    core.subscription.snapshot(assigned)
    for p in assigned:
        core.subscription.lock.lock()
        stopped = not p.stop_reason.empty()
        core.subscription.lock.unlock()
        answered_ms = p.session_answer_ms()
        out.append((*end_of(p, core.config.read_committed, until_ms), following.timestamp_of(p),
                    p.returned_timestamp.load(), p.undelivered_records.load(), p.paused.load(),
                    stopped or p.last_error != 0, now_ms - answered_ms if answered_ms >= 0 else -1))
        p.release()
    return out


def ends(ConsumerCore core not None, partitions=None):
    """Return the end offsets [(topic, partition, at, end, just)] of the assignment.

    Args:
        partitions: [(topic, partition)]; None: the assignment.

    `at` is the position, or the first offset to fetch. `end` is the high watermark or, under read_committed, the last
    stable offset, from the latest Fetch. Both are negative if unknown. `just`: whether `end` is up to date.
    """
    cdef vector[PartitionState*] found
    cdef PartitionState* p
    cdef int64_t now_ms = core.clock.now_ms()
    cdef int64_t until_ms = now_ms - core.config.wait_max_ms.load() - JUST_MS
    cdef list out = []
    if partitions is None:
        core.subscription.snapshot(found)
    else:
        for topic, partition in partitions:
            p = core.subscription.find(utf8(topic), <int32_t>partition)
            if p != NULL:
                found.push_back(p)
    for p in found:
        out.append(end_of(p, core.config.read_committed, until_ms))
        p.release()
    return out


cdef tuple end_of(PartitionState* p, bint stable, int64_t until_ms):
    cdef int64_t at = 0
    cdef int64_t end = p.last_stable_offset.load() if stable else p.high_watermark.load()
    cdef int64_t fetched_ms = p.session_answer_ms()
    cdef int32_t leader_epoch = 0
    p.read_position(at, leader_epoch)
    if at < 0:
        at = p.start_offset.load()
    return text_of(p.topic), p.partition, at, end, end >= 0 and fetched_ms >= 0 and fetched_ms >= until_ms
