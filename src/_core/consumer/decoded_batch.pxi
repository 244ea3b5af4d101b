"""Owns: DecodedBatch, the keys and values of a batch as typed columns, and columns of the records themselves.

Threads: any; it is immutable. Never: decodes (values/value_decoder.pxi), copies a column.
"""


cdef object schema_of(const vector[ArrowField]& fields):
    cdef ArrowSchema* schema = NULL
    cdef ArrowField root
    capsule = schema_capsule(&schema)
    root.format.assign(b"+s")
    root.children = fields
    if not fill_schema(&root, schema):
        raise MemoryError()
    return capsule


cdef bint same_type(const ArrowField* field, const ArrowSchema* wanted) noexcept nogil:
    cdef size_t i
    if field.format != string(wanted.format) or <int64_t>field.children.size() != wanted.n_children:
        return False
    if field.dictionary.empty() != (wanted.dictionary == NULL):
        return False
    if wanted.dictionary != NULL and field.dictionary != string(wanted.dictionary.format):
        return False
    for i in range(field.children.size()):
        if not same_type(&field.children[i], wanted.children[i]):
            return False
    return True


@cython.final
cdef class Chosen:
    """The columns that an Arrow reader requested."""
    cdef vector[ArrowField] fields  # thread: any (immutable)

    def __arrow_c_schema__(self):
        return schema_of(self.fields)


