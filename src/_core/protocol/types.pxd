# Declares protocol/types.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, uint8_t, uint64_t, vector


cdef extern from "protocol/types.hpp" namespace "kc" nogil:
    cdef cppclass Nullable[T]:
        T value
        bint is_null
        Nullable()
        void set(const T&)
        void set_null()
        T& set_present()

    cdef cppclass NullableString:
        string value
        bint is_null
        NullableString()
        NullableString(string)
        void set(const string&)
        void set_null()
        string& set_present()

    cdef cppclass Uuid:
        uint64_t high
        uint64_t low
        Uuid()
        Uuid(uint64_t, uint64_t)
        bint is_zero()
        bint operator==(const Uuid&)
        bint operator!=(const Uuid&)
        bint operator<(const Uuid&)

    cdef cppclass BytesView:
        const uint8_t* data
        int32_t length
        BytesView()
        bint is_null()

    cdef cppclass Int32Array:
        Int32Array()
        Int32Array(const vector[int32_t]& values)
        size_t size()
        int32_t at(size_t i)
        vector[int32_t] values()

    const int64_t MAX_BROKERS
    const int64_t MAX_PARTITIONS
