"""Owns: DecodedBatch, a batch's keys and values as typed columns, with columns of the records themselves beside them.

Threads: any; it is immutable. Never: decodes (values/value_decoder), copies a column.
"""
cimport cython

from kconsumer._core.base.cpp cimport vector
from kconsumer._core.base.status cimport Status
from kconsumer._core.consumer.record_batch cimport RecordBatch
from kconsumer._core.records.arrow_arrays cimport export_column
from kconsumer._core.records.arrow_build cimport add_buffer, add_child, open_array, out_of_memory
from kconsumer._core.records.arrow_capsules cimport array_capsule, schema_capsule
from kconsumer._core.records.arrow_export cimport (
    COLUMN_NONE, ArrowArray, ArrowField, ArrowSchema, default_field, fill_schema, find_column,
)
from kconsumer._core.values.value_decoder cimport DecodedValues
from kconsumer._core.values.value_export cimport VALUE_STRUCT, Column, Plan, export_values, value_field

from kconsumer.errors import SerializationError, exception_for


@cython.final
cdef class DecodedBatch:
    """Columns of records whose keys or values are decoded, made by ``RecordBatch.decode``.

    Arrow data for every library that reads the PyCapsule interface: ``pyarrow.table(decoded)``,
    ``polars.DataFrame(decoded)``, ``duckdb.sql("from decoded")``, ``pandas.DataFrame.from_arrow(decoded)``.
    """
    cdef RecordBatch batch           # whose records' own columns are exported
    cdef vector[ArrowField] metadata
    cdef DecodedValues _key
    cdef DecodedValues _value
    cdef bint flatten

    def __len__(self):
        return len(self.batch)

    @property
    def errors(self):
        """Records whose value could not be decoded, in order: list of RowError. Their values are null."""
        return [] if self._value is None else self._value.errors

    @property
    def key_errors(self):
        """Records whose key could not be decoded, in order: list of RowError. Their keys are null."""
        return [] if self._key is None else self._key.errors

    cdef bint flattens(self, DecodedValues values):
        """Whether the fields of the struct stand in its place: the value's, or the key's where it is alone."""
        cdef const Plan* plan = values.decoded.get().plan_pointer()
        return self.flatten and plan.nodes[0].type == VALUE_STRUCT and (values is self._value or self._value is None)

    cdef vector[ArrowField] fields(self):
        cdef vector[ArrowField] out = self.metadata
        cdef ArrowField field
        cdef DecodedValues values
        cdef size_t i
        for name, values in ((b"key", self._key), (b"value", self._value)):
            if values is None:
                continue
            field = value_field(values.decoded.get().plan_pointer(), 0)
            if self.flattens(values):
                for i in range(field.children.size()):
                    field.children[i].nullable = True  # a bad record's field is null too
                    out.push_back(field.children[i])
            else:
                field.name.assign(<const char*>name)
                out.push_back(field)
        return out

    def check_names(self):
        """Raise ValueError when two columns have one name."""
        cdef vector[ArrowField] fields = self.fields()
        cdef size_t i
        seen = set()
        for i in range(fields.size()):
            name = fields[i].name.data()[:fields[i].name.size()].decode("utf-8", "surrogateescape")
            if name in seen:
                raise ValueError(f"two columns are called {name!r}: leave one out, or do not flatten")
            seen.add(name)

    def __arrow_c_schema__(self):
        cdef ArrowSchema* schema = NULL
        cdef ArrowField root
        capsule = schema_capsule(&schema)
        root.format.assign(b"+s")
        root.children = self.fields()
        if not fill_schema(&root, schema):
            raise MemoryError()
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        """Arrow's PyCapsule interface: (schema, array) capsules; `requested_schema` is not followed."""
        cdef ArrowArray* array = NULL
        cdef DecodedValues values
        cdef size_t i
        capsule = array_capsule(&array)
        open_array(array, len(self), 0, 0, NULL)
        add_buffer(array, NULL)
        for i in range(self.metadata.size()):
            check(export_column(&self.batch.source, &self.metadata[i], child_of(array)))
        for values in (self._key, self._value):
            if values is not None:
                self.export(values, array)
        return self.__arrow_c_schema__(), capsule

    cdef int export(self, DecodedValues values, ArrowArray* array) except -1:
        cdef const Plan* plan = values.decoded.get().plan_pointer()
        cdef size_t i
        if not self.flattens(values):
            return check(export_values(values.decoded, 0, child_of(array)))
        cdef ArrowArray* child
        cdef const Column* row = &values.decoded.get().columns.columns[0]
        for i in range(plan.nodes[0].children.size()):
            child = child_of(array)
            check(export_values(values.decoded, plan.nodes[0].children[i], child))
            if row.nulls > 0 and not plan.nodes[plan.nodes[0].children[i]].nullable:
                child.buffers[0] = row.validity  # the field has no nulls itself: they are those of the struct
                child.null_count = row.nulls
        return 0

    def __repr__(self):
        return f"<DecodedBatch of {len(self)} records, {len(self.errors) + len(self.key_errors)} errors>"


cdef int check(Status status) except -1:
    if not status.ok():
        raise exception_for(status.code, status.detail.data()[:status.detail.size()].decode())
    return 0


cdef ArrowArray* child_of(ArrowArray* array) except NULL:
    cdef ArrowArray* child = add_child(array)
    if child == NULL:
        check(out_of_memory())
    return child


def raise_first(batch, str part, errors):
    """Raise SerializationError for the first of the errors, if there is one."""
    if not errors:
        return
    bad = errors[0]
    record = batch[bad.row]
    field = f"field {bad.field}: " if bad.field else ""
    raise SerializationError(
        f"{part} of {record.topic()} [{record.partition()}] at offset {record.offset()}: {field}{bad.reason} "
        f"(byte {bad.position}); {len(errors)} of {len(batch)} records cannot be decoded")


def decode_batch(RecordBatch batch not None, value, key, on_error, flatten, columns, metadata):
    """RecordBatch.decode."""
    cdef DecodedBatch out = DecodedBatch.__new__(DecodedBatch)
    cdef bytes name
    cdef int column
    if on_error not in ("null", "raise"):
        raise ValueError(f"invalid on_error {on_error!r}: expected null or raise")
    if value is None and key is None:
        raise TypeError("decode() needs a decoder: value=, key= or both")
    if columns is not None:
        if value is None:
            raise TypeError("columns chooses fields of the value: value= is missing")
        value = value.select(tuple(columns))
    out.batch = batch
    out.flatten = flatten
    for text in metadata:
        name = text.encode()
        column = find_column(name)
        if column == COLUMN_NONE:
            raise ValueError(f"no column {text!r}: records have topic, partition, offset, timestamp, timestamp_type, "
                             "leader_epoch, key, value and headers")
        out.metadata.push_back(default_field(column))
    if key is not None:
        out._key = key.decode(batch.value_source(True))
    if value is not None:
        out._value = value.decode(batch.value_source(False))
    out.check_names()
    if on_error == "raise":
        raise_first(batch, "key", out.key_errors)
        raise_first(batch, "value", out.errors)
    return out
