"""Owns: the results of completed events, and the known data of a partition, as plain tuples for the Python layer; the
checks of numbers of records.

Threads: A. Never: reads an event that has not ended.
"""


cdef list offset_tuples(const vector[PartitionOffset]& offsets):
    """Return [(topic, partition, offset, leader epoch, metadata, error)]."""
    cdef size_t i
    return [(text_of(offsets[i].topic), offsets[i].partition, offsets[i].offset, offsets[i].leader_epoch,
             text_of(offsets[i].metadata), offsets[i].error) for i in range(offsets.size())]


cdef object metadata_tuple(TopicMetadataEvent* event):
    """Decode the response; MetadataRequestManager has checked that it is complete."""
    cdef MetadataResponse message
    cdef Reader reader = Reader(event.response.body, event.response.length)
    cdef size_t i
    with nogil:
        message.decode(reader, event.response.version)
    brokers = [(message.brokers[i].node_id, text_of(message.brokers[i].host), message.brokers[i].port,
                text_of(message.brokers[i].rack.value)) for i in range(message.brokers.size())]
    topics = [topic_tuple(&message.topics[i]) for i in range(message.topics.size())]
    return (text_of(message.cluster_id.value), message.controller_id, event.response.node_id,
            text_of(event.orig_broker_name), brokers, topics)


cdef object topic_tuple(MetadataResponse_MetadataResponseTopic* topic):
    cdef size_t i
    cdef MetadataResponse_MetadataResponsePartition* p
    partitions = []
    for i in range(topic.partitions.size()):
        p = &topic.partitions[i]
        partitions.append((p.partition_index, p.leader_id, numbers(p.replica_nodes), numbers(p.isr_nodes),
                           p.error_code, p.leader_epoch))
    return (text_of(topic.name.value), topic.error_code, topic.is_internal, partitions, topic_id_text(topic.topic_id))


cdef list numbers(Int32Array& array):
    cdef size_t i
    return [array.at(i) for i in range(array.size())]


cdef int put_queries(ListOffsetsEvent* event, queries) except -1:
    """Add the queries of [(topic, partition, timestamp)] to the event."""
    cdef OffsetQuery query
    for topic, partition, timestamp in queries:
        query.topic = utf8(topic)
        query.partition = partition
        query.timestamp = timestamp
        event.queries.push_back(query)
    return 0


cdef list query_tuples(ListOffsetsEvent* event):
    """Return [(error, offset, timestamp, leader epoch)].

    Raises KafkaException if a broker is too old for a query.
    """
    cdef size_t i
    if not event.unsupported.empty():
        raise exception_for(<int>ERR_UNSUPPORTED_FEATURE, message_of(event.unsupported))
    return [(event.queries[i].error, event.queries[i].offset, event.queries[i].found_timestamp,
             event.queries[i].leader_epoch) for i in range(event.queries.size())]


cdef object call_on_commit(on_commit, BackgroundEvent& event, BackgroundEventQueue* background):
    """Call on_commit for the oldest commit of the event, and return its result. The others go back to the queue."""
    cdef Status status
    cdef vector[PartitionOffset] named = event.take_commit(status)
    if event.merged.get() != NULL and event.commits() > 0:
        background.put_back(event)
    return on_commit(status.code, message_of(status.detail), offset_tuples(named))


cdef object answer_of(ApplicationEvent* event):
    """Return the result of an event that has succeeded; None for an event without one."""
    if event.type == EVENT_TOPIC_METADATA:
        return metadata_tuple(<TopicMetadataEvent*>event)
    if event.type == EVENT_LIST_OFFSETS:
        return query_tuples(<ListOffsetsEvent*>event)
    if event.type == EVENT_COMMIT:
        return offset_tuples((<CommitEvent*>event).offsets)
    if event.type == EVENT_FETCH_COMMITTED:
        return offset_tuples((<FetchCommittedEvent*>event).partitions)
    return None


cdef object topic_id_text(const Uuid& id):
    """Return a topic id in Kafka's text form; None for the zero id."""
    return None if id.is_zero() else text_of(uuid_text(id))


cdef object position_tuple(PartitionState* p):
    """Return the known data of a partition.

    (position, leader epoch, low, high, last stable offset, start offset, topic id).

    The id belongs to the topic of the fetched records; None: nothing was fetched yet, or the fetch is by name.
    """
    cdef int64_t offset = 0
    cdef int32_t leader_epoch = 0
    p.read_position(offset, leader_epoch)
    return (offset, leader_epoch, p.low_watermark.load(), p.high_watermark.load(), p.last_stable_offset.load(),
            p.start_offset.load(), topic_id_text(Uuid(p.topic_id_high.load(), p.topic_id_low.load())))


cdef Py_ssize_t checked_count(num_messages) except -1:
    cdef Py_ssize_t most = num_messages
    if most < 0 or most > 1000000:
        raise ValueError("num_messages must be between 0 and 1000000 (1M)")
    return most


cdef int32_t checked_rows(max_records) except -1:
    cdef int32_t most = max_records
    if most <= 0:
        raise ValueError(f"invalid max_records {max_records}: expected a positive number")
    return most
