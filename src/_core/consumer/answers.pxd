# Completed events as plain tuples. thread: A.
from kconsumer._core.base.cpp cimport vector
from kconsumer._core.events.application_event cimport TopicMetadataEvent
from kconsumer._core.events.topic_partition cimport PartitionOffset


cdef list offset_tuples(const vector[PartitionOffset]& offsets)
cdef object metadata_tuple(TopicMetadataEvent* event)
