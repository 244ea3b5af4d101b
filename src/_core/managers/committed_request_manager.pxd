# CommittedRequestManager: OffsetFetch. thread: N. CommitRequestManager owns, connects and polls it.


# The answer for one partition, in any version of the response.
cdef struct CommittedAnswer:
    int64_t offset
    int32_t leader_epoch
    int32_t error


cdef class CommittedRequestManager(RequestManager):
    cdef CoordinatorRequestManager coordinator        # thread: N
    cdef map[uint64_t, QueuedQuestion] questions      # thread: N (by number: in the order of the calls)
    cdef uint64_t next_question                       # thread: N
    cdef unordered_map[uint64_t, SentFetch] sent      # thread: N (by cookie)
    cdef uint64_t failures_seen                       # thread: N (of the coordinator)
    cdef int64_t names_until_ms  # thread: N (the broker did not know a topic id: use names until then)
    cdef vector[PartitionState*] due                  # thread: N (scratch of poll)

    # committed(); takes over one reference.
    cdef void ask(self, FetchCommittedEvent* event) noexcept nogil
    # No question waits to be sent.
    cdef bint idle(self) noexcept nogil
    # private
    cdef int64_t _poll_positions(self, int64_t now_ms) noexcept nogil
    cdef int64_t _find_due(self, int64_t now_ms) noexcept nogil
    cdef int64_t _poll_questions(self, int64_t now_ms) noexcept nogil
    cdef void _send_question(self, uint64_t number, QueuedQuestion* question, int32_t node,
                             int64_t now_ms) noexcept nogil
    cdef void _send(self, SentFetch& sent, int32_t node, int64_t now_ms) noexcept nogil
    cdef void _fill(self, BodyOf[OffsetFetchRequest]* body, SentFetch& sent, int64_t now_ms) noexcept nogil
    cdef void _name(self, SentFetch& sent, size_t i, string* topic, int32_t* partition) noexcept nogil
    cdef void _read_topics(self, SentFetch& sent, OffsetFetchResponse& message, int32_t node_id,
                           int64_t now_ms) noexcept nogil
    cdef void _read_group(self, SentFetch& sent, OffsetFetchResponse_OffsetFetchResponseGroup& group, bint by_id,
                          int32_t node_id, int64_t now_ms) noexcept nogil
    cdef void _answer(self, SentFetch& sent, const string& topic, int32_t partition, const CommittedAnswer& answer,
                      const string& metadata, int32_t node_id, int64_t now_ms) noexcept nogil
    cdef void _note_error(self, int32_t code, int32_t node_id, int64_t now_ms) noexcept nogil
    cdef void _answer_position(self, AskedCommitted* asked, const CommittedAnswer& answer,
                               int64_t now_ms) noexcept nogil
    cdef void _answer_question(self, QueuedQuestion* question, size_t i, const CommittedAnswer& answer,
                               const string& metadata) noexcept nogil
    cdef void _end(self, uint64_t cookie, const Status& status, int32_t node_id, int64_t now_ms) noexcept nogil
    cdef void _end_question(self, uint64_t number, const Status& status, bint final, int64_t now_ms) noexcept nogil
    cdef void _retry_position(self, AskedCommitted* asked, int64_t now_ms) noexcept nogil
    cdef void _report_once(self, PartitionState* p, int32_t code, const string& why) noexcept nogil
    cdef void _fail_without_coordinator(self) noexcept nogil
    cdef void _finish(self, uint64_t number, const Status& status) noexcept nogil
