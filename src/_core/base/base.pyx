"""Owns: the two parts of the layer `base` that are not headers: the clock, and the counter of forks.

thread: any. Never: knows Kafka.

The files are one extension module. Its imports are all here.
"""
cimport cython
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

include "clock.pxi"
include "fork.pxi"
