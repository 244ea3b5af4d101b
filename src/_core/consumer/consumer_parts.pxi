"""Owns: ConsumerParts, the parts of a consumer: it builds and connects them, starts the network thread and ends it.

thread: A, at the start and the end of a consumer; each part states its thread. Never: takes part in a call, drops a
part while the thread runs, drops anything in the child of a fork that another thread may have been changing in the
parent.
"""


cdef extern from "base/log.hpp" namespace "kc" nogil:
    const uint32_t DBG_CONF


cdef void room_in_buffer(void* network) noexcept nogil:
    (<Network>network).wakeup()


# A collector's tp_clear would set the attributes of a live loop to None. The Python subclass is collected through its
# __dict__, and __dealloc__ ends the network thread first.
@cython.no_gc
cdef class ConsumerParts:
    """The parts of a consumer; ConsumerCore works with them."""

    def __cinit__(self, *args, **kwargs):
        self.clock = Clock()
        self.fork_generation = fork_count
        self.pool = BlockPool.create()
        if self.pool == NULL:
            raise MemoryError("out of memory for the fetch buffer")

    def _open(self, settings, version, Network network=None, Clock clock=None):
        """Build the parts from kconsumer.config.Settings, and start the network thread.

        With `network` given nothing is started: a test drives the loop with _run_once().
        """
        cdef NetworkClient client
        cdef NetworkConfig network_config
        cdef int rc
        if self.opened:
            raise RuntimeError("this consumer is already initialized")
        if clock is not None:
            self.clock = clock
        if not self.background.wakeup.ok() or not self.background.events_ready.ok():
            raise OSError("no file descriptor left for the consumer: raise ulimit -n")
        configure_fetch(&self.config, settings)
        configure_running_fetch(&self.config, settings)
        configure_backoff(&self.backoff, settings)
        configure_log(&self.background.log, settings)
        self._log_start(settings, version)
        self.threaded = network is None
        if network is None:
            self.backoff.jitter_seed = <uint64_t>int.from_bytes(os.urandom(8), "little")
            client = NetworkClient()
            configure_network(network_config, settings, version)
            rc = client.open(network_config, self.pool, &self.background.log, self.clock)
            if rc != 0:
                raise OSError(rc, "cannot open the consumer's selector")
            network = client
        self.network = network
        self._build(settings)
        self.pool.set_on_room(room_in_buffer, <void*>self.network)
        self.opened = True
        if self.threaded:
            rc = self.network_thread.start()
            if rc != 0:
                raise OSError(rc, "cannot start the network thread")

    def _log_start(self, settings, version):
        """Log the start; under any `debug` context INIT is the first line, as in librdkafka."""
        cdef LogQueue* log = &self.background.log
        if log.debug.load() == 0:
            return
        log.push(7, b"INIT", utf8(f"kconsumer {version} initialized (client.id {settings.client_id}, debug "
                                  f"{','.join(sorted(settings.debug))})"))
        if log.wants(DBG_CONF):
            for line in settings.described():
                log.push(7, b"CONF", utf8(line))
        self.background.announce()

    def _set_fetch_config(self, settings):
        """Set the fetcher's settings, which may also change while it runs."""
        configure_running_fetch(&self.config, settings)
        if self.network is not None:
            self.network.wakeup()

    def _build(self, settings):
        cdef ManagerContext context = ManagerContext()
        self.delegate = NetworkClientDelegate(self.network, self.clock)
        self.subscription = SubscriptionState()
        self.positions = FetchPositions(self.subscription)
        self.positions.config = &self.config
        context.delegate = self.delegate
        context.positions = self.positions
        context.background = &self.background
        context.backoff = &self.backoff
        context.config = &self.config
        context.counters = &self.counters
        context.pool = self.pool
        context.group = &self.group
        context.member = &self.member
        context.shared = &self.shared
        context.liveness = &self.liveness
        self.metadata = MetadataRequestManager(context)
        self.offsets = OffsetsRequestManager(context, self.metadata)
        self.fetch_sender = FetchSender(context, self.metadata)
        self.decoder = FetchDecoder(self.fetch_sender, self.positions)
        self.decoder.buffer = &self.buffer
        self.decoder.background = &self.background
        self.decoder.pool = self.pool
        self.decoder.config = &self.config
        self.decoder.counters = &self.counters
        self.decoder.clock = self.clock
        self.decoder.idle = &self.idle
        self.processor = ApplicationEventProcessor(self.metadata, self.offsets)
        self.application = ApplicationEventQueue(self.network)
        self.handler = FetchHandler(self.subscription, self.network)
        self.handler.buffer = &self.buffer
        self.handler.background = &self.background
        self.handler.pool = self.pool
        self.handler.config = &self.config
        self.handler.counters = &self.counters
        self.handler.clock = self.clock
        self.decoder.handler = self.handler
        self._build_thread(settings, context)

    def _group_managers(self, settings, ManagerContext context):
        return ()

    def _build_thread(self, settings, ManagerContext context):
        cdef ConsumerNetworkThread n = ConsumerNetworkThread()
        n.clock = self.clock
        n.delegate = self.delegate
        n.application = self.application
        n.processor = self.processor
        # The list of managers, in the order in which N polls them. The group is first: in this turn the fetcher learns
        # which partitions it revokes or starts. Metadata is after all that may need an update: it is sent in this turn.
        self.managers = (*self._group_managers(settings, context), self.offsets, self.fetch_sender, self.metadata)
        n.managers = RequestManagers(context, *self.managers)
        n.positions = self.positions
        n.fetch_sender = self.fetch_sender
        n.decoder = self.decoder
        n.background = &self.background
        n.counters = &self.counters
        n.instance_name = utf8(settings.instance_name)
        n.client_id = utf8(settings.client_id)
        self.idle.start(self.clock.now_us())
        n.started_ms = self.clock.now_ms()
        n.statistics_interval_ms = settings.statistics_interval_ms
        n.statistics_due_ms = n.started_ms + n.statistics_interval_ms
        self.network_thread = n

    def __dealloc__(self):
        if self.in_child():
            self._leave_to_parent()
            return
        self.stop_thread()
        self.pool.set_on_room(NULL, NULL)
        # Drop them before the C++ members, into which they point: Cython drops Python attributes after those.
        self.network_thread = None
        self.managers = None
        self.handler = None
        self.decoder = None
        self.fetch_sender = None
        self.offsets = None
        self.metadata = None
        self.processor = None
        self.application = None
        self.positions = None
        self.delegate = None
        self.network = None
        self.pool.unref()

    cdef void _leave_to_parent(self) noexcept:
        """Close only descriptors, in the child of a fork.

        Other threads may have been changing everything else in the parent.

        N does not exist in the child, nor does any other thread that was in a call.
        """
        if isinstance(self.network, NetworkClient):
            (<NetworkClient>self.network).abandon()
        if self.network_thread is not None:
            self.network_thread.thread.forget()
        for part in (self.network_thread, self.managers, self.handler, self.decoder, self.fetch_sender, self.offsets,
                     self.metadata, self.processor, self.application, self.positions, self.delegate, self.network,
                     self.subscription):
            never_free(part)
        self.background.wakeup.release()
        self.background.events_ready.release()
        leak(self.background)
        leak(self.buffer)
        leak(self.member)
        leak(self.shared)

    cdef void stop_thread(self) noexcept:
        """End N, and wait for its end; the child of a fork has no N to wait for."""
        if self.opened and self.threaded and self.network_thread is not None and not self.in_child():
            self.network_thread.stop_now.store(True)
            self.network.wakeup()
            with nogil:
                self.network_thread.join()

    cdef bint in_child(self) noexcept nogil:
        """Whether this process was forked after the consumer was made."""
        return self.fork_generation != fork_count


cdef extern from "Python.h":
    void never_free "Py_INCREF"(object)
