"""Owns: access to the layer `records` for tests, benchmarks and the fuzzer.

thread: that of the test. Never: part of the product.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdio cimport fprintf, stderr
from libc.stdlib cimport abort, free, malloc
from libc.string cimport memcpy, memset

from kconsumer._core.base.base cimport monotonic_us
from kconsumer._core.base.cpp cimport atomic, int32_t, int64_t, string, uint32_t, uint64_t, uint8_t
from kconsumer._core.base.status cimport Status
from kconsumer._core.records.bytes cimport read_varint
from kconsumer._core.records.columns cimport BinaryView, Block, BlockPool, Columns, HeadersRef
from kconsumer._core.records.crc32c cimport Crc32cWay, crc32c_extend, crc32c_extend_by, crc32c_way
from kconsumer._core.records.records cimport (
    DECODE_DONE, DECODE_ERROR, DECODE_FULL, DECODE_MORE, DECODE_WAIT, AbortedTransaction, AheadBatch, ArrowArray,
    ArrowSchema, ArrowSource, DecodeJob, DecodeResult, InflateAhead, decode_estimate_rows, decode_release, decode_step,
    export_array, export_schema, inflate_ahead,
)

include "decoding.pxi"
include "fuzz.pxi"
