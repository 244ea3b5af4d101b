"""Owns: the layer `state`: what the application subscribed to or assigned, and the positions from which N fetches.

Threads: N and A; each file and attribute says which. Never: sends a request, calls the application.

The files are one extension module, in the order of their dependence. Its imports are all here.
"""
cimport cython
from cython.operator cimport dereference

from kconsumer._core.base.cpp cimport to_string
from kconsumer._core.base.status cimport ERR_ASSIGNMENT_LOST, ERR_AUTO_OFFSET_RESET, ERR_NO_OFFSET
from kconsumer._core.events.topic_partition cimport contains_name, holds_partition, partitions_with, partitions_without
from kconsumer._core.state.fetch_config cimport RESET_BY_DURATION, RESET_EARLIEST, RESET_LATEST
from kconsumer._core.state.metadata cimport PartitionEntry
from kconsumer._core.state.partition_state cimport (
    FETCH_ACTIVE, FETCH_AWAIT_COMMITTED, FETCH_AWAIT_RESET, FETCH_AWAIT_VALIDATION, FETCH_NONE, FETCH_STOPPED,
    OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_TAIL_BASE, BadBatch, partition_key,
)

include "subscription_state.pxi"
include "fetch_positions.pxi"
