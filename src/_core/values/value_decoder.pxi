"""Owns: ValueDecoder, a compiled schema that decodes rows without the GIL, and DecodedValues, the decoded columns.

thread: A; both are immutable, and several threads may use them. Never: parses a schema (kconsumer.decoding does).
"""

cdef extern from "values/framing.hpp" namespace "kc" nogil:
    cdef enum FramingKind:
        FRAMING_NONE
        FRAMING_SKIP
        FRAMING_CONFLUENT

    cdef cppclass Framing:
        FramingKind kind
        int64_t skip
        Framing()


cdef extern from "values/avro_program.hpp" namespace "kc" nogil:
    cdef enum AvroKind:
        AVRO_NULL

    cdef enum AvroJsonKind:
        AVRO_JSON_NULL

    cdef cppclass AvroJsonOp:
        AvroJsonKind kind
        int64_t number
        int32_t scale
        vector[int32_t] children
        vector[string] names

    cdef cppclass AvroOp:
        AvroKind kind
        int32_t column
        int64_t number
        int64_t least
        vector[int32_t] children
        vector[int32_t] table
        string constant

    cdef cppclass AvroProgramOps "kc::AvroProgram":
        vector[AvroOp] ops
        vector[AvroJsonOp] json
        void prepare()

    cdef cppclass ProgramsById "std::unordered_map<int64_t, const kc::AvroProgram*>":
        const AvroProgramOps*& operator[](int64_t id)

    cdef cppclass AvroPrograms:
        const AvroProgramOps* any
        ProgramsById by_id
        AvroPrograms()


cdef extern from "values/proto_program.hpp" namespace "kc" nogil:
    cdef enum ProtoKind:
        PROTO_NONE

    cdef enum ProtoScalar:
        PROTO_FROM_INT32

    cdef enum ProtoAbsent:
        PROTO_ABSENT_NULL

    cdef cppclass ProtoField:
        uint32_t tag
        ProtoKind kind
        int32_t column
        int32_t list
        int32_t message
        int32_t oneof
        ProtoScalar origin "from"
        bint truncates
        vector[int32_t] numbers
        vector[int32_t] table

    cdef enum ProtoJsonForm:
        PROTO_JSON_OBJECT

    cdef enum ProtoJsonType:
        PROTO_JSON_DOUBLE

    cdef cppclass ProtoJsonField:
        uint32_t number
        ProtoJsonType type
        bint repeated
        bint is_null
        int32_t message
        int32_t oneof
        string name
        vector[int32_t] numbers
        vector[string] symbols

    cdef cppclass ProtoJsonMessage:
        ProtoJsonForm form
        bint is_entry
        vector[ProtoJsonField] fields

    cdef cppclass ProtoColumn:
        int32_t node
        ProtoAbsent absent
        int32_t message

    cdef cppclass ProtoMessage:
        int32_t node
        bint is_entry
        int64_t cells
        vector[ProtoField] fields
        vector[ProtoColumn] columns
        vector[vector[int32_t]] oneofs
        vector[int32_t] maps

    cdef cppclass ProtoProgramMessages "kc::ProtoProgram":
        vector[ProtoMessage] messages
        vector[ProtoJsonMessage] json
        void index()

    cdef cppclass ProtoWriter:
        vector[int32_t] indexes
        const ProtoProgramMessages* program

    cdef cppclass ProtoWritersById "std::unordered_map<int64_t, kc::ProtoWriter>":
        ProtoWriter& operator[](int64_t id)

    cdef cppclass ProtoPrograms:
        bint any
        ProtoWriter writer
        ProtoWritersById by_id
        ProtoPrograms()


