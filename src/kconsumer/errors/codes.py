"""The codes of every error, with texts and retriability: Kafka's protocol errors and librdkafka's local ones.

Owns: Codes, text, with_phrase, name, is_retriable. Threads: any (constants). Never: raises, imports the core.
"""

from __future__ import annotations

from typing import Final


class Codes:
    """Error codes as class attributes, with confluent_kafka's names and numbers.

    Codes from -1 up belong to the Kafka protocol (Kafka 4.3's ``Errors``). kconsumer raises the ``_``-prefixed ones
    locally; they have librdkafka's numbers. The codes that librdkafka lacks (98, 99, 101, 102, 104-109) have Kafka's
    names.
    """

    __slots__ = ()

    _BAD_MSG = -199
    _BAD_COMPRESSION = -198
    _DESTROY = -197
    _FAIL = -196
    _TRANSPORT = -195
    _CRIT_SYS_RESOURCE = -194
    _RESOLVE = -193
    _MSG_TIMED_OUT = -192
    _PARTITION_EOF = -191
    _UNKNOWN_PARTITION = -190
    _FS = -189
    _UNKNOWN_TOPIC = -188
    _ALL_BROKERS_DOWN = -187
    _INVALID_ARG = -186
    _TIMED_OUT = -185
    _QUEUE_FULL = -184
    _ISR_INSUFF = -183
    _NODE_UPDATE = -182
    _SSL = -181
    _WAIT_COORD = -180
    _UNKNOWN_GROUP = -179
    _IN_PROGRESS = -178
    _PREV_IN_PROGRESS = -177
    _EXISTING_SUBSCRIPTION = -176
    _ASSIGN_PARTITIONS = -175
    _REVOKE_PARTITIONS = -174
    _CONFLICT = -173
    _STATE = -172
    _UNKNOWN_PROTOCOL = -171
    _NOT_IMPLEMENTED = -170
    _AUTHENTICATION = -169
    _NO_OFFSET = -168
    _OUTDATED = -167
    _TIMED_OUT_QUEUE = -166
    _UNSUPPORTED_FEATURE = -165
    _WAIT_CACHE = -164
    _INTR = -163
    _KEY_SERIALIZATION = -162
    _VALUE_SERIALIZATION = -161
    _KEY_DESERIALIZATION = -160
    _VALUE_DESERIALIZATION = -159
    _PARTIAL = -158
    _READ_ONLY = -157
    _NOENT = -156
    _UNDERFLOW = -155
    _INVALID_TYPE = -154
    _RETRY = -153
    _PURGE_QUEUE = -152
    _PURGE_INFLIGHT = -151
    _FATAL = -150
    _INCONSISTENT = -149
    _GAPLESS_GUARANTEE = -148
    _MAX_POLL_EXCEEDED = -147
    _UNKNOWN_BROKER = -146
    _NOT_CONFIGURED = -145
    _FENCED = -144
    _APPLICATION = -143
    _ASSIGNMENT_LOST = -142
    _NOOP = -141
    _AUTO_OFFSET_RESET = -140
    _LOG_TRUNCATION = -139
    _INVALID_DIFFERENT_RECORD = -138
    _DESTROY_BROKER = -137
    UNKNOWN = -1
    NO_ERROR = 0
    OFFSET_OUT_OF_RANGE = 1
    INVALID_MSG = 2
    UNKNOWN_TOPIC_OR_PART = 3
    INVALID_MSG_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_FOR_PARTITION = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MSG_SIZE_TOO_LARGE = 10
    STALE_CTRL_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133


