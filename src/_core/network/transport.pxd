# Declares network/transport.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, string, uint8_t


cdef extern from "network/transport.hpp" namespace "kc" nogil:
    cdef enum HandshakeState:
        HANDSHAKE_DONE
        HANDSHAKE_WANTS_READ
        HANDSHAKE_WANTS_WRITE
        HANDSHAKE_FAILED

    cdef enum IoState:
        IO_DONE
        IO_WOULD_BLOCK
        IO_CLOSED
        IO_FAILED

    cdef enum Crossing:
        kReadWantsWrite
        kWriteWantsRead

    cdef cppclass IoResult:
        IoResult()
        IoState state
        size_t bytes
        int error

    cdef cppclass Transport:
        HandshakeState handshake()
        IoResult read_into(uint8_t* to, size_t length)
        IoResult write(const uint8_t* start, size_t length)
        bint pending()
        void close()
        string error_text()
        int32_t error_code()
        uint8_t crossed()
        string description()

    cdef cppclass PlaintextTransport(Transport):
        PlaintextTransport(int fd)
