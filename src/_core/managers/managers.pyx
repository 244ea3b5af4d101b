"""Owns: the layer `managers`: each file is one RequestManager, or a part of one.

thread: N. Never: touches a socket or Python, waits.

The files are one extension module, in the order of their dependence. Its imports are all here.
"""
cimport cython
from cython.operator cimport dereference, preincrement
from libc.stdint cimport INT32_MAX, INT64_MAX
from libc.stdlib cimport strtol

from kconsumer._core.base.cpp cimport to_string
from kconsumer._core.base.error_codes cimport (
    COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, CORRUPT_MESSAGE, FENCED_INSTANCE_ID, FENCED_LEADER_EPOCH,
    FENCED_MEMBER_EPOCH, FETCH_SESSION_ID_NOT_FOUND, GROUP_ID_NOT_FOUND, ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL, INCONSISTENT_TOPIC_ID, KAFKA_STORAGE_ERROR, LEADER_NOT_AVAILABLE, MEMBER_ID_REQUIRED,
    NOT_COORDINATOR, NOT_LEADER_OR_FOLLOWER, OFFSET_METADATA_TOO_LARGE, OFFSET_NOT_AVAILABLE, OFFSET_OUT_OF_RANGE,
    REBALANCE_IN_PROGRESS, REBOOTSTRAP_REQUIRED, REPLICA_NOT_AVAILABLE, REQUEST_TIMED_OUT, STALE_MEMBER_EPOCH,
    TOPIC_AUTHORIZATION_FAILED, UNKNOWN_LEADER_EPOCH, UNKNOWN_MEMBER_ID, UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION, UNRELEASED_INSTANCE_ID, UNSTABLE_OFFSET_COMMIT, UNSUPPORTED_FOR_MESSAGE_FORMAT,
    UNSUPPORTED_VERSION,
)
from kconsumer._core.base.log cimport DBG_CGRP, DBG_CONSUMER, DBG_FETCH, DBG_GENERIC, DBG_METADATA, DBG_TOPIC
from kconsumer._core.base.status cimport (
    ERR_ALL_BROKERS_DOWN, ERR_ASSIGNMENT_LOST, ERR_AUTHENTICATION, ERR_BAD_MSG, ERR_CRIT_SYS_RESOURCE, ERR_DESTROY,
    ERR_FATAL, ERR_INTR,
    ERR_LOG_TRUNCATION, ERR_MAX_POLL_EXCEEDED, ERR_NO_OFFSET, ERR_SSL, ERR_TIMED_OUT, ERR_UNKNOWN_PARTITION,
    ERR_UNSUPPORTED_FEATURE, ERR_WAIT_COORD,
)
from kconsumer._core.events.application_event cimport LEAVE_DEFAULT, LEAVE_FOR_GOOD, OffsetQuery
from kconsumer._core.events.background_event cimport (
    ATTENTION_COMMIT, ATTENTION_CONTROL, BACKGROUND_ASSIGNOR, BACKGROUND_COMMIT, BACKGROUND_ERROR, BACKGROUND_THROTTLE,
    BackgroundEvent, commit_status,
)
from kconsumer._core.events.rebalance_event cimport (
    REBALANCE_ASSIGN, REBALANCE_ERROR, REBALANCE_GIVEN_UP, REBALANCE_LOST, REBALANCE_REVOKE,
)
from kconsumer._core.events.topic_partition cimport contains_name, holds_partition
from kconsumer._core.managers.assignors cimport GroupAssignment, assign as assign_partitions, find_assignor
from kconsumer._core.managers.broker_reason cimport (
    broker_reason, coordinator_reason, fetch_reason, topic_reason, unreachable_reason,
)
from kconsumer._core.managers.classic_group_names cimport ASSIGNOR_RAISED, classic_error, flatten, group_by_topic
from kconsumer._core.managers.commit_context cimport (
    BY_NAME_VERSION, COMMIT_DONE, COMMIT_OPEN, COMMIT_SENT, NAMES_MS, is_final, is_lost_request,
)
from kconsumer._core.managers.consumer_protocol cimport (
    assignor_user_data, decode_assignment, decode_subscription, encode_assignment, encode_subscription,
)
from kconsumer._core.managers.fetch_request cimport name_forgotten, name_partitions
from kconsumer._core.managers.fetch_session cimport (
    FETCHED_END_OF_PARTITION, FETCHED_ERROR, FETCHED_RECORDS, MOST_FETCHED_BYTES, FetchedExtent, ForgottenPartition,
    SessionTopic, fetched_extent,
)
from kconsumer._core.managers.member_id cimport make_member_id, uuid_text
from kconsumer._core.network.network cimport NODE_READY, NODE_UNKNOWN
from kconsumer._core.network.request cimport (
    ANY_NODE, CHANNEL_CONTROL, CHANNEL_COORDINATOR, CHANNEL_FETCH, CHANNEL_JOIN, NodeAddress,
)
from kconsumer._core.protocol.messages.consumer_group_heartbeat cimport ConsumerGroupHeartbeatRequest_TopicPartitions
from kconsumer._core.protocol.messages.describe_configs cimport (
    DescribeConfigsRequest, DescribeConfigsRequest_DescribeConfigsResource, DescribeConfigsResponse,
)
from kconsumer._core.protocol.messages.describe_groups cimport DescribeGroupsRequest, DescribeGroupsResponse
from kconsumer._core.protocol.messages.fetch cimport (
    FetchRequest_api_key, FetchRequest_max_version, FetchRequest_min_version,
)
from kconsumer._core.protocol.messages.find_coordinator cimport FindCoordinatorRequest, FindCoordinatorResponse
from kconsumer._core.protocol.messages.heartbeat cimport HeartbeatRequest, HeartbeatResponse
from kconsumer._core.protocol.messages.join_group cimport JoinGroupRequest_JoinGroupRequestProtocol
from kconsumer._core.protocol.messages.leave_group cimport (
    LeaveGroupRequest, LeaveGroupRequest_MemberIdentity, LeaveGroupResponse,
)
from kconsumer._core.protocol.messages.list_offsets cimport (
    ListOffsetsRequest_ListOffsetsPartition, ListOffsetsRequest_ListOffsetsTopic, ListOffsetsResponse,
)
from kconsumer._core.protocol.messages.metadata cimport MetadataRequest_MetadataRequestTopic
from kconsumer._core.protocol.messages.offset_commit cimport (
    OffsetCommitRequest_OffsetCommitRequestPartition, OffsetCommitRequest_OffsetCommitRequestTopic,
)
from kconsumer._core.protocol.messages.offset_fetch cimport (
    OffsetFetchRequest_OffsetFetchRequestGroup, OffsetFetchRequest_OffsetFetchRequestTopic,
    OffsetFetchRequest_OffsetFetchRequestTopics,
)
from kconsumer._core.protocol.messages.offset_for_leader_epoch cimport (
    OffsetForLeaderEpochRequest_OffsetForLeaderPartition, OffsetForLeaderEpochRequest_OffsetForLeaderTopic,
    OffsetForLeaderEpochResponse,
)
from kconsumer._core.protocol.messages.sync_group cimport SyncGroupRequest
from kconsumer._core.protocol.types cimport MAX_PARTITIONS
from kconsumer._core.records.records cimport AbortedTransaction
from kconsumer._core.state.fetch_config cimport RESET_NONE
from kconsumer._core.state.member_state cimport (
    MEMBER_ASSIGNING_PARTITIONS, MEMBER_FATAL, MEMBER_FENCED, MEMBER_JOINING, MEMBER_LEAVING, MEMBER_PARTITION_REVOKED,
    MEMBER_PREPARE_REVOCATION, MEMBER_REVOKING_PARTITION, MEMBER_STABLE, MEMBER_STALE, MEMBER_UNSUBSCRIBED, member_may,
    member_state_name,
)
from kconsumer._core.state.metadata cimport Replicas
from kconsumer._core.state.partition_state cimport (
    FETCH_ACTIVE, FETCH_AWAIT_COMMITTED, FETCH_AWAIT_RESET, FETCH_AWAIT_VALIDATION, FETCH_STOPPED, OFFSET_INVALID,
    BadBatch, Watermarks, partition_key,
)
from kconsumer._core.state.state cimport TAKE_FREE, TAKE_LATE, TAKE_LOST

include "request_manager.pxi"
include "request_managers.pxi"
include "metadata_request_manager.pxi"
include "coordinator_request_manager.pxi"
include "offsets_request_manager.pxi"

# Groups.
include "committed_request_manager.pxi"
include "commit_request_manager.pxi"
include "membership_manager.pxi"
include "application_assignors.pxi"
include "group_leader.pxi"
include "orphan_check.pxi"
include "group_session_timeout.pxi"
include "classic_group_manager.pxi"
include "consumer_heartbeat_manager.pxi"

# Fetches.
include "fetch_errors.pxi"
include "fetch_sender.pxi"
