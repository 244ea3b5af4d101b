# Updates FetchPositions.cluster and answers list_topics. thread: N.


cdef class MetadataRequestManager(RequestManager):
    cdef RequestState state                                    # thread: N (of the assignment's topics)
    cdef RequestState news  # thread: N (backoff of responses without the wanted change)
    cdef RequestState lists                                    # thread: N (backoff of list_topics)
    cdef bint update_wanted                                    # thread: N
    cdef bint topics_wanted                                    # thread: N (for topics not known yet: immediately)
    cdef bint news_asked                                       # thread: N (the request in flight is for update_wanted)
    cdef bint large_response                                   # thread: N (of the latest response)
    cdef bint brokers_changed                                  # thread: N (by the current response)
    cdef unordered_map[int32_t, bint] listed                   # thread: N (the brokers of the current response)
    cdef bint has_metadata                                     # thread: N
    cdef bint all_topics_wanted  # thread: N (the client matches patterns: ask for all topics)
    cdef bint all_topics_known                                 # thread: N (a response has listed all topics since then)
    cdef bint racks                                            # thread: N (brokers have racks)
    cdef uint64_t wanted_since                                 # thread: N (counts want_all_topics; a cookie)
    cdef uint64_t updates                                      # thread: N (responses applied to FetchPositions.cluster)
    cdef int64_t updated_ms                                    # thread: N
    cdef vector[NodeLoss] losses                               # thread: N (scratch)
    cdef int64_t failing_since_ms                              # thread: N (0: the last request succeeded)
    cdef bint all_down_reported                                # thread: N
    cdef int64_t misrouted_pause_ms                            # thread: N (after the latest of these rebootstraps)
    cdef int64_t misrouted_again_ms                            # thread: N (no rebootstrap for such a loss before)
    cdef bint unsupported_reported                             # thread: N
    cdef Status unusable                                       # thread: N (why the latest response could not be used)
    cdef uint32_t response_number                              # thread: N (TopicEntry.update)
    cdef deque[TopicMetadataEvent*] waiting                    # thread: N (a reference each)
    cdef unordered_map[uint64_t, TopicMetadataEvent*] asked    # thread: N (by cookie; a reference each)
    cdef string last_cause                                     # thread: N (why the latest connection or request failed)

    cdef void want_update(self) noexcept nogil
    # After a change: the next update does not wait for the backoff of earlier ones.
    cdef void clear_backoff(self) noexcept nogil
    # Ask for an update unless there was one within retry.backoff.ms; returns the value of `updates` that contains it.
    cdef uint64_t want_news(self, int64_t now_ms) noexcept nogil
    # Ask for all topics from now on (immediately), or only for the topics of interest again.
    cdef void want_all_topics(self, bint wanted) noexcept nogil
    cdef void ask(self, TopicMetadataEvent* event) noexcept nogil
    # private
    cdef void _take_losses(self, int64_t now_ms) noexcept nogil
    cdef void _end_late_calls(self, int64_t now_ms) noexcept nogil
    cdef int64_t _poll_lists(self, int64_t now_ms) noexcept nogil
    cdef int64_t _due_ms(self, int64_t now_ms) noexcept nogil
    cdef void _send_update(self, int64_t now_ms) noexcept nogil
    cdef void _send_list(self, TopicMetadataEvent* event, int64_t now_ms) noexcept nogil
    cdef void _check_reachable(self, int64_t now_ms) noexcept nogil
    cdef void _rebootstrap(self, int64_t now_ms, const char* why) noexcept nogil
    cdef void _report_unsupported(self, const Status& status) noexcept nogil
    cdef void _failed(self, Request* request, int64_t now_ms) noexcept nogil
    cdef TopicMetadataEvent* _take_asked(self, uint64_t cookie) noexcept nogil
    cdef void _take_brokers(self, MetadataResponse& message, int64_t now_ms) noexcept nogil
    cdef void _take_topics(self, MetadataResponse& message, bint of_all, int64_t now_ms) noexcept nogil
    cdef bint _is_news(self, MetadataResponse_MetadataResponseTopic& found) noexcept nogil
    cdef void _forget_unnamed(self) noexcept nogil
    cdef void _keep_newer_leaders(self, MetadataResponse_MetadataResponseTopic& found,
                                  TopicEntry* known) noexcept nogil
    cdef void _refuse_response(self, const Status& why, Request* request, int32_t node_id,
                               int64_t now_ms) noexcept nogil
    cdef Status _too_late(self) noexcept nogil
    cdef bint _take_topic(self, MetadataResponse_MetadataResponseTopic& found, int64_t now_ms) noexcept nogil
    cdef void _take_topic_error(self, MetadataResponse_MetadataResponseTopic& found, int64_t now_ms) noexcept nogil
    cdef void _recreated(self, const string& topic) noexcept nogil
    cdef bint _report_missing(self, MetadataResponse& message, int64_t now_ms) noexcept nogil
