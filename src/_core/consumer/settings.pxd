# Copies kconsumer.config.Settings to the structs of the core. thread: A.

cdef int configure_fetch(FetchConfig* config, settings) except -1
# Copies the settings that may change while the fetcher runs.
cdef int configure_running_fetch(FetchConfig* config, settings) except -1
cdef int configure_backoff(BackoffConfig* config, settings) except -1
cdef int configure_group(GroupConfig* config, settings) except -1
cdef int configure_log(LogQueue* log, settings) except -1
cdef int configure_network(NetworkConfig& config, settings, version) except -1
