// Owns: the fuzz target of Protobuf messages as columns: rows of any bytes, by a program of every kind of field.
// Threads: one (libFuzzer's). Never: knows what a message means; it checks what holds for any.
//
// The input is rows, each after a byte of length; they lie in memory without anything after them, so that a read too far
// is found. It checks that each column has an entry per row and what Arrow asks for, that memory stays in proportion, and
// that a row between others is decoded as it is alone.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "values/decode_rows.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A plan and the program that fills it, made together.
struct Made {
  std::shared_ptr<kc::Plan> plan = std::make_shared<kc::Plan>();
  kc::ProtoProgram program;

  int32_t node(kc::ValueType type, int32_t parent, int32_t width = 0, bool nullable = true) {
    kc::ValueNode made;
    made.type = type;
    made.parent = parent;
    made.width = width;
    made.nullable = nullable;
    made.name = "n" + std::to_string(plan->nodes.size());
    plan->nodes.push_back(made);
    const auto index = static_cast<int32_t>(plan->nodes.size() - 1);
    if (parent >= 0) plan->nodes[static_cast<size_t>(parent)].children.push_back(index);
    return index;
  }

  kc::ProtoMessage& at(int32_t message) { return program.messages[static_cast<size_t>(message)]; }

  int32_t message(int32_t node, int64_t cells) {
    program.messages.emplace_back();
    program.messages.back().node = node;
    program.messages.back().cells = cells;
    return static_cast<int32_t>(program.messages.size() - 1);
  }

  kc::ProtoField& field(int32_t in, uint32_t number, uint32_t wire, kc::ProtoKind kind, int32_t column, int32_t list = -1) {
    kc::ProtoField made;
    made.tag = number << 3 | wire;
    made.kind = kind;
    made.column = column;
    made.list = list;
    at(in).fields.push_back(made);
    return at(in).fields.back();
  }

  void absent(int32_t in, int32_t node, kc::ProtoAbsent absent, int32_t of = -1) {
    at(in).columns.push_back({node, absent, of});
  }

  // A field, or a list of it, whose absence is a null or no items.
  kc::ProtoField& add(int32_t in, uint32_t number, uint32_t wire, kc::ProtoKind kind, kc::ValueType type, int32_t width,
                      bool repeated = false) {
    const int32_t list = repeated ? node(kc::VALUE_LIST, at(in).node, 0, false) : -1;
    const int32_t column = node(type, repeated ? list : at(in).node, width, !repeated && number % 3 != 0);
    absent(in, repeated ? list : column, repeated ? kc::PROTO_ABSENT_LIST : kc::PROTO_ABSENT_NULL);
    return field(in, number, wire, kind, column, list);
  }

  void scalars(int32_t in, bool repeated, uint32_t first) {
    uint32_t n = first;
    add(in, n++, 0, kc::PROTO_INT32, kc::VALUE_INT, 4, repeated);
    add(in, n++, 0, kc::PROTO_INT64, kc::VALUE_INT, 8, repeated);
    add(in, n++, 0, kc::PROTO_SINT32, kc::VALUE_INT, 4, repeated);
    add(in, n++, 0, kc::PROTO_SINT64, kc::VALUE_INT, 8, repeated);
    add(in, n++, 0, kc::PROTO_BOOL, kc::VALUE_BOOL, 0, repeated);
    add(in, n++, 5, kc::PROTO_FIXED32, kc::VALUE_FLOAT, 4, repeated);
    add(in, n++, 1, kc::PROTO_FIXED64, kc::VALUE_FLOAT, 8, repeated);
    add(in, n++, 2, kc::PROTO_TEXT, kc::VALUE_TEXT, 0, repeated);
    add(in, n++, 2, kc::PROTO_BYTES, kc::VALUE_BINARY, 0, repeated);
    for (const kc::ProtoKind kind : {kc::PROTO_ENUM, kc::PROTO_CLOSED_ENUM}) {
      kc::ProtoField& symbols = add(in, n++, 0, kind, kc::VALUE_DICTIONARY, 4, repeated);
      symbols.numbers = {-1, 0, 1, 7};
      symbols.table = {2, 0, 1, 3};
    }
    kc::ProtoField& narrow = add(in, n++, 0, kc::PROTO_CONVERT, kc::VALUE_INT, 4, repeated);
    narrow.from = kc::PROTO_FROM_SINT64;
    add(in, n++, 2, kc::PROTO_TIMESTAMP, kc::VALUE_TIMESTAMP, 8, repeated);
    add(in, n++, 2, kc::PROTO_DURATION, kc::VALUE_DURATION, 8, repeated);
    kc::ProtoField& wrapper = add(in, n++, 2, kc::PROTO_WRAPPER, kc::VALUE_TEXT, 0, repeated);
    const int32_t column = wrapper.column;
    const size_t index = at(in).fields.size() - 1;
    const int32_t inner = message(column, 1);
    at(in).fields[index].message = inner;
    field(inner, 1, 2, kc::PROTO_TEXT, column);
  }

