# Declares records/decode.hpp for Cython. thread: the thread that runs the job (N or A), one at a time.
from kconsumer._core.base.cpp cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.columns cimport Block, BlockPool, Columns
from kconsumer._core.records.compression cimport Inflater
from kconsumer._core.records.inflate_ahead cimport InflateAhead


cdef extern from "records/decode.hpp" namespace "kc" nogil:
    cdef cppclass AbortedTransaction:
        int64_t producer_id
        int64_t first_offset
        AbortedTransaction()

    cdef enum DecodeResult:
        DECODE_DONE
        DECODE_MORE
        DECODE_FULL
        DECODE_ERROR
        DECODE_WAIT

    cdef enum DecodeStage:
        STAGE_BEGIN
        STAGE_BATCH
        STAGE_CRC
        STAGE_AWAIT
        STAGE_INFLATE
        STAGE_RECORDS
        STAGE_FINISHED
        STAGE_FAILED

    cdef cppclass BatchState:
        size_t begin
        size_t end
        size_t body
        int64_t base_offset
        int64_t last_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        int64_t inner_base
        int64_t previous_offset
        int32_t leader_epoch
        int32_t count
        int32_t previous_delta
        uint32_t crc
        int8_t magic
        int8_t codec
        int8_t timestamp_type
        bint control
        bint transactional
        Block* block
        size_t records_end

    cdef cppclass DecodeJob:
        DecodeJob()
        BlockPool* pool
        Block* block
        const uint8_t* data
        size_t length
        void* partition
        int64_t fetch_offset
        bint check_crcs
        bint read_committed
        vector[AbortedTransaction] aborted
        size_t max_inflated_bytes
        int32_t max_record_headers
        Columns* columns
        InflateAhead* ahead
        int64_t next_offset
        int32_t last_leader_epoch
        int32_t read_leader_epoch
        int64_t records
        int64_t bytes
        size_t incomplete_batch_bytes
        Status status
        int64_t error_offset
        int64_t error_next_offset
        bint error_is_permanent
        # private to the decoder
        int stage
        size_t position
        BatchState batch
        uint32_t crc
        size_t crc_position
        vector[int64_t] open_aborts
        size_t next_aborted
        Inflater* inflater
        Block* ready
        int32_t batch_record
        size_t record_position
        Columns* run_columns
        size_t run_index
        void add_aborted(AbortedTransaction)
