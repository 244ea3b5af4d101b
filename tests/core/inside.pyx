"""Owns: access to what is inside a consumer, from its network client to its loop, and the simulated cluster.

Threads: that of the test, in the role of N or A. Never: part of the product.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer
from cython.operator cimport dereference as deref, preincrement as inc
from libc.stdint cimport INT64_MAX
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memcpy

import time

from kconsumer._core.base.base cimport Clock, ManualClock
from kconsumer._core.base.cpp cimport (
    deque, int16_t, int32_t, int64_t, map, pair, string, uint32_t, uint64_t, uint8_t, unordered_map, vector,
)
from kconsumer._core.base.log cimport LogLine, LogQueue
from kconsumer._core.base.status cimport ERR_TIMED_OUT, ERR_TRANSPORT, ERR_UNSUPPORTED_FEATURE, Status
from kconsumer._core.base.window_stats cimport WindowStats
from kconsumer._core.consumer.consumer cimport (
    ASSIST_NOTHING, ConsumerCore, ConsumerNetworkThread, GroupCore, metadata_tuple, offset_tuples,
)
from kconsumer._core.consumer.text cimport text_of, utf8
from kconsumer._core.events.application_event cimport (
    EVENT_ACK_REBALANCE, EVENT_COMMIT, EVENT_FETCH_COMMITTED, EVENT_LEAVE_CALLBACK, EVENT_LEAVE_GROUP, EVENT_SUBSCRIBE,
    AckRebalanceEvent, ApplicationEvent, CommitEvent, FetchCommittedEvent, LeaveGroupEvent, ListOffsetsEvent,
    OffsetQuery, SubscribeEvent, TopicMetadataEvent,
)
from kconsumer._core.events.assignor_call cimport GroupMember, TopicInput, TopicPartitions
from kconsumer._core.events.background_event cimport (
    ATTENTION_COMMIT, BACKGROUND_COMMIT, BACKGROUND_ERROR, BackgroundEvent, BackgroundEventQueue,
)
from kconsumer._core.events.rebalance_event cimport (
    REBALANCE_ASSIGN, REBALANCE_ERROR, REBALANCE_LOST, REBALANCE_REVOKE, RebalanceEvent,
)
from kconsumer._core.events.topic_partition cimport PartitionOffset, TopicPartition
from kconsumer._core.managers.assignors cimport (
    AssignorKind, GroupAssignment, assign as core_assign, assignor_name, find_assignor, supports_cooperative,
)
from kconsumer._core.managers.managers cimport CommitRequestManager, CoordinatorRequestManager, ManagerContext
from kconsumer._core.managers.consumer_protocol cimport (
    assignor_user_data, decode_assignment as core_decode_assignment, decode_subscription as core_decode_subscription,
    encode_assignment as core_encode_assignment, encode_subscription as core_encode_subscription,
    read_cooperative_user_data as core_read_cooperative, read_sticky_user_data as core_read_sticky,
)
from kconsumer._core.managers.topic_patterns cimport TopicPatterns
from kconsumer._core.network.network cimport (
    NODE_BUSY, NODE_READY, NODE_UNKNOWN, SASL_DONE, SASL_SEND, Completion, Network, NetworkClient,
    NetworkClientDelegate, NodeLoss, Readiness, ResponseHandler, SaslCredentialsPtr, SaslMechanismPtr, SaslOutcome,
    Secret, credentials_of, make_credentials, set_password, set_token,
)
from kconsumer._core.network.request cimport (
    CHANNEL_FETCH, CHANNEL_JOIN, Channel, NetworkConfig, NodeAddress, NodeStats, Request, Response,
    RequestBody,  # no-cython-lint
)
from kconsumer._core.network.resolver cimport ResolveFunction
from kconsumer._core.network.security cimport TlsClientPtr
from kconsumer._core.network.selector cimport Selector, SelectorEvent
from kconsumer._core.network.socket cimport describe, host_and_port
from kconsumer._core.network.tls_client cimport tls_of
from kconsumer._core.network.transport cimport (
    HANDSHAKE_DONE, HANDSHAKE_WANTS_READ, HANDSHAKE_WANTS_WRITE, IO_CLOSED, IO_DONE, IO_WOULD_BLOCK, HandshakeState,
    IoResult, Transport,
)
from kconsumer._core.protocol.api_keys cimport api_name
from kconsumer._core.protocol.types cimport Int32Array, NullableString, Uuid
from kconsumer._core.protocol.wire cimport Writer
from kconsumer._core.records.columns cimport Block, BlockPool
from kconsumer._core.state.fetch_config cimport RESET_EARLIEST, FetchConfig
from kconsumer._core.state.state cimport FetchPositions, SubscriptionState
from kconsumer._core.state.group cimport GroupConfig, GroupShared, Membership
from kconsumer._core.state.member_state cimport MEMBER_STATES, MemberState, member_may, member_state_name
from kconsumer._core.state.metadata cimport PartitionEntry, TopicEntry
from kconsumer._core.state.ownership cimport Ownership
from kconsumer._core.state.partition_state cimport PartitionState
from kconsumer._core.state.request_state cimport BackoffConfig
from kconsumer._core.network.network import open_client

include "network.pxi"
include "sasl.pxi"
include "tls.pxi"
include "scripted_network.pxi"
include "ticket.pxi"
include "ownership.pxi"
include "assignors.pxi"
include "commits.pxi"
include "consumer_core.pxi"
include "group_core.pxi"
include "membership.pxi"
include "simulated_cluster.pxi"
include "simulation.pxi"
