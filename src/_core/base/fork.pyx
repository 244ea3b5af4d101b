"""Owns: the process's fork counter, so that a consumer notices that it is in a child without asking getpid() per call.

thread: any; written in a new child, by its only thread. Never: runs Python in the child.
"""

cdef extern from "base/fork.hpp" namespace "kc" nogil:
    int watch_forks(volatile unsigned long* count)

cdef int failure = watch_forks(&fork_count)
if failure != 0:
    raise OSError(failure, "forks cannot be watched")
