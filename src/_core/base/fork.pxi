"""Owns: the process's fork counter. With it a consumer notices a fork without a call of getpid() each time.

thread: any; written in a new child, by its only thread. Never: runs Python in the child.
"""

cdef extern from "base/fork.hpp" namespace "kc" nogil:
    int watch_forks(volatile unsigned long* count)

cdef int failure = watch_forks(&fork_count)
if failure != 0:
    raise OSError(failure, "cannot register the fork handler")
