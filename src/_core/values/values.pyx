"""Owns: the layer `values`, from the values of records to typed columns, and from the columns to Arrow's structs.

thread: A; release callbacks of exported arrays on any thread. Never: knows the protocol, parses a schema.

The files are one extension module, in the order of their dependence. Its imports are all here.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport strcmp

from typing import Any, NamedTuple

from kconsumer._core.base.cpp cimport uint32_t
from kconsumer._core.records.records cimport (
    ArrowArrayStream, ArrowSchema, add_buffer, add_child, add_dictionary, array_capsule, array_in, fill_schema,
    open_array, out_of_memory, schema_capsule, schema_in, stream_in,
)
from kconsumer.errors import exception_for

include "value_export.pxi"
include "value_source.pxi"
include "value_decoder.pxi"
