"""Owns: what completed events answer, as plain tuples for the Python layer.

Threads: A. Never: looks at an event that has not ended.
"""
from kconsumer._core.consumer.text cimport text_of
from kconsumer._core.events.application_event cimport PartitionInfo, TopicInfo


cdef list offset_tuples(const vector[PartitionOffset]& offsets):
    """[(topic, partition, offset, leader epoch, metadata, error)]"""
    cdef size_t i
    return [(text_of(offsets[i].topic), offsets[i].partition, offsets[i].offset, offsets[i].leader_epoch,
             text_of(offsets[i].metadata), offsets[i].error) for i in range(offsets.size())]


cdef object metadata_tuple(TopicMetadataEvent* event):
    cdef size_t i
    brokers = [(event.brokers[i].id, text_of(event.brokers[i].host), event.brokers[i].port,
                text_of(event.brokers[i].rack)) for i in range(event.brokers.size())]
    topics = [topic_tuple(&event.found[i]) for i in range(event.found.size())]
    return (text_of(event.cluster_id), event.controller_id, event.orig_broker_id, text_of(event.orig_broker_name),
            brokers, topics)


cdef object topic_tuple(TopicInfo* topic):
    cdef size_t i
    cdef PartitionInfo* p
    partitions = []
    for i in range(topic.partitions.size()):
        p = &topic.partitions[i]
        partitions.append((p.id, p.leader, [r for r in p.replicas], [r for r in p.isrs], p.error, p.leader_epoch))
    return (text_of(topic.name), topic.error, topic.internal, partitions)
