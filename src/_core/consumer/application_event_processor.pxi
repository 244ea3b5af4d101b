"""Owns: ApplicationEventProcessor, which passes each application event to its manager.

thread: N. Never: waits. The manager later completes an event that needs an answer.
"""


@cython.no_gc
cdef class ApplicationEventProcessor:
    def __cinit__(self, MetadataRequestManager metadata not None, OffsetsRequestManager offsets not None):
        self.metadata = metadata
        self.offsets = offsets

    def __dealloc__(self):
        if self.closing != NULL:
            self.closing.release()

    cdef void process(self, ApplicationEvent* event, int64_t now_ms) noexcept nogil:
        """Process an event; takes over one reference."""
        if event.type == EVENT_TOPIC_METADATA:
            self.metadata.ask(<TopicMetadataEvent*>event)
        elif event.type == EVENT_LIST_OFFSETS:
            self.offsets.ask(<ListOffsetsEvent*>event)
        elif event.type == EVENT_COMMIT:
            self.commits.commit(<CommitEvent*>event, now_ms)
        elif event.type == EVENT_FETCH_COMMITTED:
            self.commits.fetch_committed(<FetchCommittedEvent*>event, now_ms)
        elif event.type == EVENT_SUBSCRIBE:
            self.membership.on_subscribe(<SubscribeEvent*>event, now_ms)
        elif event.type == EVENT_ACK_REBALANCE:
            self.membership.on_ack(<AckRebalanceEvent*>event, now_ms)
        elif event.type == EVENT_ASSIGNOR_ANSWER:
            self.assignors.on_answer(<AssignorAnswerEvent*>event)
        elif event.type == EVENT_LEAVE_CALLBACK:
            self.membership.on_leave_callback(<LeaveCallbackEvent*>event)
        elif event.type == EVENT_LEAVE_GROUP:
            self.membership.on_leave(<LeaveGroupEvent*>event, now_ms)
        elif event.type == EVENT_CLOSE and self.closing == NULL:
            self.closing = <CloseEvent*>event
        else:
            # A second CLOSE.
            event.release()
