# Declares ValueDecoder, a compiled schema, and DecodedValues, its result. thread: A; both immutable.
from kconsumer._core.base.cpp cimport int32_t, int64_t, string, uint32_t, vector
from kconsumer._core.values.value_export cimport Decoded, Plan, shared_ptr
from kconsumer._core.values.value_source cimport RowSource, ValueSource


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


cdef class DecodedValues:
    # thread: any (immutable)
    cdef shared_ptr[Decoded] decoded
    cdef list _errors           # built at the first access to `errors`

    cdef int check(self) except -1


cdef class AvroProgram:
    # thread: any (immutable)
    cdef AvroProgramOps program


cdef class ProtoProgram:
    # thread: any (immutable)
    cdef ProtoProgramMessages program


cdef class ValueDecoder:
    # thread: any (immutable)
    cdef shared_ptr[Plan] plan
    cdef shared_ptr[JsonProgram] json
    cdef Framing framing

    cdef int read_headers(self, ValueSource source) except -1
