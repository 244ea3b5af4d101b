"""Owns: what completed events answer, as plain tuples for the Python layer.

Threads: A. Never: looks at an event that has not ended.
"""
from kconsumer._core.base.status cimport ERR_UNSUPPORTED_FEATURE
from kconsumer._core.consumer.text cimport message_of, text_of, utf8
from kconsumer._core.events.application_event cimport OffsetQuery
from kconsumer._core.protocol.messages.metadata cimport (
    MetadataResponse,
    MetadataResponse_MetadataResponsePartition,
    MetadataResponse_MetadataResponseTopic,
)
from kconsumer._core.protocol.types cimport Int32Array
from kconsumer._core.protocol.wire cimport Reader

from kconsumer.errors import exception_for


cdef list offset_tuples(const vector[PartitionOffset]& offsets):
    """[(topic, partition, offset, leader epoch, metadata, error)]"""
    cdef size_t i
    return [(text_of(offsets[i].topic), offsets[i].partition, offsets[i].offset, offsets[i].leader_epoch,
             text_of(offsets[i].metadata), offsets[i].error) for i in range(offsets.size())]


cdef object metadata_tuple(TopicMetadataEvent* event):
    """Decodes the response, which MetadataRequestManager has found to be whole."""
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
    return (text_of(topic.name.value), topic.error_code, topic.is_internal, partitions)


cdef list numbers(Int32Array& array):
    cdef size_t i
    return [array.at(i) for i in range(array.size())]


cdef int put_queries(ListOffsetsEvent* event, queries) except -1:
    """[(topic, partition, timestamp)]"""
    cdef OffsetQuery query
    for topic, partition, timestamp in queries:
        query.topic = utf8(topic)
        query.partition = partition
        query.timestamp = timestamp
        event.queries.push_back(query)
    return 0


cdef list query_tuples(ListOffsetsEvent* event):
    """[(error, offset, timestamp, leader epoch)]; raises where a broker is too old for a query."""
    cdef size_t i
    if not event.unsupported.empty():
        raise exception_for(<int>ERR_UNSUPPORTED_FEATURE, message_of(event.unsupported))
    return [(event.queries[i].error, event.queries[i].offset, event.queries[i].found_timestamp,
             event.queries[i].leader_epoch) for i in range(event.queries.size())]


cdef int tell_commits(on_commit, BackgroundEvent& event, BackgroundEventQueue* background) except -1:
    """Calls on_commit for each commit that this is the result of. What an exception leaves goes back to the queue."""
    cdef size_t i
    for i in range(event.merged.get().told if event.merged.get() != NULL else 0, event.commits()):
        try:
            on_commit(event.status.code, message_of(event.status.detail), offset_tuples(event.commit(i)))
        except BaseException:
            if i + 1 < event.commits():
                event.merged.get().told = i + 1
                background.put_back(event)
            raise
    return 0
