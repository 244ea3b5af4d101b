// Owns: the fuzz target of Avro data as columns: rows of any bytes, by a program of every operation.
// Threads: one (libFuzzer's). Never: knows what a datum means; it checks what holds for any.
//
// The input is rows, each after a byte of length; they lie in memory without anything after them, so that a read too far
// is found. It checks that each column has an entry per row and what Arrow asks for, and that memory stays in proportion.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "values/decode_rows.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A plan and the program that fills it, made together: a node and the operation that reads it.
struct Made {
  std::shared_ptr<kc::Plan> plan = std::make_shared<kc::Plan>();
  kc::AvroProgram program;

  int32_t node(kc::ValueType type, int32_t parent, int32_t width = 0) {
    kc::ValueNode made;
    made.type = type;
    made.parent = parent;
    made.width = width;
    made.precision = 9;
    made.name = "n" + std::to_string(plan->nodes.size());
    plan->nodes.push_back(made);
    const auto index = static_cast<int32_t>(plan->nodes.size() - 1);
    if (parent >= 0) plan->nodes[static_cast<size_t>(parent)].children.push_back(index);
    return index;
  }

  int32_t op(kc::AvroKind kind, int32_t column, int32_t parent, int64_t number = 1) {
    kc::AvroOp made;
    made.kind = kind;
    made.column = column;
    made.number = number;
    program.ops.push_back(made);
    const auto index = static_cast<int32_t>(program.ops.size() - 1);
    if (parent >= 0) program.ops[static_cast<size_t>(parent)].children.push_back(index);
    return index;
  }

  kc::AvroOp& at(int32_t index) { return program.ops[static_cast<size_t>(index)]; }

  Made() {
    const int32_t row = node(kc::VALUE_STRUCT, -1);
    const int32_t top = op(kc::AVRO_RECORD, row, -1);
    op(kc::AVRO_LONG, node(kc::VALUE_INT, row, 8), top, 1000);
    op(kc::AVRO_INT, node(kc::VALUE_INT, row, 4), top);
    op(kc::AVRO_TEXT, node(kc::VALUE_TEXT, row), top);
    const int32_t optional = node(kc::VALUE_BINARY, row);
    const int32_t either = op(kc::AVRO_UNION, optional, top);
    op(kc::AVRO_NULL, optional, either);
    op(kc::AVRO_BYTES, optional, either);
    op(kc::AVRO_ERROR, optional, either);
    op(kc::AVRO_BOOL, node(kc::VALUE_BOOL, row), top);
    op(kc::AVRO_FLOAT_DOUBLE, node(kc::VALUE_FLOAT, row, 8), top);
    op(kc::AVRO_DECIMAL_BYTES, node(kc::VALUE_DECIMAL, row, 16), top);
    op(kc::AVRO_DURATION, node(kc::VALUE_INTERVAL, row, 16), top);
    at(op(kc::AVRO_ENUM, node(kc::VALUE_DICTIONARY, row, 4), top)).table = {1, -1, 0};
    const int32_t list = node(kc::VALUE_LIST, row);
    const int32_t map = node(kc::VALUE_MAP, list);
    const int32_t entries = node(kc::VALUE_STRUCT, map);
    node(kc::VALUE_TEXT, entries);
    const int32_t value = node(kc::VALUE_NULL, entries);
    const int32_t array = op(kc::AVRO_ARRAY, list, top);
    at(array).least = 1;
    const int32_t maps = op(kc::AVRO_MAP, map, array);
    at(maps).least = 1;
    op(kc::AVRO_NULL, value, maps);
    const int32_t nulls = node(kc::VALUE_LIST, row);
    op(kc::AVRO_NULL, node(kc::VALUE_NULL, nulls), op(kc::AVRO_ARRAY, nulls, top));
    // Items of no bytes, which the reader's schema fills: a default and fields that are null.
    const int32_t empties = node(kc::VALUE_LIST, row);
    const int32_t empty = node(kc::VALUE_STRUCT, empties);
    const int32_t fills = op(kc::AVRO_RECORD, empty, op(kc::AVRO_ARRAY, empties, top));
    for (int32_t i = 0; i < 30; ++i) op(kc::AVRO_NULL, node(kc::VALUE_INT, empty, 8), fills);
    const int32_t said = node(kc::VALUE_TEXT, empty);
    const int32_t filled = op(kc::AVRO_DEFAULT, said, fills);
    at(filled).constant = std::string("\x02""x") + std::string(kc::AvroDecoder::kConstantPadding, '\0');
    op(kc::AVRO_TEXT, said, filled);
    const int32_t skipped = op(kc::AVRO_SKIP_MAP, row, top);
    at(skipped).least = 2;
    const int32_t skipped_record = op(kc::AVRO_SKIP_RECORD, row, skipped);
    op(kc::AVRO_SKIP_BYTES, row, skipped_record);
    op(kc::AVRO_SKIP_FIXED, row, op(kc::AVRO_SKIP_ARRAY, row, skipped_record), 0);
    op(kc::AVRO_SKIP_VARINT, row, op(kc::AVRO_SKIP_UNION, row, skipped_record));
    const int32_t variant = node(kc::VALUE_STRUCT, row);
    node(kc::VALUE_INT, variant, 8);
    const int32_t chosen = node(kc::VALUE_FIXED, variant, 3);
    op(kc::AVRO_FIXED, chosen, op(kc::AVRO_BRANCH, variant, top, 1), 3);
    const int32_t missing = node(kc::VALUE_TEXT, row);
    const int32_t otherwise = op(kc::AVRO_DEFAULT, missing, top);
    at(otherwise).constant = std::string("\x06""abc") + std::string(kc::AvroDecoder::kConstantPadding, '\0');
    op(kc::AVRO_TEXT, missing, otherwise);
    plan->nodes[static_cast<size_t>(entries)].nullable = false;
    const int32_t fused = node(kc::VALUE_FLOAT, row, 8);
    const int32_t nullable = op(kc::AVRO_UNION, fused, top);
    op(kc::AVRO_DOUBLE, fused, nullable);
    op(kc::AVRO_NULL, fused, nullable);
    op(kc::AVRO_JSON, node(kc::VALUE_TEXT, row), top, 0);
    op(kc::AVRO_SKIP_JSON, row, top, 0);
    json();
    program.prepare();
    require(program.ops[static_cast<size_t>(nullable)].null_branch == 1);
  }

