# Declares state/request_state.hpp for Cython. thread: N.
from kconsumer._core.base.cpp cimport int32_t, int64_t, uint64_t


cdef extern from "state/request_state.hpp" namespace "kc" nogil:
    cdef cppclass BackoffConfig:
        BackoffConfig()
        int32_t retry_backoff_ms
        int32_t retry_backoff_max_ms
        int32_t request_timeout_ms
        uint64_t jitter_seed

    cdef cppclass Jitter:
        Jitter()
        uint64_t state

    int64_t backoff_ms(const BackoffConfig& c, int32_t attempts, Jitter& jitter)

    cdef cppclass RequestState:
        RequestState()
        bint in_flight
        int32_t attempts
        int64_t not_before_ms
        void on_send()
        void on_success()
        void on_failure(int64_t now_ms, const BackoffConfig& c, Jitter& jitter)
        void on_failure(int64_t now_ms, const BackoffConfig& c, Jitter& jitter, int32_t free)
        void on_given_up()
        void clear_backoff()
        bint may_send(int64_t now_ms)
        int64_t wait_ms(int64_t now_ms)
