# Declares events/application_event.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, uint64_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.base.wakeup_fd cimport WakeupFd
from kconsumer._core.events.assignor_call cimport AssignorData, MemberAssignment
from kconsumer._core.events.rebalance_event cimport RebalanceKind
from kconsumer._core.events.topic_partition cimport PartitionOffset, TopicPartition
from kconsumer._core.network.request cimport Response


cdef extern from "events/application_event.hpp" namespace "kc" nogil:
    cdef enum ApplicationEventType:
        EVENT_TOPIC_METADATA
        EVENT_LIST_OFFSETS
        EVENT_CLOSE
        EVENT_SUBSCRIBE
        EVENT_LEAVE_GROUP
        EVENT_ACK_REBALANCE
        EVENT_COMMIT
        EVENT_FETCH_COMMITTED
        EVENT_ASSIGNOR_ANSWER
        EVENT_LEAVE_CALLBACK

    cdef cppclass ApplicationEvent:
        ApplicationEvent(ApplicationEventType)
        ApplicationEventType type
        int64_t deadline_ms
        Status status
        void retain()
        void release()
        bint done()
        int fd()
        void signal_to(WakeupFd*)
        bint complete(Status)

    cdef cppclass OffsetQuery:
        OffsetQuery()
        string topic
        int32_t partition
        int64_t timestamp
        int64_t offset
        int64_t found_timestamp
        int32_t leader_epoch
        int32_t error
        bint answered
        bint in_flight

    cdef cppclass ListOffsetsEvent(ApplicationEvent):
        ListOffsetsEvent(int64_t)
        vector[OffsetQuery] queries
        string unsupported
        bint read_committed
        int64_t asked_ms

    cdef cppclass TopicMetadataEvent(ApplicationEvent):
        TopicMetadataEvent(int64_t)
        bint all_topics
        vector[string] topics
        Response response
        string orig_broker_name
        void keep(const Response& answer)

    cdef cppclass SubscribeEvent(ApplicationEvent):
        SubscribeEvent()
        vector[string] topics
        vector[string] patterns
        uint64_t epoch
        bint calls_on_assign
        bint calls_on_revoke

    cdef cppclass LeaveCallbackEvent(ApplicationEvent):
        LeaveCallbackEvent()

    cdef enum LeaveOperation:
        LEAVE_DEFAULT, LEAVE_FOR_GOOD, LEAVE_REMAIN

    cdef cppclass LeaveGroupEvent(ApplicationEvent):
        LeaveGroupEvent(int64_t)
        vector[PartitionOffset] offsets
        uint64_t epoch
        bint closing
        LeaveOperation operation

    cdef cppclass AckRebalanceEvent(ApplicationEvent):
        AckRebalanceEvent(RebalanceKind)
        RebalanceKind kind
        uint64_t rebalance_id
        vector[PartitionOffset] offsets
        vector[TopicPartition] assignment

    cdef cppclass AssignorAnswerEvent(ApplicationEvent):
        AssignorAnswerEvent(uint64_t)
        uint64_t id
        bint failed
        vector[MemberAssignment] assignments
        vector[AssignorData] user_data

    cdef cppclass CommitEvent(ApplicationEvent):
        CommitEvent(int64_t, bint)
        vector[PartitionOffset] offsets
        bint sync
        bint notify
        bint automatic

    cdef cppclass FetchCommittedEvent(ApplicationEvent):
        FetchCommittedEvent(int64_t)
        vector[PartitionOffset] partitions

    cdef cppclass CloseEvent(ApplicationEvent):
        CloseEvent(int64_t)
