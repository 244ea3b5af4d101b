# GroupLeader: the extra work of the leader of a classic group: the assignment. thread: N.


cdef class GroupLeader:
    cdef MembershipManager membership            # thread: N (for metadata of the group's topics)
    cdef FetchPositions positions                # thread: N (cluster cache)
    cdef ApplicationAssignors application        # thread: N
    cdef bint leading                            # thread: N
    cdef vector[GroupMember] members             # thread: N (of the current rebalance)
    cdef string assignor_name                    # thread: N
    cdef bint by_application                     # thread: N (the application's own assignor)
    cdef AssignorKind assignor                   # thread: N (otherwise)
    cdef bint skip_assignment                    # thread: N (KIP-814: every member keeps its partitions)
    cdef vector[string] topics                   # thread: N (sorted; subscribed by the group's members)
    cdef uint64_t fresh_from                     # thread: N (MetadataRequestManager.updates that `ready` waits for)
    cdef uint64_t metadata_seen                  # thread: N (MetadataRequestManager.updates)
    cdef unordered_map[string, int32_t] counts   # thread: N (partitions of each topic at the assignment)
    cdef unordered_map[string, uint64_t] places  # thread: N (hash of their racks, if this client has a rack)

    # After the election: reads the members. An error fails the rebalance.
    cdef Status elect(self, JoinGroupResponse& message) noexcept nogil
    # Whether metadata knows every topic of the group (or knows that it does not exist), and the application's assignor
    # has answered. The assignor is called when the metadata is complete.
    cdef bint ready(self) noexcept nogil
    # When ready: the application's assignor gave no assignment. Either the application knows the error, or it runs the
    # callback of its leave.
    cdef bint failed(self) noexcept nogil
    # In place of assign(): every member keeps the partitions that it claims. False: the claims are unknown.
    cdef bint keep(self, vector[SyncGroupRequest_SyncGroupRequestAssignment]& out) noexcept nogil
    # Whether any member claims partitions, and so may have offsets to commit.
    cdef bint has_owners(self) noexcept nogil
    # The assignment of each member, encoded; nothing if every member keeps its partitions.
    cdef Status assign(self, vector[SyncGroupRequest_SyncGroupRequestAssignment]& out) noexcept nogil
    # Whether topics appeared, disappeared or grew since the assignment; called every turn.
    cdef bint changed(self) noexcept nogil
    cdef void resign(self) noexcept nogil
    # private
    cdef void _ask(self) noexcept nogil
    cdef bint _in_leave_callback(self) noexcept nogil
    cdef void _inputs(self, vector[TopicInput]& out) noexcept nogil
    cdef void _watch(self) noexcept nogil
    cdef bint _encode(self, const string& member_id, const vector[TopicPartitions]& partitions,
                      const NullableString& user_data,
                      vector[SyncGroupRequest_SyncGroupRequestAssignment]& out) noexcept nogil
    cdef int32_t _count(self, const string& topic) noexcept nogil
    cdef uint64_t _place(self, const string& topic) noexcept nogil
    cdef void _racks_of(self, TopicInput& topic) noexcept nogil
