# ApplicationEventProcessor: one branch for each kind of application event. thread: N.


cdef class ApplicationEventProcessor:
    cdef MetadataRequestManager metadata     # thread: N
    cdef OffsetsRequestManager offsets       # thread: N
    cdef MembershipManager membership        # thread: N (None without group.id, where no such event is posted)
    cdef CommitRequestManager commits        # thread: N (None without group.id)
    cdef ApplicationAssignors assignors      # thread: N (None except under group.protocol=classic)
    cdef CloseEvent* closing                 # thread: N (a reference; set by CLOSE)

    cdef void process(self, ApplicationEvent* event, int64_t now_ms) noexcept nogil
