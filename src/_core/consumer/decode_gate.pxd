# Declares consumer/decode_gate.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport atomic, deque, int64_t, vector
from kconsumer._core.managers.fetch_session cimport BatchFailure, FetchedItem


cdef extern from "consumer/decode_gate.hpp" namespace "kc" nogil:
    cdef enum GateResult:
        GATE_TAKEN
        GATE_PASSED
        GATE_OUT_OF_MEMORY

    cdef cppclass DecodeGate:
        DecodeGate()
        GateResult passing "pass"(void (*body)(void*) noexcept nogil, void* arg)
        GateResult pass_caught(void (*body)(void*) noexcept nogil, void* arg)
        void give(deque[FetchedItem*]& items)
        void take(deque[FetchedItem*]& out)
        void add_failure(const BatchFailure& failure)
        void take_failures(vector[BatchFailure]& out)
        bint has_failures()
        atomic[bint] waits
        atomic[int64_t] left_us
        atomic[bint] left_to_application
