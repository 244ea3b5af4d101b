# The statistics document of stats_cb, under librdkafka's field names. thread: N.

cdef string write_statistics(FetchSender sender, BackgroundEventQueue* background, const string& name,
                             const string& client_id, int64_t started_us, int64_t now_us) noexcept nogil
