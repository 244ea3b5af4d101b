# Declares managers/fetch_session.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, string, uint8_t, uint64_t, unordered_map, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.protocol.types cimport Uuid
from kconsumer._core.records.records cimport DecodeJob
from kconsumer._core.state.partition_state cimport PartitionState, Watermarks
from kconsumer._core.state.request_state cimport RequestState


cdef extern from "managers/fetch_turns.hpp" namespace "kc" nogil:
    cdef cppclass FetchTurn "kc::FetchTurns::Turn":
        pass

    cdef cppclass FetchTurns:
        void goes_first(FetchTurn turn)
        size_t window(size_t many)
        void received(int64_t bytes)
        void answered(FetchTurn turn, bint with_records)
        void answer_ended(size_t named, int64_t most_bytes)


cdef extern from "managers/fetch_size.hpp" namespace "kc" nogil:
    const int64_t MOST_FETCHED_BYTES "kc::FetchSize::kMost"

    cdef cppclass FetchSize:
        void taken(int64_t bytes, int64_t records, int64_t largest_batch)
        void answer_ended(bint late)
        void no_memory()
        int64_t bytes()


cdef extern from "managers/fetch_session.hpp" namespace "kc" nogil:
    cdef cppclass SessionPartition:
        SessionPartition()
        PartitionState* partition
        Uuid topic_id
        bint known_to_broker
        FetchTurn turn
        int64_t fetch_offset
        int32_t leader_epoch
        uint64_t position_epoch
        uint64_t generation
        bint bounded
        bint is_current()

    cdef cppclass ForgottenPartition:
        ForgottenPartition()
        string topic
        Uuid topic_id
        int32_t partition
        Watermarks watermarks

    cdef cppclass SessionTopic:
        SessionTopic()
        string name
        unordered_map[int32_t, SessionPartition] partitions

    cdef cppclass QuietLeader:
        void sent_records(int64_t now_ms)
        bint may_be_deposed(int64_t now_ms, bint costly)

    cdef cppclass FetchSession:
        FetchSession()
        int32_t node_id
        int32_t session_id
        int32_t epoch
        RequestState request
        bint waits_for_room
        bint restart
        bint uses_topic_ids
        int64_t reserved_bytes
        size_t named
        int64_t sent_ms
        atomic[int64_t] answered_ms
        int64_t fastest_ms
        int64_t urgent_ms
        int64_t short_waits_until_ms
        int64_t no_renewal_until_ms
        bint interrupted
        int64_t partial_batches
        bint awaits_ends
        bint unsupported_reported
        int32_t partitions_without_id
        size_t partition_count
        unordered_map[string, SessionTopic] topics
        vector[ForgottenPartition] to_forget
        FetchTurns turns
        FetchSize size
        QuietLeader quiet
        SessionPartition* find(const string& topic, int32_t partition)
        SessionPartition* find(SessionTopic& topic, int32_t partition)
        SessionTopic* topic_of(const Uuid& id)
        SessionPartition& join(PartitionState* p, bint watermarks)
        void at_their_end(bint read_committed, vector[SessionPartition*]& out)
        void set_topic_id(SessionPartition& entry, const Uuid& id)
        void keep_watermarks_current(PartitionState* p)
        void leave(SessionPartition& entry)
        void want(SessionPartition& entry)
        void start_again()
        void take_wanted(vector[SessionPartition*]& wanted)
        void take_window(vector[SessionPartition*]& wanted)

    cdef enum FetchedKind:
        FETCHED_RECORDS
        FETCHED_END_OF_PARTITION
        FETCHED_ERROR

    cdef cppclass FetchedItem:
        FetchedItem()
        FetchedKind kind
        PartitionState* partition
        uint64_t position_epoch
        uint64_t generation
        int32_t node_id
        int64_t offset
        Status status
        DecodeJob job

    cdef cppclass BatchFailure:
        BatchFailure()
        PartitionState* partition
        uint64_t position_epoch
        int32_t node_id
        Status status
        int64_t offset
        int64_t next_offset
        int64_t resume_offset
        int32_t resume_leader_epoch
        bint permanent
        bint refused

    cdef cppclass FetchedExtent:
        FetchedExtent()
        int64_t next_offset
        int32_t leader_epoch
        int64_t largest_batch
        bint cut_off

    FetchedExtent fetched_extent(const uint8_t* p, size_t length, int64_t fetch_offset, int32_t leader_epoch)
