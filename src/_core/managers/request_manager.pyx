"""Owns: RequestManager, the contract of everything that decides what to ask brokers.

thread: N only, therefore no locks. Never: does I/O or blocks; requests go to the NetworkClientDelegate's queue and
come back through on_response / on_failure.
"""
cimport cython
from libc.stdint cimport INT64_MAX


@cython.no_gc
cdef class RequestManager(ResponseHandler):
    cdef int64_t poll(self, int64_t now_ms) noexcept nogil:
        return INT64_MAX

    cdef int64_t poll_on_close(self, int64_t now_ms) noexcept nogil:
        return INT64_MAX
