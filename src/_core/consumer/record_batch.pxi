"""Owns: RecordBatch, consecutive rows of one arena, as a sequence of Messages and as Arrow (PyCapsule interface).

Threads: any; a batch is immutable, and pins its arena and the fetched blocks until it and all Arrow data made from it
are freed. Never: copies keys or values unless the requested schema needs another layout.
"""


cdef enum:
    MADE_AT_ONCE = 64  # messages that iteration creates ahead


cdef int check(Status status) except -1:
    if not status.ok():
        raise exception_for(status.code, status.detail.data()[:status.detail.size()].decode())
    return 0


cdef object needed(str name, str method, str remedy):
    """Import an optional package when a method (such as RecordBatch.schema) needs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{method} needs {name} ({error}): pip install {remedy}", name=name) from error


@cython.no_gc
@cython.final
cdef class RecordBatch:
    """Records as columns, made by ``Consumer.consume_batch``.

    A sequence of :class:`Message` (``len``, indexing, slicing without a copy, iteration), and Arrow data for every
    library that reads the PyCapsule interface: ``pyarrow.table(batch)``, ``polars.DataFrame(batch)``,
    ``duckdb.sql("from batch")``, ``pandas.DataFrame.from_arrow(batch)``; or call :meth:`to_arrow`, :meth:`to_polars`,
    :meth:`to_pandas`.

    Columns: topic (dictionary<int32, utf8>), partition (int32), offset (int64), timestamp (timestamp[ms, UTC]),
    timestamp_type (int8, as on the wire: -1 none, 0 create, 1 log append), leader_epoch (int32), key and value
    (binary_view, nullable), and with :meth:`with_headers` headers (list<struct<key, value>>). A requested schema may
    pick columns, and ask for ``binary`` or ``large_binary`` (key, value), ``utf8`` (topic), ``timestamp[us, UTC]``.

    The batch keeps its fetched memory alive; it counts against ``fetch.buffer.memory``.
    """

    def __cinit__(self):
        self.columns = Columns.none()
        self.columns.retain()
        self.source.columns = self.columns

    def __dealloc__(self):
        self.columns.release()

    cdef void look_into(self, Columns* columns) noexcept:
        """Refer to the columns, with a new reference to them."""
        columns.retain()
        self.columns.release()
        self.columns = columns
        self.source.columns = columns

    # ---- sequence

    def __len__(self):
        return self.end - self.start

    def __getitem__(self, index):
        cdef Py_ssize_t n = self.end - self.start
        cdef Py_ssize_t i
        if isinstance(index, slice):
            start, stop, step = index.indices(n)
            if step != 1:
                raise ValueError(f"invalid step {step}: a RecordBatch can only be sliced with step 1")
            return self.slice(self.start + <int32_t>start, self.start + <int32_t>max(start, stop))
        i = PyNumber_AsSsize_t(index, IndexError)
        if i < 0:
            i += n
        if i < 0 or i >= n:
            raise IndexError(f"index {index} is out of range: the RecordBatch has {n} records")
        return self.message_at(self.start + <int32_t>i)

    def __iter__(self):
        cdef int32_t row = self.start
        cdef int32_t end
        while row < self.end:
            end = min(row + <int32_t>MADE_AT_ONCE, self.end, self.columns.runs[self.run_of(row)].row_end)
            yield from self.messages(row, end)
            row = end

    def _by_partition(self):
        """Return a dict of (topic, partition) → list of Message, in order."""
        cdef int32_t row = self.start
        cdef int32_t end
        found = {}
        while row < self.end:
            end = min(self.end, self.columns.runs[self.run_of(row)].row_end)
            made = self.messages(row, end)
            found.setdefault(((<Message>made[0])._topic, (<Message>made[0])._partition), []).extend(made)
            row = end
        return found

    cdef list messages(self, int32_t row, int32_t end):
        """Return the messages of rows of one run, at least one."""
        cdef size_t run = self.run_of(row)
        cdef string* topic = &self.source.topics[self.source.run_topics[run]]
        cdef object name = topic.data()[:topic.size()].decode("utf-8", "surrogateescape")
        cdef int32_t partition = self.source.run_partitions[run]
        cdef int32_t epoch = self.columns.runs[run].leader_epoch
        cdef int8_t kind = self.columns.runs[run].timestamp_type + 1
        return [make_message(self.columns, i, name, partition, epoch, kind) for i in range(row, end)]

    cdef RecordBatch slice(self, int32_t start, int32_t end):
        cdef RecordBatch part = RecordBatch.__new__(RecordBatch)
        part.source = self.source
        part.source.row_start = start
        part.source.row_end = end
        part._headers = self._headers
        part.start = start
        part.end = end
        part.look_into(self.columns)
        return part

    cdef size_t run_of(self, int32_t row) noexcept nogil:
        """Return the index of the run that holds the row; runs are in row order."""
        cdef size_t low = 0
        cdef size_t high = self.columns.runs.size() - 1
        cdef size_t middle
        while low < high:
            middle = (low + high) // 2
            if self.columns.runs[middle].row_end <= row:
                low = middle + 1
            else:
                high = middle
        return low

    cdef Message message_at(self, int32_t row):
        return self.messages(row, row + 1)[0]

    @property
    def nbytes(self):
        """The bytes of keys and values: int."""
        cdef int64_t total = 0
        cdef int32_t row
        with nogil:
            for row in range(self.start, self.end):
                total += self.columns.keys[row].length + self.columns.values[row].length
        return total

    @property
    def next_offsets(self):
        """Return a dict of (topic, partition) → offset after the last row of that partition."""
        found = {}
        cdef size_t run
        cdef string* topic
        if self.start == self.end:
            return found
        for run in range(self.run_of(self.start), self.run_of(self.end - 1) + 1):
            topic = &self.source.topics[self.source.run_topics[run]]
            name = topic.data()[:topic.size()].decode("utf-8", "surrogateescape")
            found[(name, self.source.run_partitions[run])] = (
                self.columns.offsets[min(self.columns.runs[run].row_end, self.end) - 1] + 1)
        return found

    def with_headers(self):
        """Return the same rows, whose Arrow form has the column headers."""
        cdef RecordBatch part = self.slice(self.start, self.end)
        part.source.with_headers = True
        part._headers = True
        return part

    # ---- data frames

    @property
    def schema(self):
        """Schema of :meth:`to_arrow`: pyarrow.Schema. With :meth:`with_headers` it has the column headers.

        Raises:
            ImportError: pyarrow is not installed.
        """
        return needed("pyarrow", "RecordBatch.schema", "'kconsumer[arrow]'").schema(self)

    def to_arrow(self, schema=None):
        """Return a pyarrow.Table; keys and values are only copied if `schema` requires it.

        Args:
            schema: pyarrow.Schema: columns to make, by name, in this order, each with the requested type. Default:
                :attr:`schema`. ``binary`` or ``large_binary`` copies keys and values out of the fetched memory.

        Raises:
            ImportError: pyarrow is not installed.
            KafkaException: `schema` names a column or a type that a batch cannot export.
        """
        return needed("pyarrow", "RecordBatch.to_arrow()", "'kconsumer[arrow]'").table(self, schema=schema)

    def to_pandas(self):
        """Return a pandas.DataFrame with one column per Arrow column.

        The topic is a categorical; key and value are bytes. ``pandas.DataFrame(batch)`` raises TypeError instead,
        because pandas would make one column of messages.

        Raises:
            ImportError: pandas or pyarrow is not installed.
        """
        needed("pandas", "RecordBatch.to_pandas()", "pandas 'kconsumer[arrow]'")
        return needed("pyarrow", "RecordBatch.to_pandas()", "pandas 'kconsumer[arrow]'").table(self).to_pandas()

    def to_polars(self):
        """Return a polars.DataFrame without copying keys and values.

        The same as ``polars.DataFrame(batch)``.

        Raises:
            ImportError: polars is not installed. pyarrow is not needed.
        """
        return needed("polars", "RecordBatch.to_polars()", "polars").DataFrame(self)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("a RecordBatch has columns of several types and cannot become one array: use to_pandas(), "
                        "to_polars() or to_arrow(), or list(batch) for messages")

    # ---- typed columns

    def decode(self, *, value=None, key=None, on_error="null", flatten=False, columns=None, metadata=()):
        """Decode values, keys or both into typed columns, without the GIL.

        Args:
            value: decoder of values (kconsumer.decoding): they become the column value.
            key: decoder of keys: they become the column key.
            on_error: "null": undecodable keys and values are null, and in ``errors`` (or ``key_errors``) of the result;
                "raise": they are an error.
            flatten: replace the struct by the fields of the value (or of the key, if only the key is decoded).
            columns: names of the value's fields to decode, in this order; default: all.
            metadata: names of the records' own columns to put first, such as ``("topic", "partition", "offset")``.

        Returns:
            DecodedBatch, Arrow data through the PyCapsule interface: ``pyarrow.table(decoded)``,
            ``polars.DataFrame(decoded)``, ``duckdb.sql("from decoded")``. It holds the memory of its own columns; with
            key, value or headers in `metadata`, also the memory of the batch.

        Raises:
            SerializationError: a key or value cannot be decoded, and `on_error` is "raise".
            TypeError: there is no decoder.
            ValueError: there is no such column, or two columns have the same name.
        """
        return decode_batch(self, value, key, on_error, flatten, columns, metadata)

    def value_source(self, bint keys):
        """Return keys or values of the batch in the form for decoders; for internal use."""
        cdef ValueSource source = ValueSource.__new__(ValueSource)
        cdef Columns* c = self.columns
        cdef size_t i
        source.rows.length = self.end - self.start
        source.rows.offset = self.start
        source.rows.views = c.keys if keys else c.values
        if keys and c.key_nulls > 0:
            source.rows.validity = c.key_validity
        elif not keys and c.value_nulls > 0:
            source.rows.validity = c.value_validity
        for i in range(c.buffers.size()):
            source.rows.buffers.push_back(c.buffers[i].data)
            source.rows.buffer_bytes.push_back(c.buffer_bytes[i])
        source.rows.headers = c.headers
        source.rows.schema_header.assign(b"__key_schema_id" if keys else b"__value_schema_id")
        source.keys = keys
        source.topics = tuple([self.source.topics[i].data()[:self.source.topics[i].size()].decode("utf-8", "replace")
                               for i in range(self.source.topics.size())])
        source.owner = self
        return source

    # ---- Arrow

    def __arrow_c_schema__(self):
        cdef ArrowSchema* schema = NULL
        capsule = schema_capsule(&schema)
        check(export_schema(&self.source, NULL, schema))
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        """Implement Arrow's PyCapsule interface: (schema, array) capsules.

        Args:
            requested_schema: capsule of an ArrowSchema: columns by name, each with the requested type.

        Raises:
            KafkaException: the schema names a column or a type that a batch cannot export.
        """
        cdef ArrowSchema* schema = NULL
        cdef ArrowArray* array = NULL
        cdef const ArrowSchema* requested
        cdef Status status
        capsules = schema_capsule(&schema), array_capsule(&array)
        requested = schema_in(requested_schema)
        check(export_schema(&self.source, requested, schema))
        with nogil:
            status = export_array(&self.source, requested, array)
        check(status)
        return capsules

    def __arrow_c_stream__(self, requested_schema=None):
        """Implement Arrow's PyCapsule interface: a capsule of a stream of one array.

        Each call makes a new stream.

        Args:
            requested_schema: as for :meth:`__arrow_c_array__`.

        Raises:
            KafkaException: the schema names a column or a type that a batch cannot export.
        """
        cdef ArrowArrayStream* stream = NULL
        capsule = stream_capsule(&stream)
        check(export_stream(&self.source, schema_in(requested_schema), stream))
        return capsule

    def __reduce__(self):
        raise TypeError("cannot pickle a RecordBatch, which shares the fetched memory: pickle its to_arrow(), "
                        "to_polars() or its messages")

    def __repr__(self):
        return f"<RecordBatch of {len(self)} records, {self.nbytes} bytes>"


cdef RecordBatch make_batch(Columns* columns, int32_t start, int32_t end):
    """Make a batch of rows [start, end); the caller holds the partitions of their runs.

    Returns NULL if there are no rows.
    """
    cdef RecordBatch batch = RecordBatch.__new__(RecordBatch)
    cdef PartitionState* p
    cdef size_t i
    cdef int32_t topic = -1
    if columns == NULL:
        return batch
    batch.look_into(columns)
    batch.start = start
    batch.end = end
    batch.source.row_start = start
    batch.source.row_end = end
    for i in range(columns.runs.size()):
        if columns.runs[i].row_end <= start or columns.runs[i].row_start >= end:
            # Not in the batch, and its partition may no longer exist.
            batch.source.run_topics.push_back(0)
            batch.source.run_partitions.push_back(0)
            continue
        p = <PartitionState*>columns.runs[i].partition
        topic = topic_index(batch, p.topic, topic)
        batch.source.run_topics.push_back(topic)
        batch.source.run_partitions.push_back(p.partition)
    return batch


cdef int32_t topic_index(RecordBatch batch, const string& topic, int32_t last) noexcept:
    cdef size_t i
    if last >= 0 and batch.source.topics[last] == topic:
        return last
    for i in range(batch.source.topics.size()):
        if batch.source.topics[i] == topic:
            return <int32_t>i
    batch.source.topics.push_back(topic)
    return <int32_t>batch.source.topics.size() - 1
