# Declares consumer/fetch_buffer.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport deque, int32_t, int64_t, uint64_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.columns cimport Columns
from kconsumer._core.state.partition_state cimport PartitionState


cdef extern from "consumer/fetch_buffer.hpp" namespace "kc" nogil:
    cdef enum FetchEntryKind:
        ENTRY_RECORDS
        ENTRY_END_OF_PARTITION
        ENTRY_ERROR

    cdef cppclass FetchEntry:
        FetchEntry()
        FetchEntryKind kind
        PartitionState* partition
        uint64_t position_epoch
        Columns* columns
        int32_t row
        int32_t row_end
        int64_t next_offset
        int32_t next_leader_epoch
        int64_t offset
        Status status
        void release()

    cdef cppclass NextRecords:
        NextRecords()
        void add(const FetchEntry& entry, int32_t row)
        int64_t timestamp_of(const PartitionState* p)

    cdef cppclass FetchBuffer:
        FetchBuffer()
        void put(vector[FetchEntry]& entries)
        bint empty()
        void take(deque[FetchEntry]& out)
        void find_next(NextRecords& found)
        int64_t locks_taken()