@cython.final
cdef class DecodedBatch:
    """Columns of records with decoded keys or values, made by ``RecordBatch.decode``.

    Arrow data for every library that reads the PyCapsule interface: ``pyarrow.table(decoded)``,
    ``polars.DataFrame(decoded)``, ``duckdb.sql("from decoded")``, ``pandas.DataFrame.from_arrow(decoded)``.
    """
    cdef RecordBatch batch           # the batch whose own columns are exported
    cdef vector[ArrowField] metadata
    cdef vector[ArrowField] _fields  # of all columns; `column` of a decoded one: COLUMN_COUNT + its index in `made_of`
    cdef list made_of                # (DecodedValues, node) of decoded columns
    cdef DecodedValues _key
    cdef DecodedValues _value
    cdef bint flatten

    def __len__(self):
        return len(self.batch)

    @property
    def errors(self):
        """Return the records with an undecodable value, in order: list of RowError.

        Their values are null.
        """
        return [] if self._value is None else self._value.errors

    @property
    def key_errors(self):
        """Return the records with an undecodable key, in order: list of RowError.

        Their keys are null.
        """
        return [] if self._key is None else self._key.errors

    # ---- columns

    cdef bint flattens(self, DecodedValues values):
        """Whether the fields replace the struct: of the value, or of the key if alone."""
        cdef const Plan* plan = values.decoded.get().plan_pointer()
        return self.flatten and plan.nodes[0].type == VALUE_STRUCT and (values is self._value or self._value is None)

    cdef int take_columns(self, names) except -1:
        """Add columns of the records themselves."""
        cdef int column
        for text in names:
            name = text.encode()
            column = find_column(name)
            if column == COLUMN_NONE:
                raise ValueError(f"no column {text!r}: records have topic, partition, offset, timestamp, "
                                 "timestamp_type, leader_epoch, key, value and headers")
            self.metadata.push_back(default_field(column))
        return 0

    cdef int add(self, ArrowField field, DecodedValues values, int32_t node) except -1:
        field.column = COLUMN_COUNT + <int>len(self.made_of)
        self.made_of.append((values, node))
        self._fields.push_back(field)
        return 0

    cdef int lay_out(self) except -1:
        """Lay out the columns.

        Raises:
            ValueError: two columns have the same name.
        """
        cdef ArrowField field, child
        cdef const Plan* plan
        cdef DecodedValues values
        cdef size_t i
        self._fields = self.metadata
        self.made_of = []
        for name, values in ((b"key", self._key), (b"value", self._value)):
            if values is None:
                continue
            plan = values.decoded.get().plan_pointer()
            field = value_field(plan, 0)
            if self.flattens(values):
                for i in range(field.children.size()):
                    child = field.children[i]
                    child.nullable = True  # a bad record's field is null too
                    self.add(child, values, plan.nodes[0].children[i])
            else:
                field.name.assign(<const char*>name)
                self.add(field, values, 0)
        seen = set()
        for i in range(self._fields.size()):
            name = text_of(self._fields[i].name)
            if name in seen:
                raise ValueError(f"two columns have the name {name!r}: leave one out, or do not flatten")
            seen.add(name)
        return 0

    cdef vector[ArrowField] chosen(self, const ArrowSchema* requested) except *:
        """Return the requested columns, by default all; records' own columns as requested."""
        cdef vector[ArrowField] out
        cdef ArrowField field
        cdef const ArrowSchema* wanted
        cdef string name
        cdef size_t at
        cdef int64_t i
        if requested == NULL:
            return self._fields
        if strcmp(requested.format, b"+s") != 0:
            raise exception_for(ERR_INVALID_ARG, f"records can only be exported as a struct, not as Arrow type "
                                f"{requested.format.decode()!r}")
        for i in range(requested.n_children):
            wanted = requested.children[i]
            name.assign(name_of(wanted))
            at = 0
            while at < self._fields.size() and self._fields[at].name != name:
                at += 1
            if at == self._fields.size():
                raise exception_for(ERR_INVALID_ARG, f"column {text_of(name)}: the decoded batch has no such column")
            field = self._fields[at]
            if field.column < COLUMN_COUNT:
                check(requested_field(field.column, wanted, &field))
            elif not same_type(&field, wanted):
                raise exception_for(ERR_INVALID_ARG, f"column {text_of(field.name)}: the Arrow type "
                                    f"{text_of(field.format)!r} cannot be exported as {wanted.format.decode()!r}: "
                                    "declare the type to the decoder, or cast the column")
            out.push_back(field)
        return out

    # ---- Arrow

    def __arrow_c_schema__(self):
        return schema_of(self._fields)

    def __arrow_c_array__(self, requested_schema=None):
        """Implement Arrow's PyCapsule interface: (schema, array) capsules.

        Args:
            requested_schema: capsule of an ArrowSchema: columns by name, in its order; columns of the records as
                RecordBatch makes them, decoded columns unchanged.

        Raises:
            KafkaException: the schema names a column or a type that does not exist.
        """
        cdef vector[ArrowField] fields = self.chosen(schema_in(requested_schema))
        return schema_of(fields), self.array_of(fields)

    def __arrow_c_stream__(self, requested_schema=None):
        """Implement Arrow's PyCapsule interface: a capsule of a stream of one array.

        Each call makes a new stream.

        Args:
            requested_schema: as for :meth:`__arrow_c_array__`.

        Raises:
            KafkaException: the schema names a column or a type that does not exist.
        """
        cdef Chosen chosen = Chosen.__new__(Chosen)
        chosen.fields = self.chosen(schema_in(requested_schema))
        return stream_of(chosen.__arrow_c_schema__, [(None, self.array_of(chosen.fields))])

    cdef object array_of(self, const vector[ArrowField]& fields):
        cdef ArrowArray* array = NULL
        cdef size_t i
        capsule = array_capsule(&array)
        open_array(array, len(self), 0, 0, NULL)
        add_buffer(array, NULL)
        for i in range(fields.size()):
            if fields[i].column < COLUMN_COUNT:
                check(export_column(&self.batch.source, &fields[i], child_of(array)))
            else:
                values, node = self.made_of[fields[i].column - COLUMN_COUNT]
                self.export(values, node, child_of(array))
        return capsule

    cdef int export(self, DecodedValues values, int32_t node, ArrowArray* out) except -1:
        cdef const Column* row = &values.decoded.get().columns.columns[0]
        check(export_values(values.decoded, node, out))
        if (node != 0 and row.nulls > 0 and out.n_buffers > 0
                and not values.decoded.get().plan_pointer().nodes[node].nullable):
            out.buffers[0] = row.validity  # the field itself has no nulls: the struct has them
            out.null_count = row.nulls
        return 0

    # ---- data frames

    @property
    def schema(self):
        """Schema of :meth:`to_arrow`: pyarrow.Schema.

        Raises:
            ImportError: pyarrow is not installed.
        """
        return needed("pyarrow", "DecodedBatch.schema", "'kconsumer[arrow]'").schema(self)

    def to_arrow(self, schema=None):
        """Return a pyarrow.Table.

        Args:
            schema: pyarrow.Schema: columns to make, by name, in this order. Default: :attr:`schema`.

        Raises:
            ImportError: pyarrow is not installed.
            KafkaException: `schema` names a column or a type that does not exist.
        """
        return needed("pyarrow", "DecodedBatch.to_arrow()", "'kconsumer[arrow]'").table(self, schema=schema)

    def to_pandas(self):
        """Return a pandas.DataFrame with one column per Arrow column.

        Raises:
            ImportError: pandas or pyarrow is not installed.
        """
        needed("pandas", "DecodedBatch.to_pandas()", "pandas 'kconsumer[arrow]'")
        return needed("pyarrow", "DecodedBatch.to_pandas()", "pandas 'kconsumer[arrow]'").table(self).to_pandas()

    def to_polars(self):
        """Return a polars.DataFrame, the same as ``polars.DataFrame(decoded)``.

        Raises:
            ImportError: polars is not installed. pyarrow is not needed.
        """
        return needed("polars", "DecodedBatch.to_polars()", "polars").DataFrame(self)

    def __reduce__(self):
        raise TypeError("cannot pickle a DecodedBatch, whose columns are shared memory: pickle its to_arrow() or "
                        "to_polars()")

    def __repr__(self):
        return f"<DecodedBatch of {len(self)} records, {len(self.errors) + len(self.key_errors)} errors>"


