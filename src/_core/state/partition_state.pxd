# Declares state/partition_state.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, string, uint32_t, uint64_t, vector
from kconsumer._core.events.topic_partition cimport PartitionOffset
from kconsumer._core.state.request_state cimport RequestState


cdef extern from "state/partition_state.hpp" namespace "kc" nogil:
    const int64_t OFFSET_BEGINNING
    const int64_t OFFSET_END
    const int64_t OFFSET_STORED
    const int64_t OFFSET_INVALID
    const int64_t OFFSET_TAIL_BASE

    cdef enum FetchState:
        FETCH_NONE
        FETCH_AWAIT_COMMITTED
        FETCH_AWAIT_RESET
        FETCH_AWAIT_VALIDATION
        FETCH_ACTIVE
        FETCH_STOPPED

    cdef cppclass BadBatch:
        BadBatch()
        int64_t offset
        int32_t attempts
        vector[int32_t] nodes

    cdef cppclass Watermarks:
        Watermarks()
        Watermarks(int64_t low, int64_t high, int64_t last_stable)
        int64_t low
        int64_t high
        int64_t last_stable
        int64_t end(bint read_committed)

    cdef cppclass Hand:
        Hand()
        int64_t offset
        int32_t leader_epoch
        int32_t last_leader_epoch
        int64_t last

    cdef cppclass AtomicHand:
        void store(const Hand& hand)

    cdef cppclass PartitionState:
        PartitionState(string topic, int32_t partition)
        const string topic
        const int32_t partition
        bint assigned
        bint change_listed
        int64_t given_offset
        int64_t posted_offset
        int32_t posted_leader_epoch
        int64_t stored_offset
        int32_t stored_leader_epoch
        string stored_metadata
        int64_t departed_offset
        int32_t departed_leader_epoch
        int64_t named_offset
        int32_t named_leader_epoch
        bint in_hand
        uint64_t hand_call
        AtomicHand hand
        string stop_reason
        atomic[uint64_t] position_epoch
        atomic[bint] paused
        atomic[bint] unsubscribed
        atomic[int64_t] end_offset
        atomic[int64_t] position
        atomic[int32_t] position_leader_epoch
        int32_t parked
        atomic[int64_t] returned_timestamp
        uint64_t failed_generation
        uint64_t failed_epoch
        atomic[int64_t] low_watermark
        atomic[int64_t] high_watermark
        atomic[int64_t] last_stable_offset
        atomic[int64_t] fetch_offset
        atomic[int64_t] committed_offset
        atomic[int64_t] asked_offset
        bint ends_at(int64_t offset)
        bint is_committed(int64_t offset)
        atomic[int64_t] start_offset
        atomic[uint64_t] topic_id_high
        atomic[uint64_t] topic_id_low
        atomic[int64_t] undelivered_records
        atomic[int64_t] received_records
        int64_t received_bytes
        int64_t received_offsets
        int32_t range_doublings
        bint tracked                  # atomic, as are adopted_epoch and decode_generation
        size_t tracked_place
        uint64_t adopted_epoch
        FetchState state
        int64_t reset_timestamp
        int64_t reset_tail
        RequestState request
        int32_t fetch_leader_epoch
        int32_t leader_id
        int32_t leader_epoch
        int32_t preferred_replica
        int64_t preferred_until_ms
        int32_t session_node
        bint user_paused_seen
        bint revoking
        bint listed_for_fetch
        int64_t eof_reported_at
        uint64_t decode_generation
        int32_t last_error
        BadBatch bad_batch
        void retain()
        void release()
        bint standing(bint auto_offset_store, bint processed_only, PartitionOffset& out)
        uint64_t drop_fetched()
        Watermarks watermarks()
        int32_t read_node(int64_t now_ms)
        int64_t session_answer_ms()
        string name()
        void publish_position(int64_t offset, int32_t epoch)
        void read_position(int64_t& offset, int32_t& epoch)

    string partition_key(const string& topic, int32_t partition)
