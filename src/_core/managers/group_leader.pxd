# GroupLeader: what the leader of a classic group does beyond being a member: the assignment. thread: N.
from kconsumer._core.base.cpp cimport int32_t, string, uint64_t, unordered_map, vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.managers.assignors cimport AssignorKind, GroupMember, TopicInput
from kconsumer._core.managers.membership_manager cimport MembershipManager
from kconsumer._core.protocol.messages.join_group cimport JoinGroupResponse
from kconsumer._core.protocol.messages.sync_group cimport SyncGroupRequest_SyncGroupRequestAssignment
from kconsumer._core.state.fetch_positions cimport FetchPositions


cdef class GroupLeader:
    cdef MembershipManager membership            # thread: N (for metadata of the group's topics)
    cdef FetchPositions positions                # thread: N (cluster cache)
    cdef bint leading                            # thread: N
    cdef vector[GroupMember] members             # thread: N (of the rebalance that is being completed)
    cdef AssignorKind assignor                   # thread: N
    cdef vector[string] topics                   # thread: N (sorted; what the group's members subscribe)
    cdef uint64_t fresh_from                     # thread: N (MetadataRequestManager.updates that `ready` waits for)
    cdef uint64_t metadata_seen                  # thread: N (MetadataRequestManager.updates)
    cdef unordered_map[string, int32_t] counts   # thread: N (partitions of each topic when they were assigned)
    cdef unordered_map[string, uint64_t] places  # thread: N (and, where this client has a rack, the racks they were in)

    # Elected: reads the members. An error fails the rebalance.
    cdef Status elect(self, JoinGroupResponse& message) noexcept nogil
    # Whether metadata knows, or knows not to exist, every topic of the group.
    cdef bint ready(self) noexcept nogil
    # The assignment of each member, encoded.
    cdef Status assign(self, vector[SyncGroupRequest_SyncGroupRequestAssignment]& out) noexcept nogil
    # Assigned by somebody before (KIP-814): only watch.
    cdef void watch(self) noexcept nogil
    # Whether topics appeared, disappeared or grew since they were assigned; asked every turn.
    cdef bint changed(self) noexcept nogil
    cdef void resign(self) noexcept nogil
    # private
    cdef int32_t _count(self, const string& topic) noexcept nogil
    cdef uint64_t _place(self, const string& topic) noexcept nogil
    cdef void _racks_of(self, TopicInput& topic) noexcept nogil
