# Declares events/application_event.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, vector
from kconsumer._core.base.status cimport Status


cdef extern from "events/application_event.hpp" namespace "kc" nogil:
    cdef enum ApplicationEventType:
        EVENT_TOPIC_METADATA
        EVENT_LIST_OFFSETS
        EVENT_CLOSE

    cdef cppclass ApplicationEvent:
        ApplicationEvent(ApplicationEventType)
        ApplicationEventType type
        int64_t deadline_ms
        Status status
        void retain()
        void release()
        bint done()
        int fd()
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

    cdef cppclass PartitionInfo:
        PartitionInfo()
        int32_t id
        int32_t leader
        int32_t error
        int32_t leader_epoch
        vector[int32_t] replicas
        vector[int32_t] isrs

    cdef cppclass TopicInfo:
        TopicInfo()
        string name
        int32_t error
        bint internal
        vector[PartitionInfo] partitions

    cdef cppclass BrokerInfo:
        BrokerInfo()
        int32_t id
        string host
        int32_t port
        string rack

    cdef cppclass TopicMetadataEvent(ApplicationEvent):
        TopicMetadataEvent(int64_t)
        bint all_topics
        vector[string] topics
        string cluster_id
        int32_t controller_id
        int32_t orig_broker_id
        string orig_broker_name
        vector[BrokerInfo] brokers
        vector[TopicInfo] found

    cdef cppclass CloseEvent(ApplicationEvent):
        CloseEvent(int64_t)