# Short texts in our own words; the reason of a KafkaError has the details.
_TEXTS: Final[dict[int, str]] = {
    -199: "Malformed message or response",
    -198: "Compressed data could not be inflated",
    -197: "Client is being closed",
    -196: "Communication with the broker failed",
    -195: "Connection to the broker failed or was lost",
    -194: "A system resource is exhausted",
    -193: "Host name could not be resolved",
    -192: "Message was not delivered within its time limit",
    -191: "End of partition reached",
    -190: "Partition does not exist in the cluster",
    -189: "File operation failed",
    -188: "Topic does not exist in the cluster",
    -187: "No broker can be reached",
    -186: "Invalid argument or configuration value",
    -185: "Operation did not finish within its time limit",
    -184: "Queue is full",
    -183: "Too few in-sync replicas",
    -182: "Broker's address or id changed",
    -181: "TLS failed",
    -180: "Group coordinator is not known yet",
    -179: "Group is not known",
    -178: "Operation is still in progress",
    -177: "An earlier operation is still in progress",
    -176: "Operation conflicts with an existing subscription",
    -175: "Partitions must be assigned",
    -174: "Partitions must be revoked",
    -173: "Operation conflicts with the current state",
    -172: "Operation is not allowed in the current state",
    -171: "Protocol is not known",
    -170: "Operation is not implemented",
    -169: "Authentication failed",
    -168: "No offset is stored",
    -167: "Request or result has been superseded",
    -166: "Request expired before it was sent",
    -165: "Broker lacks a needed feature",
    -164: "Waiting for metadata",
    -163: "Operation was interrupted",
    -162: "Key could not be serialized",
    -161: "Value could not be serialized",
    -160: "Key could not be deserialized",
    -159: "Value could not be deserialized",
    -158: "Response is incomplete",
    -157: "Object is read-only",
    -156: "No such entry",
    -155: "Data ends in the middle of a value",
    -154: "Value has the wrong type",
    -153: "Operation should be retried",
    -152: "Removed from the queue before it was sent",
    -151: "Dropped while awaiting its response",
    -150: "Client cannot continue: fatal error",
    -149: "State is inconsistent",
    -148: "Continuing would leave a gap in the sequence",
    -147: "Application did not poll within max.poll.interval.ms",
    -146: "Broker is not known",
    -145: "Feature is not configured",
    -144: "A newer client instance has replaced this one",
    -143: "Error raised by the application",
    -142: "Group assignment was lost",
    -141: "Operation had nothing to do",
    -140: "No valid offset, and the reset policy is to fail",
    -139: "Partition's log was truncated below the consumed position",
    -138: "Another record of the same batch was rejected",
    -137: "Broker connection was closed and will not return",
    -1: "Broker reported an unexpected error",
    0: "No error",
    1: "Offset is outside the partition's log",
    2: "Record batch is corrupt",
    3: "Topic or partition is unknown to the broker",
    4: "Fetch size is invalid",
    5: "Partition has no leader at the moment",
    6: "Broker is neither leader nor a suitable follower of the partition",
    7: "Request exceeded its time limit on the broker",
    8: "Broker is not available",
    9: "Replica is not available",
    10: "Message exceeds the broker's size limit",
    11: "Controller epoch is outdated",
    12: "Metadata given with the offset is too long",
    13: "Broker lost a connection it needed",
    14: "Coordinator is still loading its state",
    15: "Coordinator is not available",
    16: "Broker is not the coordinator",
    17: "Topic name is invalid, or the topic may not be accessed",
    18: "Record batch exceeds the segment size",
    19: "Too few in-sync replicas to accept the write",
    20: "Written, but to too few in-sync replicas",
    21: "Required acks value is invalid",
    22: "Group generation is not the current one",
    23: "Group members share no protocol",
    24: "Group id is invalid",
    25: "Group has no member with this id",
    26: "Session timeout is outside the broker's limits",
    27: "Group is rebalancing",
    28: "Offset commit is too large",
    29: "Not authorized for the topic",
    30: "Not authorized for the group",
    31: "Not authorized for the cluster",
    32: "Timestamp is outside the accepted range",
    33: "SASL mechanism is not enabled on the broker",
    34: "Request does not fit the state of the SASL exchange",
    35: "Broker does not support the request's version",
    36: "Topic already exists",
    37: "Number of partitions is invalid",
    38: "Replication factor is invalid",
    39: "Replica assignment is invalid",
    40: "Broker rejected the configuration",
    41: "Broker is not the controller",
    42: "Broker rejected the request as invalid",
    43: "Topic's message format does not support the request",
    44: "A policy of the broker forbids the request",
    45: "Producer sequence number is out of order",
    46: "Producer sequence number is a duplicate",
    47: "Producer epoch is outdated",
    48: "Transaction is in the wrong state",
    49: "Producer id does not belong to the transactional id",
    50: "Transaction timeout exceeds the broker's limit",
    51: "Another operation on the transaction is in progress",
    52: "Transaction coordinator has been replaced",
    53: "Not authorized for the transactional id",
    54: "Security features are disabled on the broker",
    55: "Broker did not attempt the operation",
    56: "Broker's disk failed",
    57: "Log directory does not exist on the broker",
    58: "SASL authentication failed",
    59: "Producer id is unknown to the broker",
    60: "Partition is being reassigned",
    61: "Delegation tokens are disabled on the broker",
    62: "Delegation token does not exist",
    63: "Delegation token belongs to another principal",
    64: "Delegation tokens may not be requested on this connection",
    65: "Not authorized for the delegation token",
    66: "Delegation token has expired",
    67: "Principal type is not supported",
    68: "Group still has members",
    69: "Group does not exist",
    70: "Fetch session does not exist on the broker",
    71: "Fetch session epoch does not match the broker's",
    72: "Leader has no listener that matches the one in use",
    73: "Topic deletion is disabled on the broker",
    74: "Leader epoch of the request is older than the broker's",
    75: "Leader epoch of the request is newer than the broker's",
    76: "Compression type is not supported by this request",
    77: "Broker epoch is outdated",
    78: "New leader does not know the offset yet",
    79: "Member must join again with the id from the coordinator",
    80: "Preferred leader is not available",
    81: "Group has reached its size limit",
    82: "Another member took over this group.instance.id",
    83: "No replica is eligible to lead the partition",
    84: "Leader election is not needed",
    85: "No reassignment is in progress",
    86: "Group is subscribed to the topic",
    87: "Broker rejected the record",
    88: "Offsets wait for a transaction to end",
    89: "Throttling quota is exceeded",
    90: "A newer producer of this transactional id took over",
    91: "Request names a resource that does not exist",
    92: "Request names a resource twice",
    93: "Credential does not meet the broker's requirements",
    94: "Voter sets of sender and receiver differ",
    95: "Feature update has an invalid version",
    96: "Features could not be updated",
    97: "Forwarded principal could not be read",
    98: "Snapshot does not exist",
    99: "Position is outside the snapshot",
    100: "Topic id is unknown to the broker",
    101: "Broker id is already registered",
    102: "Broker id is not registered",
    103: "Topic id and topic name do not belong together",
    104: "Cluster id belongs to another cluster",
    105: "Transactional id does not exist",
    106: "Fetch session mixes topic ids and topic names",
    107: "Replica may not join the in-sync set",
    108: "Another leader was elected by the change",
    109: "Offset has moved to tiered storage",
    110: "Member epoch is fenced by the coordinator",
    111: "group.instance.id is still held by another member",
    112: "Server-side assignor is not supported",
    113: "Member epoch is outdated",
    114: "Request was sent to the wrong kind of endpoint",
    115: "Kind of endpoint is not supported",
    116: "Controller id is unknown",
    117: "Telemetry subscription id is unknown or outdated",
    118: "Telemetry exceeds the broker's size limit",
    119: "Controller rejected the broker's registration",
    120: "Transaction failed and must be aborted",
    121: "Share-group record is in the wrong state",
    122: "Share session does not exist",
    123: "Share session epoch does not match the broker's",
    124: "Share-group state epoch is fenced",
    125: "Voter key does not match the replica",
    126: "Voter is already in the voter set",
    127: "Voter is not in the voter set",
    128: "Regular expression is invalid",
    129: "Metadata is too old: bootstrap again",
    130: "Streams topology is invalid",
    131: "Streams topology epoch is invalid",
    132: "Streams topology epoch is fenced",
    133: "Broker has reached its limit of share sessions",
}