cdef extern from "values/decode_rows.hpp" namespace "kc" nogil:
    cdef cppclass JsonProgram:
        JsonProgram(const Plan& plan, int32_t epoch_unit, bint truncates)

    const int64_t kHeaderIds
    const int32_t BAD_WRITER
    const char* bad_value_text(int32_t reason)
    shared_ptr[Decoded] new_decoded(const shared_ptr[Plan]& plan)
    bint decode_avro(const RowSource& source, const Framing& framing, const AvroPrograms& programs, Decoded& out)
    bint decode_proto(const RowSource& source, const Framing& framing, const ProtoPrograms& programs, Decoded& out)
    vector[int64_t] schema_ids(const RowSource& source, const Framing& framing)
    bint decode_json(const RowSource& source, const Framing& framing, const JsonProgram& program, Decoded& out)


HEADER_IDS = kHeaderIds
# The reason of all records of a writer whose schema does not resolve to that of the columns.
UNREADABLE_WRITER = bad_value_text(BAD_WRITER).decode()


class RowError(NamedTuple):
    """A row that could not be decoded."""

    row: int        # index in the array
    reason: str
    field: str      # path of the field, such as "position.lat"; empty for the whole row
    position: int   # byte position in the value at which decoding stopped
    value: bytes    # the bytes of the row


cdef bytes encoded(object text):
    return text.encode("utf-8", "surrogateescape")


cdef int read_node(ValueNode* node, object described) except -1:
    """Fill `node` from a kconsumer.decoding.plan.Node."""
    cdef bytes name = encoded(described.name)
    cdef bytes format = encoded(described.format)
    cdef bytes symbol
    node.type = <ValueType><int32_t>described.type
    node.nullable = described.nullable
    node.is_signed = described.is_signed
    node.is_large = described.is_large
    node.has_zone = described.has_zone
    node.width = described.width
    node.unit = described.unit
    node.precision = described.precision
    node.scale = described.scale
    node.parent = described.parent
    node.name.assign(<const char*>name, len(name))
    node.format.assign(<const char*>format, len(format))
    for child in described.children:
        node.children.push_back(<int32_t>child)
    for text in described.symbols:
        symbol = encoded(text)
        node.symbols.push_back(string(<const char*>symbol, len(symbol)))
    return 0


cdef enum:
    MOST_DESCRIBED = 256  # maximum depth of an Arrow schema; kconsumer.decoding.plan has a lower limit


cdef object described_schema(const ArrowSchema* schema, int depth):
    """Describe a schema as read_arrow_schema() returns it."""
    if depth > MOST_DESCRIBED:
        raise ValueError(f"the Arrow schema is nested more than {MOST_DESCRIBED} levels deep")
    if schema.dictionary != NULL:
        dictionary = schema.dictionary.format.decode()
    else:
        dictionary = None
    return (
        "" if schema.name == NULL else schema.name.decode("utf-8", "surrogateescape"),
        schema.format.decode(), (schema.flags & 2) != 0,
        tuple([described_schema(schema.children[i], depth + 1) for i in range(schema.n_children)]),
        dictionary, extension_name(schema.metadata),
    )


cdef object extension_name(const char* metadata):
    """Return the value of ARROW:extension:name; empty if there is none."""
    cdef const int32_t* number = <const int32_t*>metadata
    cdef int32_t count, length
    if metadata == NULL:
        return ""
    count = number[0]
    metadata += 4
    for _ in range(count):
        length = (<const int32_t*>metadata)[0]
        key = metadata[4:4 + length]
        metadata += 4 + length
        length = (<const int32_t*>metadata)[0]
        if key == b"ARROW:extension:name":
            return metadata[4:4 + length].decode("utf-8", "replace")
        metadata += 4 + length
    return ""


def read_arrow_schema(source: Any) -> Any:
    """Read the schema of an object with ``__arrow_c_schema__``.

    Returns:
        (name, format, nullable, children, format of the dictionary or None, name of the extension type); the children
        are tuples of the same form.

    Raises:
        ValueError: the schema is nested more than 256 levels deep.
    """
    capsule = source.__arrow_c_schema__()
    return described_schema(schema_in(capsule), 0)