  void sub(int32_t in, uint32_t number, uint32_t wire, kc::ValueType around) {
    const bool repeated = around != kc::VALUE_STRUCT;
    const int32_t list = repeated ? node(around, at(in).node, 0, false) : -1;
    const int32_t below = node(kc::VALUE_STRUCT, repeated ? list : at(in).node, 0, !repeated);
    absent(in, repeated ? list : below, repeated ? kc::PROTO_ABSENT_LIST : kc::PROTO_ABSENT_NULL);
    const int32_t made = message(below, 40);
    field(in, number, wire, kc::PROTO_MESSAGE, below, list).message = made;
    if (around != kc::VALUE_MAP) {
      scalars(made, false, 1);
      scalars(made, true, 1020);
      if (number == 17) required(made, below);
      return;
    }
    at(in).maps.push_back(list);
    at(made).is_entry = true;
    const int32_t key = node(number % 2 ? kc::VALUE_TEXT : kc::VALUE_INT, below, number % 2 ? 0 : 4, false);
    field(made, 1, number % 2 ? 2 : 0, number % 2 ? kc::PROTO_TEXT : kc::PROTO_INT32, key);
    absent(made, key, kc::PROTO_ABSENT_NULL);
    const int32_t value = node(kc::VALUE_STRUCT, below, 0, false);
    const int32_t of = message(value, 20);
    field(made, 2, 2, kc::PROTO_MESSAGE, value).message = of;
    absent(made, value, kc::PROTO_ABSENT_MESSAGE, of);
    scalars(of, true, 1);
    if (number == 21) required(of, value);
  }

  // A field that must have come in one of the parts of its message.
  void required(int32_t in, int32_t parent) {
    const int32_t must = node(kc::VALUE_INT, parent, 4, false);
    field(in, 2000, 0, kc::PROTO_INT32, must);
    absent(in, must, kc::PROTO_ABSENT_ERROR);
  }

  Made() {
    const int32_t row = message(node(kc::VALUE_STRUCT, -1), 0);
    scalars(row, false, 1);
    sub(row, 16, 2, kc::VALUE_STRUCT);
    sub(row, 17, 3, kc::VALUE_STRUCT);
    sub(row, 18, 2, kc::VALUE_LIST);
    sub(row, 19, 3, kc::VALUE_LIST);
    sub(row, 20, 2, kc::VALUE_MAP);
    sub(row, 21, 2, kc::VALUE_MAP);
    const size_t first = at(row).fields.size();
    scalars(row, false, 22);   // a oneof of all, and of one that is not kept
    at(row).oneofs.emplace_back();
    for (size_t i = first; i < at(row).fields.size(); ++i) {
      at(row).fields[i].oneof = 0;
      at(row).oneofs[0].push_back(at(row).fields[i].column);
      plan->nodes[static_cast<size_t>(at(row).fields[i].column)].nullable = true;
    }
    field(row, 50, 0, kc::PROTO_SKIP, -1).oneof = 0;
    at(row).columns[1].absent = kc::PROTO_ABSENT_NULL;
    scalars(row, true, 1 << 20);
    add(row, (1 << 21) + 0, 2, kc::PROTO_JSON, kc::VALUE_TEXT, 0).message = 0;
    add(row, (1 << 21) + 1, 3, kc::PROTO_JSON, kc::VALUE_TEXT, 0).message = 0;
    add(row, (1 << 21) + 2, 2, kc::PROTO_JSON, kc::VALUE_TEXT, 0, true).message = 0;
    json();
    program.index();
  }