# Protocol codes: RetriableException and its subclasses in Kafka 4.3. Local codes: errors that librdkafka's request
# layer retries, and errors that end when the client finds a broker, the coordinator or metadata.
# librdkafka's phrases for its local codes: programs search texts for them. Interface data, so in its words.
_PHRASES: Final[dict[int, str]] = {
    -199: "Local: Bad message format",
    -198: "Local: Invalid compressed data",
    -197: "Local: Broker handle destroyed for termination",
    -196: "Local: Communication failure with broker",
    -195: "Local: Broker transport failure",
    -194: "Local: Critical system resource failure",
    -193: "Local: Host resolution failure",
    -192: "Local: Message timed out",
    -191: "Broker: No more messages",
    -190: "Local: Unknown partition",
    -189: "Local: File or filesystem error",
    -188: "Local: Unknown topic",
    -187: "Local: All broker connections are down",
    -186: "Local: Invalid argument or configuration",
    -185: "Local: Timed out",
    -184: "Local: Queue full",
    -183: "Local: ISR count insufficient",
    -182: "Local: Broker node update",
    -181: "Local: SSL error",
    -180: "Local: Waiting for coordinator",
    -179: "Local: Unknown group",
    -178: "Local: Operation in progress",
    -177: "Local: Previous operation in progress",
    -176: "Local: Existing subscription",
    -175: "Local: Assign partitions",
    -174: "Local: Revoke partitions",
    -173: "Local: Conflicting use",
    -172: "Local: Erroneous state",
    -171: "Local: Unknown protocol",
    -170: "Local: Not implemented",
    -169: "Local: Authentication failure",
    -168: "Local: No offset stored",
    -167: "Local: Outdated",
    -166: "Local: Timed out in queue",
    -165: "Local: Required feature not supported by broker",
    -164: "Local: Awaiting cache update",
    -163: "Local: Operation interrupted",
    -162: "Local: Key serialization error",
    -161: "Local: Value serialization error",
    -160: "Local: Key deserialization error",
    -159: "Local: Value deserialization error",
    -158: "Local: Partial response",
    -157: "Local: Read-only object",
    -156: "Local: No such entry",
    -155: "Local: Read underflow",
    -154: "Local: Invalid type",
    -153: "Local: Retry operation",
    -152: "Local: Purged in queue",
    -151: "Local: Purged in flight",
    -150: "Local: Fatal error",
    -149: "Local: Inconsistent state",
    -148: "Local: Gap-less ordering would not be guaranteed if proceeding",
    -147: "Local: Maximum application poll interval (max.poll.interval.ms) exceeded",
    -146: "Local: Unknown broker",
    -145: "Local: Functionality not configured",
    -144: "Local: This instance has been fenced by a newer instance",
    -143: "Local: Application generated error",
    -142: "Local: Group partition assignment lost",
    -141: "Local: No operation performed",
    -140: "Local: No offset to automatically reset to",
    -139: "Local: Partition log truncation detected",
    -138: "Local: an invalid record in the same batch caused the failure of this message too",
    -137: "Local: Broker handle destroyed without termination",
}