@cython.final
cdef class DecodedValues:
    """Typed columns, one row per value, as an Arrow array (PyCapsule interface)."""

    def __init__(self):
        raise TypeError("DecodedValues are made by Decoder.decode()")

    cdef int check(self) except -1:
        """Raise the error of the whole call, if it failed."""
        cdef Decoded* decoded = self.decoded.get()
        if decoded == NULL or (decoded.columns.failure != BUILD_OK and decoded.columns.failure != BUILD_TOO_LONG):
            raise MemoryError()
        if decoded.columns.failure == BUILD_TOO_LONG:
            path = decoded.plan_pointer().path(decoded.columns.failed_column).decode("utf-8", "replace")
            raise OverflowError(f"column {path}: more than 2 GiB do not fit 32-bit offsets: declare it as "
                                "large_utf8, large_binary or large_list, or decode fewer rows at a time")
        return 0

    def __len__(self):
        return self.decoded.get().columns.columns[0].length

    @property
    def error_count(self):
        """The number of rows that could not be decoded: int."""
        return self.decoded.get().bad.rows.size()

    @property
    def null_count(self):
        """Rows that are null, bad ones among them: int."""
        return self.decoded.get().columns.columns[0].nulls

    @property
    def fields_without_values(self):
        """Fields of the row's struct that are null in every row: list of str."""
        cdef Decoded* decoded = self.decoded.get()
        cdef const Plan* plan = decoded.plan_pointer()
        cdef size_t i
        found = []
        if plan.nodes[0].type == VALUE_STRUCT:
            for i in range(plan.nodes[0].children.size()):
                child = plan.nodes[0].children[i]
                if decoded.columns.columns[child].nulls == decoded.columns.columns[child].length:
                    found.append(plan.nodes[child].name.decode("utf-8", "surrogateescape"))
        return found

    @property
    def errors(self):
        """The rows that could not be decoded, in order: list of RowError.

        These rows are null in the array.
        """
        cdef Decoded* decoded = self.decoded.get()
        cdef const BadRow* bad
        cdef string path, raw, reason
        cdef size_t i
        if self._errors is None:
            made = []
            for i in range(decoded.bad.rows.size()):
                bad = &decoded.bad.rows[i]
                path = decoded.plan_pointer().path(bad.node)
                raw.assign(<const char*>decoded.bad.raw.data + bad.raw_start, bad.raw_end - bad.raw_start)
                reason = bad_value_reason(bad.reason, decoded.plan_pointer().nodes[bad.node], raw, bad.position,
                                          bad.found)
                made.append(RowError(
                    bad.row, reason.decode(), path.data()[:path.size()].decode("utf-8", "surrogateescape"),
                    bad.position, <bytes>raw,
                ))
            self._errors = made
        return list(self._errors)

    def __arrow_c_schema__(self):
        cdef ArrowSchema* schema = NULL
        cdef ArrowField field
        capsule = schema_capsule(&schema)
        field = value_field(self.decoded.get().plan_pointer(), 0)
        if not fill_schema(&field, schema):
            raise MemoryError()
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        """Export as (schema, array) capsules (Arrow's PyCapsule interface).

        `requested_schema` has no effect.
        """
        cdef ArrowArray* array = NULL
        cdef Status status
        capsule = array_capsule(&array)
        status = export_values(self.decoded, 0, array)
        if not status.ok():
            raise exception_for(status.code, status.detail.data()[:status.detail.size()].decode())
        return self.__arrow_c_schema__(), capsule

    def __reduce__(self):
        raise TypeError("cannot pickle DecodedValues, whose columns are shared memory: pickle pyarrow.array(values)")

    def __repr__(self):
        return f"<DecodedValues of {len(self)} rows, {self.error_count} of them bad>"


cdef int read_numbers(vector[int32_t]* out, object numbers) except -1:
    for number in numbers:
        out.push_back(<int32_t>number)
    return 0


cdef int read_names(vector[string]* out, object names) except -1:
    for name in names:
        out.push_back(name.encode("utf-8", "surrogateescape"))
    return 0