  // A message of every type of field, single and repeated, that leads back to itself; a map of it, a time, one value.
  void json() {
    program.json.resize(5);
    uint32_t number = 0;
    auto to = [&](size_t message, int32_t type, bool repeated, int32_t below, int32_t oneof = -1) {
      kc::ProtoJsonField made;
      made.number = ++number;
      made.type = static_cast<kc::ProtoJsonType>(type);
      made.repeated = repeated;
      made.message = below;
      made.oneof = oneof;
      made.name = "n";
      if (type == kc::PROTO_JSON_ENUM) {
        made.numbers = {0, 3};
        made.symbols = {"A", "B"};
      }
      program.json[message].fields.push_back(made);
    };
    for (const bool repeated : {false, true}) {
      for (int32_t type = kc::PROTO_JSON_DOUBLE; type <= kc::PROTO_JSON_SINT64; ++type) {
        const bool is_message = type == kc::PROTO_JSON_MESSAGE || type == kc::PROTO_JSON_GROUP;
        to(0, type, repeated, is_message ? 0 : -1, repeated ? -1 : type % 3 - 1);
      }
    }
    for (int32_t below = 1; below < 5; ++below) to(0, kc::PROTO_JSON_MESSAGE, below == 1, below);
    number = 0;
    program.json[1].is_entry = true;
    to(1, kc::PROTO_JSON_INT64, false, -1);
    to(1, kc::PROTO_JSON_MESSAGE, false, 0);
    for (size_t message = 2; message < 4; ++message) {
      number = 0;
      program.json[message].form = message == 2 ? kc::PROTO_JSON_TIMESTAMP : kc::PROTO_JSON_DURATION;
      to(message, kc::PROTO_JSON_INT64, false, -1);
      to(message, kc::PROTO_JSON_INT32, false, -1);
    }
    number = 0;
    program.json[4].form = kc::PROTO_JSON_ONLY;
    to(4, kc::PROTO_JSON_STRING, false, -1, 0);
    to(4, kc::PROTO_JSON_MESSAGE, false, 4, 0);
  }
};

size_t check_column(const kc::Columnar& columns, size_t index) {
  const kc::Column& c = columns.columns[index];
  int64_t nulls = c.type == kc::VALUE_NULL ? c.length : 0;
  for (int64_t i = 0; c.validity && i < c.length; ++i) nulls += !(c.validity[i >> 3] >> (i & 7) & 1);
  require(nulls == c.nulls);
  require(c.nullable || index == 0 || c.nulls == 0);
  for (int64_t i = 0; c.has_offsets && i < c.length; ++i) require(c.offset_at(i) <= c.offset_at(i + 1));
  size_t entries = static_cast<size_t>(c.length) + c.data.size;
  for (int32_t child : c.children) {
    const kc::Column& below = columns.columns[static_cast<size_t>(child)];
    require(below.length == (c.type == kc::VALUE_STRUCT ? c.length : c.offset_at(c.length)));
    entries += check_column(columns, static_cast<size_t>(child));
  }
  if (c.has_offsets && c.children.empty()) require(static_cast<size_t>(c.offset_at(c.length)) == c.data.size);
  if (c.type == kc::VALUE_TEXT) require(kc::valid_utf8(c.data.data, c.data.size));
  if (c.type == kc::VALUE_DICTIONARY) {
    for (int64_t i = 0; i < c.length; ++i) require(reinterpret_cast<const uint32_t*>(c.values)[i] < 4);
  }
  return entries;
}

std::shared_ptr<kc::Decoded> decode(const Made& made, const kc::Framing& framing, const uint8_t* data, const int64_t* offsets,
                                    int64_t rows) {
  kc::RowSource source;
  source.length = rows;
  source.offsets = offsets;
  source.is_large = true;
  source.data = data;
  kc::ProtoPrograms programs;
  programs.any = framing.kind == kc::FRAMING_NONE;
  programs.writer.indexes = {0};
  programs.writer.program = &made.program;
  programs.by_id[1] = programs.writer;
  auto decoded = kc::new_decoded(made.plan);
  require(kc::decode_proto(source, framing, programs, *decoded));
  require(decoded->columns.columns[0].length == rows);
  return decoded;
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
  const auto rows = static_cast<int64_t>(offsets.size()) - 1;
  const auto decoded = decode(made, framing, exact.get(), offsets.data(), rows);
  const size_t entries = check_column(decoded->columns, 0);
  require(entries <= static_cast<size_t>(rows) * (made.plan->nodes.size() + 1) + 64 * all.size());
  // Alone, the last row is good or bad for the same reason.
  if (rows == 0) return 0;
  const auto alone = decode(made, framing, exact.get(), offsets.data() + rows - 1, 1);
  const bool is_bad = !decoded->bad.rows.empty() && decoded->bad.rows.back().row == rows - 1;
  require(is_bad == !alone->bad.rows.empty());
  if (is_bad) require(decoded->bad.rows.back().reason == alone->bad.rows[0].reason);
  return 0;
}
