// Owns: the compiled form of a writer's Protobuf messages and a reader's columns: it maps each field number of each
// message to a column.
// Threads: any (immutable once made). Never: reads a descriptor (kconsumer.decoding.proto_program does).
#pragma once
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "values/proto_json.hpp"

namespace kc {

// The encoding of a field. kconsumer/decoding/proto_program.py has the same order.
enum ProtoKind : int32_t {
  PROTO_INT32 = 0,    // the low 32 bits of a varint: int32 and uint32
  PROTO_INT64,        // int64 and uint64
  PROTO_SINT32,
  PROTO_SINT64,
  PROTO_BOOL,
  PROTO_FIXED32,      // fixed32, sfixed32, float
  PROTO_FIXED64,      // fixed64, sfixed64, double
  PROTO_TEXT,
  PROTO_BYTES,
  PROTO_ENUM,         // numbers, table
  PROTO_CONVERT,      // the scalar `from`, for a column of another type
  PROTO_CLOSED_ENUM,  // numbers, table; an unknown number counts as an unknown field
  PROTO_MESSAGE,      // message: its fields become the fields of a struct
  PROTO_TIMESTAMP,    // google.protobuf.Timestamp
  PROTO_DURATION,     // google.protobuf.Duration
  PROTO_WRAPPER,      // google.protobuf.Int64Value and similar: message, whose only field has this column
  PROTO_JSON,         // message: an index into ProtoProgram::json; a recursive type as JSON text
  PROTO_SKIP,         // not stored, but it clears the other members of a oneof
  PROTO_NONE,         // no field
};

// The scalars that PROTO_CONVERT reads.
enum ProtoScalar : int32_t {
  PROTO_FROM_INT32 = 0,
  PROTO_FROM_UINT32,
  PROTO_FROM_INT64,
  PROTO_FROM_UINT64,
  PROTO_FROM_SINT32,
  PROTO_FROM_SINT64,
  PROTO_FROM_BOOL,
  PROTO_FROM_FIXED32,
  PROTO_FROM_SFIXED32,
  PROTO_FROM_FIXED64,
  PROTO_FROM_SFIXED64,
  PROTO_FROM_FLOAT,
};

enum ProtoWire : uint32_t {
  PROTO_WIRE_VARINT = 0,
  PROTO_WIRE_64 = 1,
  PROTO_WIRE_BYTES = 2,
  PROTO_WIRE_GROUP = 3,
  PROTO_WIRE_GROUP_END = 4,
  PROTO_WIRE_32 = 5,
};

// The value of an absent field.
enum ProtoAbsent : int32_t {
  PROTO_ABSENT_NULL = 0,    // null, or zero if the column is not nullable
  PROTO_ABSENT_ERROR,       // none: the field is required
  PROTO_ABSENT_LIST,        // a list or map of the items so far
  PROTO_ABSENT_MESSAGE,     // an empty message, as the value of a map's entry
};

// Fields that the loop over a message's fields reads without a call: not repeated, not a member of a oneof.
enum ProtoFast : int32_t {
  PROTO_SLOW = 0,
  PROTO_FAST_INT32,
  PROTO_FAST_INT64,
  PROTO_FAST_SINT32,
  PROTO_FAST_SINT64,
  PROTO_FAST_BOOL,
  PROTO_FAST_FIXED32,
  PROTO_FAST_FIXED64,
  PROTO_FAST_TEXT,
  PROTO_FAST_BYTES,
  PROTO_FAST_SKIP_VARINT,
  PROTO_FAST_SKIP_64,
  PROTO_FAST_SKIP_BYTES,
  PROTO_FAST_SKIP_32,
};

struct ProtoField {
  uint32_t tag = 0;              // number << 3 | wire type of a value that is not packed; 0: no field
  ProtoFast fast = PROTO_SLOW;
  ProtoKind kind = PROTO_NONE;
  int32_t column = -1;           // index into Plan::nodes; for a repeated field, the node of the item
  int32_t list = -1;             // node of the list or map; -1: not repeated
  int32_t message = -1;          // index into ProtoProgram::messages
  int32_t oneof = -1;            // index into ProtoMessage::oneofs
  ProtoScalar from = PROTO_FROM_INT32;
  bool truncates = false;        // a time: cut off digits that the unit cannot hold; false: they are an error
  std::vector<int32_t> numbers;  // the numbers of an enum, ascending
  std::vector<int32_t> table;    // the symbol index of each number
};

struct ProtoColumn {
  int32_t node = 0;
  ProtoAbsent absent = PROTO_ABSENT_NULL;
  int32_t message = -1;          // with PROTO_ABSENT_MESSAGE
};

struct ProtoMessage {
  static constexpr uint32_t kDense = 1024;

