"""Owns: the layer `records`, from the bytes of a Fetch response to Columns, and from Columns to Arrow's structs.

thread: N or A; each file says which. Never: knows the protocol's messages, a partition's state or a consumer.

The files are one extension module, in the order of their dependence. Its imports are all here.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.errno cimport EINVAL, ENOMEM
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset, strcmp, strncmp

from kconsumer._core.base.cpp cimport int16_t, memory_order_acquire, uint64_t
from kconsumer._core.base.status cimport ERR_BAD_COMPRESSION, ERR_BAD_MSG, ERR_CRIT_SYS_RESOURCE, ERR_INVALID_ARG
from kconsumer._core.records.bytes cimport (
    RecordFields, formatted, load_be16, load_be32, load_be64, put_null, put_view, read_plain_record, read_varint,
    read_varlong,
)
from kconsumer._core.records.columns cimport BinaryView, HeadersRef, Run
from kconsumer._core.records.crc32c cimport crc32c_extend

# From bytes to Columns.
include "compression.pxi"
include "record_walk.pxi"
include "message_set.pxi"
include "inflate_ahead.pxi"
include "batch_decoder.pxi"

# From Columns to Arrow.
include "arrow_build.pxi"
include "arrow_headers.pxi"
include "arrow_arrays.pxi"
include "arrow_export.pxi"
include "arrow_capsules.pxi"
