# Declares what other layers, and tests, use of records.pyx. thread: see the file that each section names.
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, int8_t, string, uint32_t, uint8_t, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.columns cimport Block, BlockPool, Columns


# ---- compression.pxi

cdef extern from "<zlib.h>" nogil:
    ctypedef struct z_stream:
        unsigned char* next_in
        unsigned int avail_in
        unsigned char* next_out
        unsigned int avail_out
        const char* msg

cdef extern from "<zstd.h>" nogil:
    ctypedef struct ZSTD_DCtx:
        pass

cdef extern from "<lz4frame.h>" nogil:
    ctypedef struct LZ4F_dctx:
        pass

cdef extern from "records/compression.hpp" namespace "kc" nogil:
    cdef cppclass Inflater:
        int codec
        int magic
        const uint8_t* next_in
        size_t in_left
        size_t limit
        size_t ahead
        bint framed
        uint8_t header[32]
        size_t header_size
        size_t header_fed
        string detail
        bint out_of_memory
        BlockPool* pool
        Block* block
        size_t begin
        size_t at
        z_stream gzip
        bint gzip_ready
        ZSTD_DCtx* zstd
        LZ4F_dctx* lz4


# ---- decode.hpp

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


# ---- inflate_ahead.pxi

cdef extern from "records/inflate_ahead.hpp" namespace "kc" nogil:
    cdef enum AheadState:
        AHEAD_NONE
        AHEAD_BUSY
        AHEAD_READY

    cdef cppclass AheadBatch:
        AheadBatch()
        size_t begin
        size_t body
        size_t end
        int32_t codec
        AheadState state
        Block* block
        size_t records_begin
        size_t records_end

    cdef cppclass InflateAhead:
        InflateAhead(Block* block, const uint8_t* data, size_t length, size_t limit, atomic[int64_t]* inflated_bytes)
        void retain()
        void release()

        @staticmethod
        bint is_wanted(const uint8_t* data, size_t length)
        bint claim(AheadBatch* out)
        void put(const AheadBatch& done)
        AheadState reach(size_t begin, size_t end, AheadBatch* out)
        void end()
        bint may_be_claimed()
        const uint8_t* data
        size_t length
        size_t limit

# Inflates the next unclaimed batches, to about half a MiB. False if there was none.
cdef bint inflate_ahead(InflateAhead* ahead, BlockPool* pool) noexcept nogil


# ---- batch_decoder.pxi

# Estimates from the batch headers how many more rows the job produces; never more than its bytes can hold.
cdef int32_t decode_estimate_rows(DecodeJob* job) noexcept nogil
# Appends records to job.columns. It stops at the end, if the columns are full, after an error, or after about
# `budget_bytes` of (inflated) bytes.
cdef DecodeResult decode_step(DecodeJob* job, size_t budget_bytes) noexcept nogil
# Frees the inflater and the inflated block, and releases the job's reference to job.block.
cdef void decode_release(DecodeJob* job) noexcept nogil


# ---- arrow_build.pxi

# Initializes an array without buffers; it retains `columns` (may be NULL) until its release.
cdef void open_array(ArrowArray* out, int64_t length, int64_t offset, int64_t null_count,
                     Columns* columns) noexcept nogil
cdef void add_buffer(ArrowArray* array, const void* buffer) noexcept nogil
# Adds a zeroed child array, which the caller must open; NULL if memory is out.
cdef ArrowArray* add_child(ArrowArray* array) noexcept nogil
# Adds the dictionary: `values` are the strings for the indices in `array`.
cdef Status add_dictionary(ArrowArray* array, const vector[string]& values) noexcept nogil
cdef Status out_of_memory() noexcept nogil


# ---- arrow_arrays.pxi

# Fills `out` with the column that `field` describes. The caller must release `out` even after an error.
cdef Status export_column(const ArrowSource* source, const ArrowField* field, ArrowArray* out) noexcept nogil


# ---- arrow_export.pxi

cdef extern from "records/arrow_c.hpp" nogil:
    cdef struct ArrowSchema:
        const char* format
        const char* name
        const char* metadata
        int64_t flags
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept nogil
        void* private_data

    cdef struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept nogil
        int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept nogil
        const char* (*get_last_error)(ArrowArrayStream*) noexcept nogil
        void (*release)(ArrowArrayStream*) noexcept nogil
        void* private_data

    cdef struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept nogil
        void* private_data

cdef extern from "records/arrow_c.hpp" namespace "kc" nogil:
    cdef enum ArrowColumn:
        COLUMN_NONE
        COLUMN_TOPIC
        COLUMN_PARTITION
        COLUMN_OFFSET
        COLUMN_TIMESTAMP
        COLUMN_TIMESTAMP_TYPE
        COLUMN_LEADER_EPOCH
        COLUMN_KEY
        COLUMN_VALUE
        COLUMN_HEADERS
        COLUMN_COUNT

    cdef cppclass ArrowField:
        int column
        string name
        string format
        string dictionary
        bint nullable
        vector[ArrowField] children
        ArrowField()

    cdef cppclass ArrowSource:
        Columns* columns
        int32_t row_start
        int32_t row_end
        vector[string] topics
        vector[int32_t] run_topics
        vector[int32_t] run_partitions
        bint with_headers
        ArrowSource()

# Fills `out` with the schema of export_array(), if the status is OK. `requested` (may be NULL) selects columns by name,
# with their order and types. The function does not release `requested` and keeps no reference to it.
cdef Status export_schema(const ArrowSource* source, const ArrowSchema* requested, ArrowSchema* out) noexcept nogil
# Fills `out` with a struct array of rows [row_start, row_end), one child for each column.
cdef Status export_array(const ArrowSource* source, const ArrowSchema* requested, ArrowArray* out) noexcept nogil
# Fills `out` with a stream of one such array. The stream does not depend on `source`, which the caller may free.
cdef Status export_stream(const ArrowSource* source, const ArrowSchema* requested, ArrowArrayStream* out) noexcept nogil
# Fills `out` with the schema of a field and its children. False if memory is out; even then the caller must release
# `out`.
cdef bint fill_schema(const ArrowField* field, ArrowSchema* out) noexcept nogil
# Returns the column with this name, compared as in a requested schema; COLUMN_NONE if there is none.
cdef int find_column(const char* name) noexcept nogil
# Returns the name of a field; empty if it has none.
cdef const char* name_of(const ArrowSchema* schema) noexcept nogil
# Sets `out` to the type of a record column in the requested schema.
cdef Status requested_field(int column, const ArrowSchema* wanted, ArrowField* out) noexcept nogil
# Returns the type of a column if no schema is requested.
cdef ArrowField default_field(int column) noexcept nogil


# ---- arrow_capsules.pxi

# Creates a capsule that owns a zeroed struct, and sets `out` to the struct. The capsule releases a filled struct.
cdef object schema_capsule(ArrowSchema** out)
cdef object array_capsule(ArrowArray** out)
cdef object stream_capsule(ArrowArrayStream** out)
# Returns the struct in a capsule; NULL for None.
cdef const ArrowSchema* schema_in(object capsule) except? NULL
cdef ArrowArray* array_in(object capsule) except NULL
cdef ArrowArrayStream* stream_in(object capsule) except NULL
