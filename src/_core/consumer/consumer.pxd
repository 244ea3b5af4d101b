# Declares what tests, and the files of consumer.pyx among each other, use. Threads: A and N; see each file.
cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MAX

from kconsumer._core.base.base cimport Clock
from kconsumer._core.base.cpp cimport (
    atomic, deque, int32_t, int64_t, int8_t, string, uint16_t, uint32_t, uint64_t, uint8_t, vector,
)
from kconsumer._core.base.log cimport LogQueue
from kconsumer._core.base.status cimport Status
from kconsumer._core.base.thread cimport NativeThread
from kconsumer._core.base.wakeup_fd cimport WaitResult
from kconsumer._core.consumer.decode_gate cimport DecodeGate
from kconsumer._core.consumer.fetch_buffer cimport FetchBuffer, FetchEntry, NextRecords
from kconsumer._core.consumer.poll_idle cimport PollIdle
from kconsumer._core.events.application_event cimport (
    ApplicationEvent, AssignorAnswerEvent, CloseEvent, LeaveOperation, ListOffsetsEvent, TopicMetadataEvent,
)
from kconsumer._core.events.application_event_queue cimport ApplicationEventQueue
from kconsumer._core.events.assignor_call cimport AssignorCall
from kconsumer._core.events.background_event cimport AssignorCallHold, BackgroundEvent, BackgroundEventQueue
from kconsumer._core.events.rebalance_event cimport RebalanceEvent
from kconsumer._core.events.topic_partition cimport PartitionOffset, TopicPartition
from kconsumer._core.managers.fetch_session cimport FetchedItem
from kconsumer._core.managers.managers cimport (
    ApplicationAssignors, CommitRequestManager, CoordinatorRequestManager, FetchSender, ManagerContext,
    MembershipManager, MetadataRequestManager, OffsetsRequestManager, RequestManagers,
)
from kconsumer._core.managers.topic_patterns cimport TopicPatterns
from kconsumer._core.network.network cimport Network, NetworkClientDelegate, SaslCredentials
from kconsumer._core.network.request cimport NetworkConfig
from kconsumer._core.network.security cimport SecurityConfig
from kconsumer._core.protocol.types cimport NullableString
from kconsumer._core.records.columns cimport BlockPool, Columns
from kconsumer._core.records.records cimport ArrowSource, InflateAhead
from kconsumer._core.state.fetch_config cimport FetchConfig, FetchCounters
from kconsumer._core.state.group cimport GroupConfig, GroupShared, Liveness, Membership
from kconsumer._core.state.partition_state cimport PartitionState
from kconsumer._core.state.request_state cimport BackoffConfig
from kconsumer._core.state.session cimport Session
from kconsumer._core.state.state cimport FetchPositions, SubscriptionState

include "answers.pxd"
include "call.pxd"
include "tls_settings.pxd"
include "sasl_settings.pxd"
include "settings.pxd"
include "message.pxd"
include "array_stream.pxd"
include "record_batch.pxd"
include "fetch_handler.pxd"
include "fetch_decoder.pxd"
include "application_event_processor.pxd"
include "statistics.pxd"
include "consumer_network_thread.pxd"
include "consumer_parts.pxd"
include "assignor_face.pxd"
include "consumer_core.pxd"
include "group_core.pxd"
include "loop_core.pxd"
