# Results of completed events as plain tuples. thread: A.


cdef list offset_tuples(const vector[PartitionOffset]& offsets)
cdef object metadata_tuple(TopicMetadataEvent* event)
cdef int put_queries(ListOffsetsEvent* event, queries) except -1
cdef list query_tuples(ListOffsetsEvent* event)
cdef object answer_of(ApplicationEvent* event)
cdef object call_on_commit(on_commit, BackgroundEvent& event, BackgroundEventQueue* background)
cdef object position_tuple(PartitionState* p)

cdef Py_ssize_t checked_count(num_messages) except -1
cdef int32_t checked_rows(max_records) except -1