@cython.final
cdef class AvroProgram:
    """The compiled decoding of one writer's Avro schema.

    Args:
        ops: list of kconsumer.decoding.avro_program.Op; the first one reads a row.
        json: list of kconsumer.decoding.avro_json.JsonOp, for recursive types.
    """
    # thread: any (immutable)
    cdef AvroProgramOps program

    def __init__(self, ops, json=()):
        cdef AvroOp* op
        cdef AvroJsonOp* written
        cdef bytes constant
        self.program.ops.resize(len(ops))
        for i, described in enumerate(ops):
            op = &self.program.ops[<int>i]
            op.kind = <AvroKind><int32_t>described.kind
            op.column = described.column
            op.number = described.number
            op.least = described.least
            constant = described.constant
            op.constant.assign(<const char*>constant, len(constant))
            for child in described.children:
                op.children.push_back(<int32_t>child)
            for index in described.table:
                op.table.push_back(<int32_t>index)
        self.program.json.resize(len(json))
        for i, described in enumerate(json):
            written = &self.program.json[<int>i]
            written.kind = <AvroJsonKind><int32_t>described.kind
            written.number = described.number
            written.scale = described.scale
            read_numbers(&written.children, described.children)
            read_names(&written.names, described.names)
        self.program.prepare()


@cython.final
cdef class ProtoProgram:
    """The compiled decoding of one writer's Protobuf schema.

    Args:
        messages: list of kconsumer.decoding.proto_program.MessageOps; the first one is the row.
        json: list of kconsumer.decoding.proto_json.JsonMessage, for recursive types.
    """
    # thread: any (immutable)
    cdef ProtoProgramMessages program

    def __init__(self, messages, json=()):
        cdef ProtoJsonMessage* written
        cdef ProtoJsonField* w
        cdef ProtoMessage* m
        cdef ProtoField* f
        cdef ProtoColumn* c
        self.program.messages.resize(len(messages))
        for i, described in enumerate(messages):
            m = &self.program.messages[<int>i]
            m.node = described.node
            m.cells = described.cells
            m.is_entry = described.is_entry
            m.fields.resize(len(described.fields))
            for j, of in enumerate(described.fields):
                f = &m.fields[<int>j]
                f.tag = of.tag
                f.kind = <ProtoKind><int32_t>of.kind
                f.column = of.column
                f.list = of.list
                f.message = of.message
                f.oneof = of.oneof
                f.origin = <ProtoScalar><int32_t>of.origin
                f.truncates = of.truncates
                read_numbers(&f.numbers, of.numbers)
                read_numbers(&f.table, of.table)
            m.columns.resize(len(described.columns))
            for j, (node, absent, message) in enumerate(described.columns):
                c = &m.columns[<int>j]
                c.node = node
                c.absent = <ProtoAbsent><int32_t>absent
                c.message = message
            m.oneofs.resize(len(described.oneofs))
            for j, members in enumerate(described.oneofs):
                read_numbers(&m.oneofs[<int>j], members)
            read_numbers(&m.maps, described.maps)
        self.program.json.resize(len(json))
        for i, described in enumerate(json):
            written = &self.program.json[<int>i]
            written.form = <ProtoJsonForm><int32_t>described.form
            written.is_entry = described.is_entry
            written.fields.resize(len(described.fields))
            for j, of in enumerate(described.fields):
                w = &written.fields[<int>j]
                w.number = of.number
                w.type = <ProtoJsonType><int32_t>of.type
                w.repeated = of.repeated
                w.is_null = of.is_null
                w.message = of.message
                w.oneof = of.oneof
                w.name = of.name.encode("utf-8", "surrogateescape")
                read_numbers(&w.numbers, of.numbers)
                read_names(&w.symbols, of.symbols)
        self.program.index()


cdef int read_writer(ProtoWriter* out, object indexes, ProtoProgram program) except -1:
    read_numbers(&out.indexes, indexes)
    if program is not None:
        out.program = &program.program
    return 0