cdef ArrowArray* child_of(ArrowArray* array) except NULL:
    cdef ArrowArray* child = add_child(array)
    if child == NULL:
        check(out_of_memory())
    return child


def raise_first(batch, str part, errors):
    """Raise SerializationError for the first of the errors, if any."""
    if not errors:
        return
    bad = errors[0]
    record = batch[bad.row]
    field = f"field {bad.field}: " if bad.field else ""
    raise SerializationError(
        f"{part} of {record.topic()} [{record.partition()}] at offset {record.offset()}: {field}{bad.reason} "
        f"(byte {bad.position}); {len(errors)} of {len(batch)} records cannot be decoded")


def decode_batch(RecordBatch batch not None, value, key, on_error, flatten, columns, metadata):
    """Implement RecordBatch.decode."""
    cdef DecodedBatch out = DecodedBatch.__new__(DecodedBatch)
    if on_error not in ("null", "raise"):
        raise ValueError(f"invalid on_error {on_error!r}: expected null or raise")
    if value is None and key is None:
        raise TypeError("decode() has no decoder: give value=, key= or both")
    for part, decoder in (("value", value), ("key", key)):
        if decoder is not None and (isinstance(decoder, type) or not hasattr(decoder, "select")):
            raise TypeError(f"{part}: expected a decoder such as Json(schema), not {decoder!r}")
    for part, names in (("columns", columns), ("metadata", metadata)):
        if isinstance(names, str):
            raise TypeError(f"{part}: expected a list of names, not {names!r}")
    if columns is not None:
        if value is None:
            raise TypeError("columns= selects fields of the value, but value= is missing: give value= too")
        value = value.select(tuple(columns))
    out.batch = batch
    out.flatten = flatten
    out.take_columns(metadata)
    if key is not None:
        out._key = key.decode(batch.value_source(True))
    if value is not None:
        out._value = value.decode(batch.value_source(False))
    out.lay_out()
    if on_error == "raise":
        raise_first(batch, "key", out.key_errors)
        raise_first(batch, "value", out.errors)
    return out


def columns_of(RecordBatch batch not None, names):
    """Return columns of the records themselves without decoding: DecodedBatch.

    Raises:
        ValueError: records have no such column, or one is named twice.
    """
    cdef DecodedBatch out = DecodedBatch.__new__(DecodedBatch)
    out.batch = batch
    out.take_columns(names)
    out.lay_out()
    return out
