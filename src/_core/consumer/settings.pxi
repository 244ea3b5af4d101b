"""Owns: copying kconsumer.config.Settings, which has checked every value, to the structs of the core.

thread: A, before N starts (configure_running_fetch: also later, the fields are atomics). Never: knows a default.
"""

cdef enum:
    FIRST_BOOTSTRAP_ID = -2

_NEVER_REFRESHED_MS = 0x7FFFFFFFFFFF
_ADDRESS_FAMILIES = {"any": 0, "v4": 4, "v6": 6}
# librdkafka's debug contexts, in the order of the bits of base/log.hpp.
_DEBUG_CONTEXTS = ("generic", "broker", "topic", "metadata", "feature", "queue", "msg", "protocol", "cgrp", "security",
                   "fetch", "interceptor", "plugin", "consumer", "admin", "eos", "mock", "assignor", "conf",
                   "telemetry")


cdef int configure_fetch(FetchConfig* config, settings) except -1:
    policy = settings.auto_offset_reset
    config.max_inflated_batch_bytes = settings.fetch_max_inflated_batch_bytes
    config.max_record_headers = settings.fetch_max_record_headers
    config.check_crcs = settings.check_crcs
    config.read_committed = settings.isolation_level == "read_committed"
    config.connections_are_costly = settings.security_protocol != "plaintext"
    config.partition_eof = settings.enable_partition_eof
    config.allow_auto_create_topics = settings.allow_auto_create_topics
    config.client_rack = utf8(settings.client_rack or "")
    config.metadata_max_age_ms = settings.metadata_refresh_ms or _NEVER_REFRESHED_MS
    config.rebootstrap = settings.metadata_recovery_strategy == "rebootstrap"
    config.rebootstrap_trigger_ms = settings.metadata_recovery_rebootstrap_trigger_ms
    config.reset_policy = {"earliest": RESET_EARLIEST, "latest": RESET_LATEST, "error": RESET_NONE,
                           "by_duration": RESET_BY_DURATION}[policy.policy]
    config.reset_duration_ms = policy.duration_ms
    return 0


cdef int configure_running_fetch(FetchConfig* config, settings) except -1:
    config.min_bytes.store(settings.fetch_min_bytes)
    config.wait_max_ms.store(settings.fetch_wait_max_ms)
    config.max_bytes.store(settings.fetch_max_bytes)
    config.max_partition_bytes.store(settings.max_partition_fetch_bytes)
    config.buffer_memory.store(settings.fetch_buffer_memory)
    return 0


cdef int configure_backoff(BackoffConfig* config, settings) except -1:
    config.retry_backoff_ms = settings.retry_backoff_ms
    config.retry_backoff_max_ms = settings.retry_backoff_max_ms
    config.request_timeout_ms = settings.socket_timeout_ms
    return 0


cdef int configure_group(GroupConfig* config, settings) except -1:
    config.group_id = utf8(settings.group_id or "")
    config.group_instance_id = utf8(settings.group_instance_id or "")
    config.consumer_protocol = settings.group_protocol == "consumer"
    config.cooperative = settings.cooperative
    config.remote_assignor = utf8(settings.group_remote_assignor or "")
    config.strategies.clear()
    for name in settings.assignor_names:
        config.strategies.push_back(utf8(name))
    config.assignors_have_user_data = settings.assignors_have_user_data
    config.client_id = utf8(settings.client_id)
    config.rack = utf8(settings.client_rack or "")
    config.session_timeout_ms = (settings.consumer_session_timeout_ms if config.consumer_protocol
                                 else settings.session_timeout_ms)
    config.heartbeat_interval_ms = settings.heartbeat_interval_ms
    config.max_poll_interval_ms = settings.max_poll_interval_ms
    config.application_wait_ms = settings.rebalance_application_wait_ms
    config.auto_commit = settings.enable_auto_commit
    config.auto_commit_interval_ms = settings.auto_commit_interval_ms
    config.auto_offset_store = settings.enable_auto_offset_store
    config.exclude_internal_topics = settings.exclude_internal_topics
    return 0


cdef int configure_log(LogQueue* log, settings) except -1:
    cdef uint32_t bits = 0
    for name in settings.debug:
        bits |= 0xfffff if name == "all" else 1 << _DEBUG_CONTEXTS.index(name)
    log.debug.store(bits)
    log.max_level.store(settings.log_level)
    return 0


cdef int configure_network(NetworkConfig& config, settings, version) except -1:
    cdef NodeAddress address
    config.client_id = utf8(settings.client_id)
    config.software_name = utf8(settings.client_software_name)
    config.software_version = utf8(settings.client_software_version or version)
    for i, endpoint in enumerate(settings.bootstrap_servers):
        address.id = FIRST_BOOTSTRAP_ID - <int32_t>i
        address.host = utf8(endpoint.host)
        address.port = endpoint.port
        config.bootstrap.push_back(address)
    config.reconnect_backoff_ms = settings.reconnect_backoff_ms
    config.reconnect_backoff_max_ms = settings.reconnect_backoff_max_ms
    config.socket_timeout_ms = settings.socket_timeout_ms
    config.connection_setup_timeout_ms = settings.socket_connection_setup_timeout_ms
    config.connections_max_idle_ms = settings.connections_max_idle_ms
    config.socket_send_buffer_bytes = settings.socket_send_buffer_bytes
    config.socket_receive_buffer_bytes = settings.socket_receive_buffer_bytes
    config.socket_keepalive = settings.socket_keepalive_enable
    config.socket_nagle_disable = settings.socket_nagle_disable
    config.socket_max_fails = settings.socket_max_fails
    config.address_family = _ADDRESS_FAMILIES[settings.broker_address_family]
    config.broker_address_ttl_ms = settings.broker_address_ttl
    config.canonical_bootstrap = settings.client_dns_lookup == "resolve_canonical_bootstrap_servers_only"
    config.api_version_request = settings.api_version_request
    config.cluster_check = (settings.metadata_cluster_check_enable
                            and settings.metadata_recovery_strategy == "rebootstrap")
    config.log_connection_close = settings.log_connection_close
    config.api_version_request_timeout_ms = settings.api_version_request_timeout_ms
    config.receive_message_max_bytes = settings.receive_message_max_bytes
    config.security.use_tls = settings.security_protocol in ("ssl", "sasl_ssl")
    config.security.use_sasl = settings.security_protocol in ("sasl_plaintext", "sasl_ssl")
    configure_sasl(config.security, settings)
    configure_tls(config.security, settings)
    return 0
