// Owns: the fuzz target of JSON texts as columns: rows of any bytes, in a schema of every type.
// Threads: one (libFuzzer's). Never: knows what a text means; it checks what holds for any.
//
// The input is rows, each after a byte of length; they lie in memory without anything after them, so that a read too far
// is found. It checks that a row is decoded the same alone and among others, and that columns are what Arrow asks for.
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

int32_t add(kc::Plan& plan, kc::ValueType type, const char* name, int32_t parent, int32_t width = 0, int32_t unit = 0) {
  kc::ValueNode node;
  node.type = type;
  node.name = name;
  node.parent = parent;
  node.width = width;
  node.unit = unit;
  node.precision = 38;
  node.scale = 4;
  plan.nodes.push_back(node);
  const auto index = static_cast<int32_t>(plan.nodes.size() - 1);
  if (parent >= 0) plan.nodes[static_cast<size_t>(parent)].children.push_back(index);
  return index;
}

std::shared_ptr<const kc::Plan> every_type() {
  auto plan = std::make_shared<kc::Plan>();
  add(*plan, kc::VALUE_STRUCT, "", -1);
  add(*plan, kc::VALUE_BOOL, "b", 0);
  for (int32_t width : {1, 2, 4, 8}) add(*plan, kc::VALUE_INT, ("i" + std::to_string(width)).c_str(), 0, width);
  const int32_t natural = add(*plan, kc::VALUE_INT, "u", 0, 8);
  plan->nodes[static_cast<size_t>(natural)].is_signed = false;
  add(*plan, kc::VALUE_FLOAT, "f", 0, 4);
  add(*plan, kc::VALUE_FLOAT, "d", 0, 8);
  add(*plan, kc::VALUE_DECIMAL, "n", 0, 16);
  add(*plan, kc::VALUE_TEXT, "s", 0);
  add(*plan, kc::VALUE_BINARY, "z", 0);
  add(*plan, kc::VALUE_FIXED, "w", 0, 3);
  add(*plan, kc::VALUE_DATE, "day", 0, 4);
  add(*plan, kc::VALUE_TIME, "time", 0, 8, 6);
  add(*plan, kc::VALUE_TIMESTAMP, "t", 0, 8, 9);
  add(*plan, kc::VALUE_RAW_JSON, "j", 0);
  const int32_t list = add(*plan, kc::VALUE_LIST, "l", 0);
  const int32_t item = add(*plan, kc::VALUE_STRUCT, "item", list);
  add(*plan, kc::VALUE_TEXT, "a_name_of_more_than_sixteen_bytes", item);
  add(*plan, kc::VALUE_INT, "x", item, 8);
  const int32_t map = add(*plan, kc::VALUE_MAP, "m", 0);
  const int32_t entries = add(*plan, kc::VALUE_STRUCT, "entries", map);
  add(*plan, kc::VALUE_TEXT, "key", entries);
  add(*plan, kc::VALUE_BOOL, "value", entries);
  plan->nodes[static_cast<size_t>(entries)].nullable = false;
  return plan;
}

// Rows in memory of exactly their size.
struct Rows {
  std::vector<int64_t> offsets{0};
  std::unique_ptr<uint8_t[]> data;
  kc::RowSource source;

  explicit Rows(const std::vector<std::string>& rows) {
    std::string all;
    for (const std::string& row : rows) {
      all += row;
      offsets.push_back(static_cast<int64_t>(all.size()));
    }
    data.reset(new uint8_t[all.size()]);
    if (!all.empty()) memcpy(data.get(), all.data(), all.size());
    source.length = static_cast<int64_t>(rows.size());
    source.offsets = offsets.data();
    source.is_large = true;
    source.data = data.get();
  }
};

