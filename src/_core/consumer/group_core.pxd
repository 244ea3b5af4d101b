# GroupCore: ConsumerCore with a consumer group: subscription, callbacks of rebalances, commits. thread: A.


cdef class Rebalance:
    cdef RebalanceEvent event               # thread: A
    cdef vector[TopicPartition] partitions  # thread: A
    cdef vector[PartitionState*] states     # thread: A (references)
    cdef vector[PartitionState*] others     # thread: A (references; of an on_revoke: what the member keeps)


cdef class AssignorQuestion:
    cdef AssignorCallHold hold              # thread: A


cdef class GroupCore(ConsumerCore):
    cdef CoordinatorRequestManager coordinator   # thread: N
    cdef CommitRequestManager commits            # thread: N
    cdef MembershipManager membership            # thread: N
    cdef int64_t commit_ms                       # thread: A (default.api.timeout.ms: time limit of a commit())
    cdef bint subscribed                         # thread: A
    cdef uint64_t subscription_epoch             # thread: A (changes with unsubscribe)
    cdef Rebalance giving_up                     # thread: A (its on_revoke or on_lost is running; or None)
    cdef bint in_rebalance                       # thread: A (a rebalance callback is running)
    cdef bint in_assign                          # thread: A (it is on_assign)
    cdef object callback_thread                  # thread: A (the id of the thread that runs it)
    cdef public bint _processed_only             # thread: A (close() does not commit the records of the latest call)
    # private
    cdef object _serving_rebalance(self, Rebalance taken)
    cdef int _begin_assign(self, Rebalance taken) except -1
    cdef int _end_assign(self, Rebalance taken) except -1
    cdef object _passing_assignment(self, Rebalance taken)
    cdef object ask_application(self, BackgroundEvent& event)
    cdef int _begin_revocation(self, Rebalance taken) except -1
    cdef int _end_revocation(self, Rebalance taken) except -1
    cdef int _end_subscription(self, Rebalance leaving, bint closing, LeaveOperation operation, int64_t timeout_us,
                               bint lost) except -1
    cdef int _hide_topics(self, const vector[string]& names, TopicPatterns& matcher) except -1
    cdef int _find_states(self, const vector[TopicPartition]& partitions, vector[PartitionState*]& out) except -1
    cdef int _add_unassigned(self, vector[PartitionState*]& states, vector[PartitionState*]& out) except -1
    cdef int _standing(self, vector[PartitionState*]& states, vector[PartitionOffset]& out, bint all=*) except -1
    cdef int _commit_returned(self) except -1
    cdef int _commit_states(self, vector[PartitionState*]& states) except -1
    cdef int _standing_of_all(self, vector[PartitionOffset]& out, bint all=*) except -1
    cdef bint _drop_rebalances(self, vector[TopicPartition]& given_up) except -1
    cdef int64_t end_deadline(self, int64_t timeout_us) noexcept
    cdef int _note_named(self, const vector[PartitionOffset]& offsets) except -1
