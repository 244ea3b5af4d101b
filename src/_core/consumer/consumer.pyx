"""Owns: the layer `consumer`: the application's API, the network thread's loop, and what goes between the two.

Threads: A and N; each file says which. Never: encodes a request or reads a response.

The files are one extension module, in the order of their dependence. Its imports are all here.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.number cimport PyNumber_AsSsize_t
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_INCREF, Py_REFCNT, Py_XDECREF
from cython.operator cimport dereference, preincrement
from libc.errno cimport EIO
from libc.math cimport isnan
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset, strcmp, strdup

import os
import threading
from importlib import import_module
from types import GenericAlias

from kconsumer._core.base.base cimport fork_count
from kconsumer._core.base.coarse_clock cimport coarse_ms
from kconsumer._core.base.cpp cimport int16_t, map, memory_order_relaxed, pair, to_string, unordered_map
from kconsumer._core.base.error_codes cimport MESSAGE_TOO_LARGE
from kconsumer._core.base.gil cimport GIL_DISABLED
from kconsumer._core.base.leak cimport leak
from kconsumer._core.base.log cimport LogLine
from kconsumer._core.base.secret cimport Secret, put_secret
from kconsumer._core.base.status cimport (
    ERR_AUTHENTICATION, ERR_CRIT_SYS_RESOURCE, ERR_DESTROY, ERR_INTR, ERR_INVALID_ARG, ERR_PARTITION_EOF, ERR_STATE,
    ERR_UNSUPPORTED_FEATURE,
)
from kconsumer._core.base.wakeup_fd cimport WAIT_INTERRUPTED, WAIT_READY, wait_readable
from kconsumer._core.base.window_stats cimport WindowStats
from kconsumer._core.consumer.decode_gate cimport GATE_OUT_OF_MEMORY, GATE_PASSED, GateResult
from kconsumer._core.consumer.fetch_buffer cimport ENTRY_END_OF_PARTITION, ENTRY_ERROR, ENTRY_RECORDS
from kconsumer._core.consumer.text cimport message_of, text_of, utf8
from kconsumer._core.events.application_event cimport (
    EVENT_ACK_REBALANCE, EVENT_ASSIGNOR_ANSWER, EVENT_CLOSE, EVENT_COMMIT, EVENT_FETCH_COMMITTED, EVENT_LEAVE_CALLBACK,
    EVENT_LEAVE_GROUP, EVENT_LIST_OFFSETS, EVENT_SUBSCRIBE, EVENT_TOPIC_METADATA, LEAVE_DEFAULT, LEAVE_FOR_GOOD,
    LEAVE_REMAIN, AckRebalanceEvent, CommitEvent, FetchCommittedEvent, LeaveCallbackEvent, LeaveGroupEvent,
    LeaveOperation, OffsetQuery, SubscribeEvent,
)
from kconsumer._core.events.assignor_call cimport AssignorData, GroupMember, MemberAssignment, TopicPartitions
from kconsumer._core.events.background_event cimport (
    ATTENTION_CLOSED, ATTENTION_COMMIT, ATTENTION_CONTROL, ATTENTION_EVENTS, ATTENTION_FATAL, ATTENTION_REBALANCE,
    ATTENTION_WAKEUP, BACKGROUND_COMMIT, BACKGROUND_ERROR, BACKGROUND_STATS, BACKGROUND_THROTTLE, BACKGROUND_TOKEN,
)
from kconsumer._core.events.rebalance_event cimport (
    REBALANCE_ASSIGN, REBALANCE_ERROR, REBALANCE_GIVEN_UP, REBALANCE_LOST, REBALANCE_REVOKE,
)
from kconsumer._core.events.topic_partition cimport (
    contains_name, partitions_with, partitions_without, sort_names, sort_offsets,
)
from kconsumer._core.managers.fetch_session cimport (
    FETCHED_ERROR, FETCHED_RECORDS, BatchFailure, FetchSession, SessionPartition, SessionTopic,
)
from kconsumer._core.managers.managers cimport ClassicGroupManager, ConsumerHeartbeatManager, GroupSessionTimeout
from kconsumer._core.managers.member_id cimport uuid_text
from kconsumer._core.network.network cimport NetworkClient, credentials_of, make_credentials, set_password, set_token
from kconsumer._core.network.request cimport NodeAddress, NodeStats
from kconsumer._core.network.security cimport TlsClientPtr
from kconsumer._core.protocol.api_keys cimport api_name
from kconsumer._core.protocol.messages.metadata cimport (
    MetadataResponse, MetadataResponse_MetadataResponsePartition, MetadataResponse_MetadataResponseTopic,
)
from kconsumer._core.protocol.types cimport Int32Array, Uuid
from kconsumer._core.protocol.wire cimport Reader
from kconsumer._core.records.columns cimport HeadersRef
from kconsumer._core.records.records cimport (
    COLUMN_COUNT, COLUMN_NONE, DECODE_DONE, DECODE_ERROR, DECODE_FULL, DECODE_MORE, DECODE_WAIT, ArrowArray,
    ArrowArrayStream, ArrowField, ArrowSchema, DecodeResult, add_buffer, add_child, array_capsule, array_in,
    decode_estimate_rows, decode_release, decode_step, default_field, export_array, export_column, export_schema,
    export_stream, fill_schema, find_column, inflate_ahead, name_of, open_array, out_of_memory, requested_field,
    schema_capsule, schema_in, stream_capsule,
)
from kconsumer._core.state.fetch_config cimport RESET_BY_DURATION, RESET_EARLIEST, RESET_LATEST, RESET_NONE
from kconsumer._core.state.metadata cimport TopicEntry
from kconsumer._core.state.partition_state cimport (
    FETCH_ACTIVE, FETCH_AWAIT_COMMITTED, FETCH_AWAIT_RESET, FETCH_AWAIT_VALIDATION, OFFSET_INVALID, OFFSET_TAIL_BASE,
    Hand,
)
from kconsumer._core.state.timing cimport Timing
from kconsumer._core.values.values cimport (
    VALUE_STRUCT, Column, DecodedValues, Plan, ValueSource, export_values, value_field,
)

from kconsumer.data.call import OF_CALLBACKS, Raised, awaited
from kconsumer.errors import KafkaError, SerializationError, error_for, exception_for, exception_from

# What the API is made of.
include "checked_method.pxi"
include "answers.pxi"
include "call.pxi"
include "tls_settings.pxi"
include "sasl_settings.pxi"
include "settings.pxi"

# Records for the application.
include "message.pxi"
include "array_stream.pxi"
include "record_batch.pxi"
include "decoded_batch.pxi"

# From responses to the application.
include "fetch_decoder.pxi"
include "fetch_handler.pxi"

# The loop.
include "application_event_processor.pxi"
include "statistics.pxi"
include "consumer_network_thread.pxi"

# The API.
include "consumer_parts.pxi"
include "assignor_face.pxi"
include "consumer_core.pxi"
include "group_core.pxi"
include "loop_core.pxi"
include "metrics.pxi"
include "credentials.pxi"
