# ApplicationEventProcessor: one branch per kind of application event. thread: N.
from kconsumer._core.base.cpp cimport int64_t
from kconsumer._core.events.application_event cimport ApplicationEvent, CloseEvent
from kconsumer._core.managers.metadata_request_manager cimport MetadataRequestManager
from kconsumer._core.managers.offsets_request_manager cimport OffsetsRequestManager


cdef class ApplicationEventProcessor:
    cdef MetadataRequestManager metadata     # thread: N
    cdef OffsetsRequestManager offsets       # thread: N
    cdef CloseEvent* closing                 # thread: N (a reference; set by CLOSE)

    cdef void process(self, ApplicationEvent* event, int64_t now_ms) noexcept nogil
