# Declares state/fetch_config.hpp for Cython. thread: see there.
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, string
from kconsumer._core.state.timing cimport Timing


cdef extern from "state/fetch_config.hpp" namespace "kc" nogil:
    cdef enum ResetPolicy:
        RESET_NONE
        RESET_EARLIEST
        RESET_LATEST
        RESET_BY_DURATION

    cdef cppclass FetchConfig:
        FetchConfig()
        atomic[int32_t] min_bytes
        atomic[int32_t] wait_max_ms
        atomic[int32_t] max_bytes
        atomic[int32_t] max_partition_bytes
        atomic[int64_t] buffer_memory
        int64_t max_inflated_batch_bytes
        int32_t max_record_headers
        bint check_crcs
        bint read_committed
        bint partition_eof
        bint has_group
        bint allow_auto_create_topics
        ResetPolicy reset_policy
        int64_t reset_duration_ms
        string client_rack
        int64_t metadata_max_age_ms
        bint connections_are_costly
        size_t window_from
        bint rebootstrap
        int64_t rebootstrap_trigger_ms

    cdef cppclass FetchCounters:
        FetchCounters()
        atomic[int64_t] reserved_bytes
        atomic[int64_t] undecoded
        atomic[int64_t] inflated_ahead
        atomic[int64_t] undelivered_records
        atomic[int64_t] returned_records
        atomic[int64_t] fetches
        Timing fetch_times
        atomic[int64_t] fetched_bytes
        atomic[int64_t] records
        atomic[int64_t] bad_batches
        atomic[int64_t] stalls
        atomic[int64_t] turns