void check_column(const kc::Columnar& columns, size_t index) {
  const kc::Column& c = columns.columns[index];
  int64_t nulls = 0;
  for (int64_t i = 0; c.validity && i < c.length; ++i) nulls += !(c.validity[i >> 3] >> (i & 7) & 1);
  require(nulls == c.nulls);
  if (c.has_offsets) {
    require(c.offset_at(0) == 0);
    for (int64_t i = 0; i < c.length; ++i) require(c.offset_at(i) <= c.offset_at(i + 1));
  }
  for (int32_t child : c.children) {
    const kc::Column& below = columns.columns[static_cast<size_t>(child)];
    require(below.length == (c.type == kc::VALUE_STRUCT ? c.length : c.offset_at(c.length)));
    check_column(columns, static_cast<size_t>(child));
  }
  if (c.type == kc::VALUE_TEXT || c.type == kc::VALUE_RAW_JSON) {
    require(c.offset_at(c.length) == static_cast<int64_t>(c.data.size));
    require(kc::valid_utf8(c.data.data, c.data.size));
  }
}

// What a column holds in its entries [start, end), as bytes to compare.
void describe(const kc::Columnar& columns, int32_t index, int64_t start, int64_t end, std::string& out) {
  const kc::Column& c = columns.columns[static_cast<size_t>(index)];
  for (int64_t i = start; i < end; ++i) {
    const bool valid = !c.validity || (c.validity[i >> 3] >> (i & 7) & 1);
    out += valid ? '+' : '-';
    if (!valid) continue;
    if (c.type == kc::VALUE_STRUCT) {
      for (int32_t child : c.children) describe(columns, child, i, i + 1, out);
    } else if (c.type == kc::VALUE_LIST || c.type == kc::VALUE_MAP) {
      out += std::to_string(c.offset_at(i + 1) - c.offset_at(i)) + "[";
      describe(columns, c.children[0], c.offset_at(i), c.offset_at(i + 1), out);
    } else if (c.has_offsets) {
      out.append(reinterpret_cast<const char*>(c.data.data) + c.offset_at(i),
                 static_cast<size_t>(c.offset_at(i + 1) - c.offset_at(i)));
    } else if (c.type == kc::VALUE_BOOL) {
      out += (c.values[i >> 3] >> (i & 7) & 1) ? 't' : 'f';
    } else {
      out.append(reinterpret_cast<const char*>(c.values) + i * c.width, static_cast<size_t>(c.width));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto plan = every_type();
  static const kc::JsonProgram plain(*plan, -1, false), with_epoch(*plan, 3, true);
  if (size == 0) return 0;
  const kc::JsonProgram& program = data[0] & 1 ? with_epoch : plain;
  kc::Framing framing;
  framing.kind = static_cast<kc::FramingKind>(data[0] / 2 % 3);
  framing.skip = 2;
  std::vector<std::string> rows;
  for (size_t at = 1; at < size;) {
    size_t length = data[at++];
    if (length > size - at) length = size - at;
    rows.emplace_back(reinterpret_cast<const char*>(data) + at, length);
    at += length;
  }
  const Rows all(rows);
  const auto together = kc::new_decoded(plan);
  require(kc::decode_json(all.source, framing, program, *together));
  require(together->columns.columns[0].length == static_cast<int64_t>(rows.size()));
  check_column(together->columns, 0);
  size_t bad = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Rows one({rows[i]});
    const auto alone = kc::new_decoded(plan);
    require(kc::decode_json(one.source, framing, program, *alone));
    std::string expected, found;
    describe(alone->columns, 0, 0, 1, expected);
    describe(together->columns, 0, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1, found);
    require(found == expected);
    if (alone->bad.rows.empty()) continue;
    require(bad < together->bad.rows.size() && together->bad.rows[bad].row == static_cast<int64_t>(i));
    require(together->bad.rows[bad].reason == alone->bad.rows[0].reason);
    require(together->bad.rows[bad].position == alone->bad.rows[0].position);
    require(alone->bad.rows[0].position >= 0 && alone->bad.rows[0].position <= static_cast<int64_t>(rows[i].size()));
    ++bad;
  }
  require(bad == together->bad.rows.size());
  return 0;
}
