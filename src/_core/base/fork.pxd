# Declares base/fork.hpp for Cython. thread: any.
cdef extern from "base/fork.hpp" namespace "kc" nogil:
    void watch_forks()
    unsigned long fork_generation()
