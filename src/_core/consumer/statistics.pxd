# The statistics document of stats_cb, under librdkafka's field names. thread: N.
from kconsumer._core.base.cpp cimport int64_t, string
from kconsumer._core.events.background_event cimport BackgroundEventQueue
from kconsumer._core.managers.fetch_sender cimport FetchSender

cdef string write_statistics(FetchSender sender, BackgroundEventQueue* background, const string& name,
                             const string& client_id, int64_t started_us, int64_t now_us) noexcept nogil