  int32_t node = 0;                            // the struct
  bool is_entry = false;                       // whether it is an entry of a map
  int64_t cells = 1;                           // number of its columns, with all columns below them
  std::vector<ProtoField> fields;              // ascending by number; the last one has no tag
  std::vector<ProtoColumn> columns;            // all columns of the struct
  std::vector<std::vector<int32_t>> oneofs;    // nodes of the members of each oneof
  std::vector<int32_t> maps;                   // nodes of maps among the columns
  std::vector<int32_t> dense;                  // by number: index into fields, or -1

  void index() {
    if (fields.empty() || fields.back().tag) fields.emplace_back();
    dense.assign(fields.size() > 1 ? std::min(kDense, (fields[fields.size() - 2].tag >> 3) + 1) : 0, -1);
    for (size_t i = 0; i + 1 < fields.size() && fields[i].tag >> 3 < dense.size(); ++i)
      dense[fields[i].tag >> 3] = static_cast<int32_t>(i);
    for (ProtoField& f : fields) f.fast = fast_of(f);
  }

  static ProtoFast fast_of(const ProtoField& f) {
    if (f.list >= 0 || f.oneof >= 0) return PROTO_SLOW;
    if (f.kind <= PROTO_BYTES) return static_cast<ProtoFast>(f.kind + PROTO_FAST_INT32);
    if (f.kind != PROTO_SKIP) return PROTO_SLOW;
    switch (f.tag & 7) {
      case PROTO_WIRE_VARINT: return PROTO_FAST_SKIP_VARINT;
      case PROTO_WIRE_64: return PROTO_FAST_SKIP_64;
      case PROTO_WIRE_BYTES: return PROTO_FAST_SKIP_BYTES;
      case PROTO_WIRE_32: return PROTO_FAST_SKIP_32;
      default: return PROTO_SLOW;
    }
  }

  const ProtoField* find(uint32_t number) const {
    if (number < dense.size()) return dense[number] < 0 ? nullptr : &fields[static_cast<size_t>(dense[number])];
    if (dense.size() < kDense) return nullptr;
    const auto last = fields.end() - 1;
    const auto found = std::lower_bound(fields.begin(), last, number,
                                        [](const ProtoField& f, uint32_t n) { return f.tag >> 3 < n; });
    return found != last && found->tag >> 3 == number ? &*found : nullptr;
  }
};

struct ProtoProgram {
  std::vector<ProtoMessage> messages;          // messages[0] is a row
  std::vector<ProtoJsonMessage> json;

  void index() {
    for (ProtoMessage& message : messages) message.index();
  }
};

// A writer's schema. Confluent's message indexes select a message of its file, one index for each nesting level.
struct ProtoWriter {
  std::vector<int32_t> indexes;
  const ProtoProgram* program = nullptr;       // nullptr: the file does not have the message
};

struct ProtoPrograms {
  bool any = false;                            // use `writer` for every schema id that is not in `by_id`
  ProtoWriter writer;
  std::unordered_map<int64_t, ProtoWriter> by_id;

  const ProtoWriter* find(int64_t id) const {
    const auto found = by_id.find(id);
    return found != by_id.end() ? &found->second : any ? &writer : nullptr;
  }
};

}  // namespace kc
