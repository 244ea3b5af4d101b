# Declares records/crc32c.hpp for Cython. thread: any.
from kconsumer._core.base.cpp cimport uint8_t, uint32_t


cdef extern from "records/crc32c.hpp" namespace "kc" nogil:
    cdef enum Crc32cWay:
        CRC32C_TABLES
        CRC32C_INSTRUCTION
        CRC32C_FOLDING

    Crc32cWay crc32c_way()
    uint32_t crc32c_extend(uint32_t crc, const uint8_t* p, size_t n)
    uint32_t crc32c_extend_by(Crc32cWay way, uint32_t crc, const uint8_t* p, size_t n)
