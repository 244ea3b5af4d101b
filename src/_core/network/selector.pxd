# Declares network/selector.hpp for Cython. thread: N; wakeup: any.
from kconsumer._core.base.cpp cimport int64_t, uint8_t, vector


cdef extern from "network/selector.hpp" namespace "kc" nogil:
    cdef enum SelectorInterest:
        SELECT_READ
        SELECT_WRITE

    cdef cppclass SelectorEvent:
        SelectorEvent()
        void* tag
        uint8_t ready

    cdef cppclass Selector:
        Selector()
        int open()
        void close()
        void abandon()
        int add(int fd, uint8_t interest, void* tag)
        int modify(int fd, uint8_t before, uint8_t interest, void* tag)
        void remove(int fd, uint8_t before)
        int wait(int64_t timeout_ms, vector[SelectorEvent]& events)
        void wakeup()
        bint interrupted()
        int64_t waits()