_RETRIABLE: Final[frozenset[int]] = frozenset({
    -195, -193, -187, -185, -182, -180, -166, -164, -153, -137,
    2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89, 100, 103, 106,
    122, 123, 133,
})  # fmt: skip

# Python 3.13 adds __firstlineno__ to every class; it is not a code.
_NAMES: Final[dict[int, str]] = {
    code: name for name, code in vars(Codes).items() if isinstance(code, int) and not name.startswith("__")
}


def name(code: int) -> str:
    """Return the name of a code, such as ``UNKNOWN_TOPIC_OR_PART``.

    An unknown number is ``ERR_<code>?``.
    """
    return _NAMES.get(code) or f"ERR_{code}?"


def text(code: int) -> str:
    """Return the short text of a code, a local one with librdkafka's phrase; ``Err-<code>?`` for an unknown number."""
    return with_phrase(code, _TEXTS.get(code) or f"Err-{code}?")


def with_phrase(code: int, sentence: str) -> str:
    """Return a sentence about an error with librdkafka's phrase for the code after it, if the code is a local one."""
    phrase = _PHRASES.get(code)
    return sentence if phrase is None or phrase.partition(": ")[2] in sentence else f"{sentence} ({phrase})"


def is_retriable(code: int) -> bool:
    """Return whether the same request may succeed later, without a change."""
    return code in _RETRIABLE
