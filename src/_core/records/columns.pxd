# Declares records/block.hpp and records/columns.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport atomic, int8_t, int32_t, int64_t, uint8_t, vector


cdef extern from "records/block.hpp" namespace "kc" nogil:
    cdef cppclass Block:
        atomic[int32_t] refs
        uint8_t* data
        size_t capacity
        size_t size
        BlockPool* pool

    cdef cppclass BlockPool:
        @staticmethod
        BlockPool* create()
        void ref()
        void unref()
        void stop_caching()
        Block* take(size_t capacity)
        bint grow(Block* b, size_t capacity)

        @staticmethod
        void retain(Block* b)

        @staticmethod
        void release(Block* b)
        int64_t live_bytes()
        atomic[bint] starved
        void set_on_room(void (*callback)(void*) noexcept nogil, void* arg)


cdef extern from "records/columns.hpp" namespace "kc" nogil:
    cdef cppclass BinaryView:
        int32_t length

    cdef cppclass HeadersRef:
        int32_t buffer_index
        int32_t offset
        int32_t length
        int32_t count

    cdef cppclass Run:
        int32_t row_start
        int32_t row_end
        void* partition
        int32_t leader_epoch
        int8_t timestamp_type
        Run()

    cdef cppclass Columns:
        int32_t rows
        int32_t capacity
        int64_t* offsets
        int64_t* timestamps
        BinaryView* keys
        BinaryView* values
        int32_t key_nulls
        int32_t value_nulls
        HeadersRef* headers
        Block* memory
        Block* headers_memory
        uint8_t* key_validity
        uint8_t* value_validity
        vector[Block*] buffers
        vector[size_t] buffer_bytes
        vector[Run] runs
        bint key_is_null(int32_t row)
        bint value_is_null(int32_t row)
        const uint8_t* view_data(const BinaryView& v)
        void prefetch(int32_t row)

        @staticmethod
        Columns* create(BlockPool* pool, int32_t capacity)

        @staticmethod
        Columns* none()
        bint want_headers()
        int32_t pin(Block* b, size_t bytes)
        void retain()
        void release()
