# Results of completed events as plain tuples. thread: A.
from kconsumer._core.base.cpp cimport int32_t, vector
from kconsumer._core.events.application_event cimport ApplicationEvent, ListOffsetsEvent, TopicMetadataEvent
from kconsumer._core.events.background_event cimport BackgroundEvent, BackgroundEventQueue
from kconsumer._core.events.topic_partition cimport PartitionOffset
from kconsumer._core.state.partition_state cimport PartitionState


cdef list offset_tuples(const vector[PartitionOffset]& offsets)
cdef object metadata_tuple(TopicMetadataEvent* event)
cdef int put_queries(ListOffsetsEvent* event, queries) except -1
cdef list query_tuples(ListOffsetsEvent* event)
cdef object answer_of(ApplicationEvent* event)
cdef object call_on_commit(on_commit, BackgroundEvent& event, BackgroundEventQueue* background)
cdef object position_tuple(PartitionState* p)

cdef Py_ssize_t checked_count(num_messages) except -1
cdef int32_t checked_rows(max_records) except -1
