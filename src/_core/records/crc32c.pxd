# Declares records/crc32c.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport uint8_t, uint32_t


cdef extern from "records/crc32c.hpp" namespace "kc" nogil:
    bint crc32c_has_hardware()
    uint32_t crc32c_extend(uint32_t crc, const uint8_t* p, size_t n)
    uint32_t crc32c_extend_portable(uint32_t crc, const uint8_t* p, size_t n)