@cython.final
cdef class ValueDecoder:
    """A compiled schema.

    Args:
        nodes: list of kconsumer.decoding.plan.Node; the first one is the row.
        framing: (FramingKind, number of bytes to skip).
        epoch_unit: unit of JSON numbers in timestamp fields (0 s, 3 ms, 6 µs, 9 ns), or -1 if they are an error.
        truncates: cut off digits of JSON times that the unit cannot hold; else they are an error.
    """
    # thread: any (immutable)
    cdef shared_ptr[Plan] plan
    cdef shared_ptr[JsonProgram] json
    cdef Framing framing

    def __init__(self, nodes, framing, epoch_unit, bint truncates=False):
        cdef Plan* plan = new Plan()
        self.plan = shared_ptr[Plan](plan)
        plan.nodes.resize(len(nodes))
        for i, described in enumerate(nodes):
            read_node(&plan.nodes[<int>i], described)
        self.json = shared_ptr[JsonProgram](new JsonProgram(plan[0], <int32_t>epoch_unit, truncates))
        self.framing.kind = <FramingKind><int32_t>framing[0]
        self.framing.skip = framing[1]

    def schema_ids(self, ValueSource source not None):
        """Return each schema id in the rows once: list of int.

        An id from HEADER_IDS up is HEADER_IDS plus an index into ``source.schema_headers()``.
        """
        cdef vector[int64_t] ids
        cdef size_t i
        self.read_headers(source)
        with nogil:
            ids = schema_ids(source.rows, self.framing)
        return [ids[i] for i in range(ids.size())]

    def schema_headers(self, ValueSource source not None):
        """Return each schema reference in the records' headers once: list of bytes.

        The schema id of a reference is HEADER_IDS plus its index.
        """
        self.read_headers(source)
        return source.schema_headers()

    cdef int read_headers(self, ValueSource source) except -1:
        """Read the schema references in record headers, if the framing is Confluent's."""
        cdef bint read = True
        if self.framing.kind == FRAMING_CONFLUENT:
            with nogil:
                read = source.rows.read_schema_headers()
        if not read:
            raise MemoryError()
        return 0

    def decode_avro(self, ValueSource source not None, AvroProgram any, dict by_id):
        """Decode Avro data without the GIL: DecodedValues.

        Args:
            source: the rows.
            any: the program for all rows, or None.
            by_id: the program for each schema id; used if `any` is None.
        """
        cdef DecodedValues out = DecodedValues.__new__(DecodedValues)
        cdef AvroPrograms programs
        cdef AvroProgram program
        held = list(by_id.items())
        self.read_headers(source)
        if any is not None:
            programs.any = &any.program
        for id, program in held:
            programs.by_id[<int64_t>id] = &program.program
        out.decoded = new_decoded(self.plan)
        if out.decoded.get() != NULL:
            with nogil:
                decode_avro(source.rows, self.framing, programs, out.decoded.get()[0])
        out.check()
        return out

    def decode_proto(self, ValueSource source not None, any, dict by_id):
        """Decode Protobuf messages without the GIL: DecodedValues.

        Args:
            source: the rows.
            any: (message indexes, ProtoProgram or None) for all rows without an entry in `by_id`, or None.
            by_id: (message indexes, ProtoProgram or None) for each schema id; the ids are those of schema_ids().
        """
        cdef DecodedValues out = DecodedValues.__new__(DecodedValues)
        cdef ProtoPrograms programs
        held = list(by_id.items())
        self.read_headers(source)
        if any is not None:
            programs.any = True
            read_writer(&programs.writer, any[0], any[1])
        for id, (indexes, program) in held:
            read_writer(&programs.by_id[<int64_t>id], indexes, program)
        out.decoded = new_decoded(self.plan)
        if out.decoded.get() != NULL:
            with nogil:
                decode_proto(source.rows, self.framing, programs, out.decoded.get()[0])
        out.check()
        return out

    def decode_json(self, ValueSource source not None):
        """Decode rows of JSON text without the GIL: DecodedValues."""
        cdef DecodedValues out = DecodedValues.__new__(DecodedValues)
        self.read_headers(source)
        out.decoded = new_decoded(self.plan)
        if out.decoded.get() != NULL:
            with nogil:
                decode_json(source.rows, self.framing, self.json.get()[0], out.decoded.get()[0])
        out.check()
        return out
