# Declares what the consumer layer, and tests, use of managers.pyx. thread: N.
from kconsumer._core.base.cpp cimport (
    deque, int16_t, int32_t, int64_t, map, string, uint32_t, uint64_t, uint8_t, unordered_map, vector,
)
from kconsumer._core.base.status cimport Status
from kconsumer._core.events.application_event cimport (
    AckRebalanceEvent, AssignorAnswerEvent, CommitEvent, FetchCommittedEvent, LeaveCallbackEvent, LeaveGroupEvent,
    LeaveOperation, ListOffsetsEvent, SubscribeEvent, TopicMetadataEvent,
)
from kconsumer._core.events.assignor_call cimport AssignorCall, GroupMember, TopicInput, TopicPartitions
from kconsumer._core.events.background_event cimport BackgroundEventQueue, MergedCommitsHold
from kconsumer._core.events.rebalance_event cimport RebalanceEvent, RebalanceKind
from kconsumer._core.events.topic_partition cimport PartitionOffset, TopicPartition
from kconsumer._core.managers.assignors cimport AssignorKind
from kconsumer._core.managers.commit_context cimport (
    AskedCommitted, CommitPlace, QueuedCommit, QueuedQuestion, SentCommit, SentFetch, SentOffset,
)
from kconsumer._core.managers.commit_merging cimport CommitMerging
from kconsumer._core.managers.fetch_session cimport BatchFailure, FetchSession, FetchedItem, SessionPartition
from kconsumer._core.managers.topic_patterns cimport TopicPatterns
from kconsumer._core.network.network cimport NetworkClientDelegate, NodeLoss, Readiness, ResponseHandler
from kconsumer._core.network.request cimport BodyOf, Channel, Request, RequestBody, Response
from kconsumer._core.protocol.messages.consumer_group_heartbeat cimport (
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
)
from kconsumer._core.protocol.messages.describe_configs cimport DescribeConfigsResponse_DescribeConfigsResult
from kconsumer._core.protocol.messages.describe_groups cimport DescribeGroupsResponse_DescribedGroup
from kconsumer._core.protocol.messages.fetch cimport (
    FetchRequest, FetchResponse, FetchResponse_FetchableTopicResponse, FetchResponse_PartitionData,
)
from kconsumer._core.protocol.messages.find_coordinator cimport FindCoordinatorResponse_Coordinator
from kconsumer._core.protocol.messages.join_group cimport JoinGroupRequest, JoinGroupResponse
from kconsumer._core.protocol.messages.list_offsets cimport (
    ListOffsetsRequest, ListOffsetsResponse_ListOffsetsPartitionResponse,
)
from kconsumer._core.protocol.messages.metadata cimport (
    MetadataRequest, MetadataResponse, MetadataResponse_MetadataResponseTopic,
)
from kconsumer._core.protocol.messages.offset_commit cimport OffsetCommitRequest, OffsetCommitResponse
from kconsumer._core.protocol.messages.offset_fetch cimport (
    OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponse_OffsetFetchResponseGroup,
)
from kconsumer._core.protocol.messages.offset_for_leader_epoch cimport (
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse_EpochEndOffset,
)
from kconsumer._core.protocol.messages.sync_group cimport SyncGroupRequest_SyncGroupRequestAssignment, SyncGroupResponse
from kconsumer._core.protocol.types cimport NullableString, Uuid
from kconsumer._core.protocol.wire cimport Reader
from kconsumer._core.records.columns cimport BlockPool
from kconsumer._core.state.fetch_config cimport FetchConfig, FetchCounters
from kconsumer._core.state.group cimport GroupConfig, GroupShared, Liveness, Membership
from kconsumer._core.state.member_state cimport MemberState
from kconsumer._core.state.metadata cimport ClusterCache, PartitionEntry, TopicEntry
from kconsumer._core.state.ownership cimport Ownership
from kconsumer._core.state.partition_state cimport PartitionState
from kconsumer._core.state.request_state cimport BackoffConfig, Jitter, RequestState
from kconsumer._core.state.state cimport FetchPositions, TakeAway

include "request_manager.pxd"
include "request_managers.pxd"
include "metadata_request_manager.pxd"
include "coordinator_request_manager.pxd"
include "offsets_request_manager.pxd"
include "committed_request_manager.pxd"
include "commit_request_manager.pxd"
include "membership_manager.pxd"
include "application_assignors.pxd"
include "group_leader.pxd"
include "orphan_check.pxd"
include "group_session_timeout.pxd"
include "classic_group_manager.pxd"
include "consumer_heartbeat_manager.pxd"
include "fetch_errors.pxd"
include "fetch_sender.pxd"
