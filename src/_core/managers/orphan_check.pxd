# OrphanCheck: whether a static member that takes the place of its former life must begin a rebalance. thread: N.


cdef extern from "managers/group_owners.hpp" namespace "kc" nogil:
    cdef cppclass GroupOwners:
        GroupOwners()
        vector[string] topics
        Status read(const DescribeGroupsResponse_DescribedGroup& group)
        bint find_orphan(ClusterCache& cluster, TopicPartition& first)


cdef enum OrphanCheckPhase:
    CHECK_NONE
    CHECK_ASK           # DescribeGroups must be sent, or is in flight
    CHECK_METADATA      # waits for metadata of the group's topics
    CHECK_FOUND         # a partition has no owner


cdef class OrphanCheck(RequestManager):
    cdef MembershipManager membership            # thread: N (for metadata of the group's topics)
    cdef CoordinatorRequestManager coordinator   # thread: N
    cdef OrphanCheckPhase phase                  # thread: N
    cdef RequestState asking                     # thread: N
    cdef int64_t due_ms                          # thread: N (of the next DescribeGroups)
    cdef uint64_t round                          # thread: N (changes when a DescribeGroups in flight is given up)
    cdef GroupOwners owners                      # thread: N
    cdef vector[string] held                     # thread: N (topics whose metadata the check needs)
    cdef uint64_t fresh_from                     # thread: N (MetadataRequestManager.updates that the check waits for)

    # Check the present generation from `due_ms` on. It ends with CHECK_FOUND or CHECK_NONE.
    cdef void begin(self, int64_t due_ms) noexcept nogil
    # End the check: its generation is over.
    cdef void drop(self) noexcept nogil
    # private
    cdef void _send(self, int32_t node, int64_t now_ms) noexcept nogil
    cdef void _take(self, DescribeGroupsResponse_DescribedGroup& group, int32_t node_id, int64_t now_ms) noexcept nogil
    cdef void _give_up(self, const string& why) noexcept nogil
    cdef void _look(self) noexcept nogil
