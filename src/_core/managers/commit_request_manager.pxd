# CommitRequestManager: OffsetCommit, and the interval's commits. thread: N.


cdef class CommitRequestManager(RequestManager):
    cdef CoordinatorRequestManager coordinator   # thread: N
    cdef CommittedRequestManager committed       # thread: N (OffsetFetch)
    cdef map[uint64_t, QueuedCommit] queue       # thread: N (by sequence: in the order they were made)
    cdef uint64_t next_sequence                  # thread: N
    cdef SentCommit sent                         # thread: N
    cdef bint in_flight                          # thread: N
    cdef int64_t sent_us                         # thread: N
    cdef int64_t names_until_ms                  # thread: N (a topic id was not known to the broker: names until then)
    cdef uint64_t failures_seen                  # thread: N (of the coordinator)
    cdef CommitMerging merging                   # thread: N
    cdef size_t held_left                        # thread: N (commits in the queue that are held)
    cdef size_t automatic_left                   # thread: N (of the interval, not tried yet)
    cdef int64_t automatic_due_ms                # thread: N (0: nothing is assigned)
    cdef int32_t fenced_by                       # thread: N
    cdef int32_t latest_error                    # thread: N (of the latest answer to an OffsetCommit)

    # What the others of the loop share with it and with `committed`.
    # Take over one reference each; completed when the coordinator has answered, or at the deadline.
    cdef void commit(self, CommitEvent* event, int64_t now_ms) noexcept nogil
    cdef void fetch_committed(self, FetchCommittedEvent* event, int64_t now_ms) noexcept nogil
    # The automatic commit of a revocation or a leave, made from what its event carried: held from the beginning. It
    # fails at once if the membership was lost meanwhile.
    cdef void commit_departing(self, vector[PartitionOffset]& offsets, int64_t deadline_ms,
                               int64_t now_ms) noexcept nogil
    # A revocation, a rejoin or a leave begins: every commit accepted so far ends before the coordinator hears of it.
    # `owned` (sorted): what this member owned until now; their offsets go out under any newer epoch meanwhile.
    cdef void hold(self, const vector[TopicPartition]& owned) noexcept nogil
    # Held commits that have not ended: whoever wants to go waits.
    cdef bint held_busy(self) noexcept nogil
    # The time of a leave is over: held commits fail as timed out.
    cdef void give_up_held(self, int64_t now_ms) noexcept nogil
    # The coordinator refused a commit of the present membership: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
    # FENCED_INSTANCE_ID or STALE_MEMBER_EPOCH, reported once; else 0. The protocol's manager asks by a heartbeat.
    cdef int32_t take_fence(self) noexcept nogil
    # The member is no longer one, or not with these partitions: what has not been sent fails locally.
    cdef void on_lost(self, int64_t now_ms) noexcept nogil
    # The session of this member is over: its commits end, and no other one is sent until the coordinator answers.
    cdef void on_session_over(self, int64_t now_ms) noexcept nogil
    # private
    cdef void _queue(self, CommitEvent* event, bint departing, int64_t now_ms) noexcept nogil
    cdef bint _session_is_over(self) noexcept nogil
    cdef void _note_on_wire(self) noexcept nogil
    cdef bint _has_untried(self) noexcept nogil
    cdef int64_t _poll_commits(self, int64_t now_ms) noexcept nogil
    cdef int64_t _poll_interval(self, int64_t now_ms) noexcept nogil
    cdef void _begin_interval_commit(self, int64_t now_ms) noexcept nogil
    cdef void _send(self, int32_t node, int64_t now_ms) noexcept nogil
    cdef void _gather(self, int64_t now_ms) noexcept nogil
    cdef bint _refuse(self, QueuedCommit* queued, size_t i, int64_t now_ms) noexcept nogil
    cdef bint _is_ours(self, QueuedCommit* queued, size_t i) noexcept nogil
    cdef void _retry_with_newer(self, uint64_t sequence) noexcept nogil
    cdef void _drop(self, uint64_t sequence, QueuedCommit* queued) noexcept nogil
    cdef bint _is_joining(self) noexcept nogil
    cdef void _expire_merged(self, QueuedCommit* queued, int64_t now_ms) noexcept nogil
    cdef void _out_of_time(self, uint64_t sequence, int64_t now_ms) noexcept nogil
    cdef Status _why_late(self, bint sync) noexcept nogil
    cdef bint _may_retry(self, QueuedCommit* queued, size_t i) noexcept nogil
    cdef void _choose(self, uint64_t sequence, QueuedCommit* queued, size_t i) noexcept nogil
    cdef void _fill(self, BodyOf[OffsetCommitRequest]* body, int64_t now_ms) noexcept nogil
    cdef void _answer_rest(self, int32_t code, int64_t now_ms) noexcept nogil
    cdef void _answer(self, SentOffset* sent, int32_t code, int32_t node_id, int64_t now_ms) noexcept nogil
    cdef bint _is_present_member(self) noexcept nogil
    cdef void _answer_commit(self, SentOffset* sent, size_t number, int32_t code) noexcept nogil
    cdef bint _may_send(self, QueuedCommit* queued, int64_t now_ms) noexcept nogil
    cdef bint _is_outside(self, QueuedCommit* queued) noexcept nogil
    cdef void _settle(self, int64_t now_ms) noexcept nogil
    cdef void _fail_without_coordinator(self, int64_t now_ms) noexcept nogil
    cdef void _done(self, QueuedCommit* queued, size_t i, int32_t code) noexcept nogil
    cdef void _finish_all(self, vector[uint64_t]& over, int64_t now_ms) noexcept nogil
    cdef void _finish(self, uint64_t sequence, int32_t code, const char* why, int64_t now_ms) noexcept nogil
    cdef void _notify(self, CommitEvent* event, const Status& status, MergedCommitsHold& merged,
                    bint whole) noexcept nogil
