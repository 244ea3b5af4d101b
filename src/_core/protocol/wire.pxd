# Declares protocol/wire.hpp for Cython. thread: any; each object belongs to its user.
from kconsumer._core.base.cpp cimport int16_t, int32_t, uint8_t
from kconsumer._core.base.status cimport Status


cdef extern from "protocol/wire.hpp" namespace "kc" nogil:
    cdef cppclass Reader:
        Reader()
        Reader(const uint8_t* data, size_t length)
        void begin(const char* message, int16_t version)
        bint ok()
        const char* error_field()
        size_t position()
        size_t remaining()
        const uint8_t* current()
        Status status()
        int16_t read_int16(const char* field)
        int32_t read_int32(const char* field)

    cdef cppclass Writer:
        Writer()
        Writer(size_t capacity)
        const uint8_t* data()
        size_t size()
        bint ok()
        void clear()
        void swap(Writer& other)
        void reserve(size_t capacity)
        void write_int16(int16_t value)
        void write_int32(int32_t value)
        void write_raw(const void* bytes, size_t length)
        void patch_int32(size_t at, int32_t value)