  // A record of every type, that leads back to itself through a union, an array and a map.
  void json() {
    program.json.resize(kc::AVRO_JSON_LOCAL_TIME + 1);
    for (int32_t kind = 0; kind <= kc::AVRO_JSON_LOCAL_TIME; ++kind) {
      kc::AvroJsonOp& made = program.json[static_cast<size_t>(kind)];
      made.kind = static_cast<kc::AvroJsonKind>(kind);
      made.number = kind == kc::AVRO_JSON_FIXED ? 3 : 0;
      made.scale = 3;
      made.names = {"a", "b"};
    }
    std::swap(program.json[0], program.json[kc::AVRO_JSON_RECORD]);   // the first operation is the record
    kc::AvroJsonOp& record = program.json[0];
    record.names.clear();
    for (int32_t i = 1; i <= kc::AVRO_JSON_LOCAL_TIME; ++i) {
      record.children.push_back(i);
      record.names.emplace_back("n");
    }
    program.json[kc::AVRO_JSON_ARRAY].children = {0};
    program.json[kc::AVRO_JSON_MAP].children = {kc::AVRO_JSON_UNION};
    program.json[kc::AVRO_JSON_UNION].children = {kc::AVRO_JSON_RECORD, 0, kc::AVRO_JSON_MAP};
  }
};

size_t check_column(const kc::Columnar& columns, size_t index) {
  const kc::Column& c = columns.columns[index];
  int64_t nulls = c.type == kc::VALUE_NULL ? c.length : 0;
  for (int64_t i = 0; c.validity && i < c.length; ++i) nulls += !(c.validity[i >> 3] >> (i & 7) & 1);
  require(nulls == c.nulls);
  for (int64_t i = 0; c.has_offsets && i < c.length; ++i) require(c.offset_at(i) <= c.offset_at(i + 1));
  size_t entries = static_cast<size_t>(c.length) + c.data.size;
  for (int32_t child : c.children) {
    const kc::Column& below = columns.columns[static_cast<size_t>(child)];
    require(below.length == (c.type == kc::VALUE_STRUCT ? c.length : c.offset_at(c.length)));
    entries += check_column(columns, static_cast<size_t>(child));
  }
  if (c.type == kc::VALUE_TEXT) require(kc::valid_utf8(c.data.data, c.data.size));
  return entries;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Made made;
  if (size == 0) return 0;
  kc::Framing framing;
  framing.kind = data[0] & 1 ? kc::FRAMING_CONFLUENT : kc::FRAMING_NONE;
  std::string all;
  std::vector<int64_t> offsets{0};
  for (size_t at = 1; at < size;) {
    size_t length = data[at++];
    if (length > size - at) length = size - at;
    all.append(reinterpret_cast<const char*>(data) + at, length);
    offsets.push_back(static_cast<int64_t>(all.size()));
    at += length;
  }
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[all.size()]);
  if (!all.empty()) memcpy(exact.get(), all.data(), all.size());
  kc::RowSource source;
  source.length = static_cast<int64_t>(offsets.size()) - 1;
  source.offsets = offsets.data();
  source.is_large = true;
  source.data = exact.get();
  kc::AvroPrograms programs;
  if (framing.kind == kc::FRAMING_NONE) {
    programs.any = &made.program;
  } else {
    programs.by_id[1] = &made.program;
  }
  const auto decoded = kc::new_decoded(made.plan);
  require(kc::decode_avro(source, framing, programs, *decoded));
  require(decoded->columns.columns[0].length == source.length);
  const size_t entries = check_column(decoded->columns, 0);
  const auto rows = static_cast<size_t>(source.length);
  // What no item fills is bounded by the rows, and what items fill by the budget of cells.
  require(entries <= 64 * rows + (8 + kc::CellBudget::kPerByte) * all.size() +
                         std::min(static_cast<size_t>(kc::CellBudget::kFreeInBatch), rows * kc::CellBudget::kFreeInRow));
  (void)kc::schema_ids(source, framing);
  return 0;
}
