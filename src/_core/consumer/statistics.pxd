# The statistics document of stats_cb, under librdkafka's field names. thread: N.
from kconsumer._core.base.cpp cimport int64_t, string
from kconsumer._core.network.network_client_delegate cimport NetworkClientDelegate
from kconsumer._core.records.columns cimport BlockPool
from kconsumer._core.state.fetch_config cimport FetchCounters
from kconsumer._core.state.fetch_positions cimport FetchPositions

cdef string write_statistics(NetworkClientDelegate delegate, FetchPositions positions, FetchCounters* counters,
                             BlockPool* pool, const string& client_id, int64_t started_us,
                             int64_t now_us) noexcept nogil
