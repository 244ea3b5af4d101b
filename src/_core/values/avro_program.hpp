// Owns: the compiled form of a writer's and a reader's Avro schema: operations that read the writer's bytes in order
// and append values to the reader's columns.
// Threads: any (immutable once made). Never: parses a schema (kconsumer.decoding.avro_program does).
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "values/avro_json.hpp"

namespace kc {

// kconsumer/decoding/avro_program.py has the same order.
enum AvroKind : int32_t {
  AVRO_NULL = 0,       // reads no bytes; appends a null
  AVRO_BOOL,
  AVRO_INT,            // int → int32
  AVRO_LONG,           // int or long → int64, multiplied by `number`
  AVRO_LONG_FLOAT,     // int or long → float
  AVRO_LONG_DOUBLE,
  AVRO_FLOAT,
  AVRO_FLOAT_DOUBLE,
  AVRO_DOUBLE,
  AVRO_TEXT,           // string or bytes → string: must be UTF-8
  AVRO_BYTES,
  AVRO_FIXED,          // `number` bytes
  AVRO_ENUM,           // table: symbol of the writer → symbol of the reader, or -1
  AVRO_ARRAY,          // children: item
  AVRO_MAP,            // children: value
  AVRO_RECORD,         // children: the writer's fields in order, then defaults
  AVRO_UNION,          // children: one per branch of the writer
  AVRO_BRANCH,         // a branch of a reader's union of several types: children: the branch; number: its index
  AVRO_DEFAULT,        // children: the operation that reads `constant`
  AVRO_DECIMAL_BYTES,
  AVRO_DECIMAL_FIXED,  // `number` bytes
  AVRO_DURATION,
  AVRO_TIME,           // int or long → a time of day, multiplied by `number`
  AVRO_ERROR,          // a branch that the reader's schema does not have
  AVRO_JSON,           // a recursive type as JSON text: `number` is the index into AvroProgram::json
  AVRO_SKIP_VARINT,
  AVRO_SKIP_FIXED,     // `number` bytes
  AVRO_SKIP_BYTES,
  AVRO_SKIP_ARRAY,
  AVRO_SKIP_MAP,
  AVRO_SKIP_RECORD,
  AVRO_SKIP_UNION,
  AVRO_SKIP_JSON,      // as AVRO_JSON, without a column
};

// Operations that the loop over a record's fields performs without a call, in the usual case.
enum AvroFast : int32_t {
  AVRO_SLOW = 0,
  AVRO_FAST_INT,
  AVRO_FAST_LONG,
  AVRO_FAST_DOUBLE,
  AVRO_FAST_TEXT,
  AVRO_FAST_BYTES,
  AVRO_FAST_BOOL,
  AVRO_FAST_SKIP_VARINT,
  AVRO_FAST_SKIP_BYTES,
  AVRO_FAST_SKIP_FIXED,
};

struct AvroOp {
  AvroKind kind = AVRO_NULL;
  AvroFast fast = AVRO_SLOW;
  int32_t column = 0;               // index into Plan::nodes
  int32_t null_branch = -1;         // index of null (0 or 1) in a union, whose branch index is read first; -1: no union
  int64_t number = 0;
  int64_t least = 0;                // minimum bytes of an item (arrays and maps)
  std::vector<int32_t> children;    // indices into AvroProgram::ops
  std::vector<int32_t> table;
  std::string constant;             // padded with bytes that a decoder may read
};

struct AvroProgram {
  std::vector<AvroOp> ops;          // ops[0] reads a row
  std::vector<AvroJsonOp> json;

  // Prepares the operations for the decoder.
  void prepare() {
    fuse();
    for (AvroOp& op : ops) op.fast = fast_of(op);
  }

  static AvroFast fast_of(const AvroOp& op) {
    switch (op.kind) {
      case AVRO_INT: return AVRO_FAST_INT;
      case AVRO_LONG: return op.number == 1 ? AVRO_FAST_LONG : AVRO_SLOW;
      case AVRO_DOUBLE: return AVRO_FAST_DOUBLE;
      case AVRO_TEXT: return AVRO_FAST_TEXT;
      case AVRO_BYTES: return AVRO_FAST_BYTES;
      case AVRO_BOOL: return AVRO_FAST_BOOL;
      case AVRO_SKIP_VARINT: return AVRO_FAST_SKIP_VARINT;
      case AVRO_SKIP_BYTES: return AVRO_FAST_SKIP_BYTES;
      case AVRO_SKIP_FIXED: return op.number > 0 ? AVRO_FAST_SKIP_FIXED : AVRO_SLOW;
      default: return AVRO_SLOW;
    }
  }

 private:
  // Replaces a union of null and one other type, the most frequent union, by one operation.
  void fuse() {
    for (AvroOp& op : ops) {
      const bool skips = op.kind == AVRO_SKIP_UNION;
      if ((!skips && op.kind != AVRO_UNION) || op.children.size() != 2) continue;
      for (int32_t null : {0, 1}) {
        const AvroOp& nothing = ops[static_cast<size_t>(op.children[static_cast<size_t>(null)])];
        const AvroOp& other = ops[static_cast<size_t>(op.children[static_cast<size_t>(1 - null)])];
        const bool is_null = skips ? nothing.kind == AVRO_SKIP_FIXED && nothing.number == 0 : nothing.kind == AVRO_NULL;
        if (!is_null || nothing.column != other.column || other.null_branch >= 0) continue;
        AvroOp fused = other;
        fused.null_branch = null;
        op = fused;
        break;
      }
    }
  }
};

// The programs for the schemas of the rows.
struct AvroPrograms {
  const AvroProgram* any = nullptr;                           // for all rows; null: use by_id
  std::unordered_map<int64_t, const AvroProgram*> by_id;

  const AvroProgram* find(int64_t id) const {
    if (any) return any;
    const auto found = by_id.find(id);
    return found == by_id.end() ? nullptr : found->second;
  }
};

}  // namespace kc
