# Declares state/session.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport int32_t, int64_t


cdef extern from "state/session.hpp" namespace "kc" nogil:
    cdef cppclass Session:
        Session()
        void heard(int64_t sent_us)
        void set_timeout(int32_t timeout_ms)
        int32_t timeout_ms()
        void stop()
        bint counts()
        bint over(int64_t now_us)
        bint hold_back(int64_t now_us)
        bint take_held_back(int64_t now_us)
        int64_t left_ms(int64_t now_us)
        int64_t age_ms(int64_t now_us)
