# Assigned partitions, their positions and pauses. thread: both write under lock; N adopts changes by take_changes.

# How N takes partitions away.
cdef enum TakeAway:
    TAKE_FREE    # only if none of their records is in the application's hands
    TAKE_LATE    # the application had its time: the records in its hands are read again
    TAKE_LOST    # another member may own them already: no commit


cdef class SubscriptionState:
    cdef CountedMutex lock                                # shared: lock
    cdef unordered_map[string, PartitionState*] assigned  # shared: lock
    cdef vector[PartitionState*] order                    # shared: lock (the assignment in its given order)
    cdef vector[PartitionState*] changed                  # shared: lock (each holds a reference)
    cdef uint64_t next_epoch                              # shared: lock
    cdef atomic[bint] has_changes                         # shared: atomic (set under lock, read on N without)
    cdef bint group_open                                  # shared: lock (N may change the assignment)
    cdef uint64_t group_epoch                             # shared: lock (of the SubscribeEvent for which it may)
    cdef vector[TopicPartition] of_group                  # shared: lock (sorted: assigned by the group)
    cdef vector[PartitionState*] hands                    # shared: lock (references; written on A)
    cdef uint64_t call                                    # thread: A (number of the latest call that returns records)
    cdef size_t processed                                 # thread: A (how many of `hands` are of earlier calls)
    cdef unordered_map[string, bint] given_up             # shared: lock (by partition: N took it away; no commits)
    cdef unordered_map[string, bint] seen                 # shared: lock (topics that are or were assigned)

    cdef PartitionState* find(self, const string& topic, int32_t partition) noexcept nogil
    cdef bint add(self, const string& topic, int32_t partition, int64_t offset, int32_t leader_epoch) noexcept nogil
    cdef bint remove(self, const string& topic, int32_t partition) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef bint seek(self, const string& topic, int32_t partition, int64_t offset, int32_t leader_epoch) noexcept nogil
    cdef void refetch(self, PartitionState* p, uint64_t position_epoch, int64_t offset) noexcept nogil
    cdef bint set_paused(self, const string& topic, int32_t partition, bint paused) noexcept nogil
    cdef void snapshot(self, vector[PartitionState*]& out) noexcept nogil
    cdef void take_changes(self, vector[PartitionState*]& out) noexcept nogil
    cdef void note(self, PartitionState* p) noexcept nogil
    cdef void open_group(self, uint64_t epoch) noexcept nogil
    cdef void close_group(self, vector[TopicPartition]& held) noexcept nogil
    cdef void held(self, vector[TopicPartition]& out) noexcept nogil
    cdef void hold(self, const vector[TopicPartition]& partitions) noexcept nogil
    cdef bint give(self, const vector[TopicPartition]& partitions, bint replace, uint64_t epoch) noexcept nogil
    cdef bint take_away(self, const vector[TopicPartition]& partitions, uint64_t epoch, TakeAway how,
                        bint auto_offset_store, vector[PartitionOffset]& offsets) noexcept nogil
    cdef void drop_rows(self, const vector[TopicPartition]& partitions) noexcept nogil
    cdef bint refuse_given_up(self, vector[PartitionOffset]& offsets) noexcept nogil
    cdef bint was_assigned(self, const string& topic) noexcept nogil
    cdef bint hide_topics(self, const vector[string]& unsubscribed) noexcept nogil
    cdef void begin_call(self) noexcept nogil
    cdef bint take_in_hand(self, PartitionState* p, uint64_t position_epoch, const Hand& hand) noexcept nogil
    cdef void put_down(self) noexcept nogil
    # private
    cdef void _put_down(self) noexcept nogil
    cdef PartitionState* _add(self, const string& topic, int32_t partition, int64_t offset,
                              int32_t leader_epoch) noexcept nogil
    cdef bint _remove(self, const string& topic, int32_t partition) noexcept nogil
    cdef void _clear(self) noexcept nogil
    cdef bint _in_hand(self, const vector[TopicPartition]& partitions) noexcept nogil
    cdef void _fetch_again(self, PartitionState* p) noexcept nogil
    cdef void _drop(self, PartitionState* p) noexcept nogil
