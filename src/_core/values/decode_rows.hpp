// Owns: the loop over rows: framing, a padded copy where a row lies at the end of its memory, and the list of bad rows.
// Threads: one at a time (the caller of decode). Never: knows a format, touches Python.
#pragma once
#include <cstdint>
#include <memory>
#include <new>
#include <unordered_set>
#include <vector>

#include "records/arrow_c.hpp"
#include "values/avro_decode.hpp"
#include "values/builders.hpp"
#include "values/framing.hpp"
#include "values/json_decode.hpp"
#include "values/proto_decode.hpp"
#include "values/row_source.hpp"

namespace kc {

// What a decode call made: shared by the Python object and every Arrow array made from it.
struct Decoded {
  std::shared_ptr<const Plan> plan;
  Columnar columns;
  BadRows bad;

  explicit Decoded(std::shared_ptr<const Plan> p) : plan(std::move(p)), columns(*plan) {}

  const Plan* plan_pointer() const { return plan.get(); }

  // Buffers that Arrow wants to be there even where nothing was appended.
  bool finish() {
    for (size_t i = 0; i < columns.columns.size(); ++i) {
      Column& c = columns.columns[i];
      if (c.capacity == 0 && !columns.reserve(static_cast<int32_t>(i))) return false;
      if (c.has_offsets && !c.data.reserve(c.data.size)) return false;
    }
    return true;
  }
};

// Has an exported array keep the columns that its buffers lie in.
inline void hold_decoded(ArrowArray* array, const std::shared_ptr<Decoded>& decoded) {
  static_cast<ArrayParts*>(array->private_data)->holds = decoded;
}

// nullptr when memory is out.
inline std::shared_ptr<Decoded> new_decoded(const std::shared_ptr<const Plan>& plan) {
  try {
    return std::make_shared<Decoded>(plan);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Bytes that decoders may read past a row's end.
constexpr ptrdiff_t kReadAhead = 64;

class PaddedRow {
 public:
  // False when memory is out.
  bool pad(const uint8_t*& p, const uint8_t*& end) {
    bytes_.size = 0;
    const auto length = static_cast<size_t>(end - p);
    if (!bytes_.reserve(length + kReadAhead)) return false;
    if (length) memcpy(bytes_.data, p, length);
    memset(bytes_.data + length, 0, kReadAhead);
    p = bytes_.data;
    end = bytes_.data + length;
    return true;
  }

 private:
  GrowingBytes bytes_;
};

inline bool keep_bad_row(Decoded& out, int64_t row, const RowBytes& bytes, const RowFailure& failure,
                         int64_t position) {
  BadRows& bad = out.bad;
  const size_t start = bad.raw.size;
  if (!bad.raw.append(bytes.begin, static_cast<size_t>(bytes.end - bytes.begin)))
    return out.columns.fail(0, BUILD_MEMORY);
  bad.rows.push_back({row, failure.reason, failure.node, position, failure.found, start, bad.raw.size});
  return true;
}

// The id of a row's schema; p moves after the framing.
inline int64_t open_row(const RowSource& source, const Framing& framing, int64_t row, const uint8_t*& p, const uint8_t* end,
                        RowFailure& failure) {
  int64_t id = 0;
  const int32_t header = source.schema_headers.of(row);
  if (__builtin_expect(header == SchemaHeaders::kNone, 1)) {
    failure.reason = framing.open(p, end, id);
  } else {
    failure.reason = header < 0 ? BAD_FRAME : BAD_NONE;
    id = kHeaderIds + header;
  }
  failure.at = p;
  return id;
}

// A bad row once more, without the bytes of the next one: they may have changed why it fails, and where.
template <class Decode>
__attribute__((noinline)) bool again_padded(const RowSource& source, const Framing& framing, Decoded& out, int64_t row,
                                            const RowBytes& bytes, PaddedRow& padded, Decode& decode, RowFailure& failure,
                                            const uint8_t*& first, bool& is_good) {
  const uint8_t* p = bytes.begin;
  const uint8_t* end = bytes.end;
  if (!padded.pad(p, end)) return out.columns.fail(0, BUILD_MEMORY);
  first = p;
  failure = RowFailure();
  const int64_t id = open_row(source, framing, row, p, end, failure);
  is_good = failure.reason == BAD_NONE && decode(id, p, end, failure);
  if (out.columns.failure != BUILD_OK) return false;
  if (!is_good) out.columns.truncate(0, row);
  return true;
}

// Decodes every row with decode(id, p, end, failure); false when the whole call failed (out.columns.failure).
template <class Decode>
bool decode_rows(const RowSource& source, const Framing& framing, Decoded& out, bool always_padded, Decode decode) {
  PaddedRow padded;
  if (!out.columns.reserve_rows(0, source.length)) return false;
  for (int64_t i = 0; i < source.length; ++i) {
    const RowBytes bytes = source.row(i);
    if (!bytes.begin) {
      if (!out.columns.append_null(0)) return false;
      continue;
    }
    const uint8_t* p = bytes.begin;
    const uint8_t* end = bytes.end;
    RowFailure failure;
    // Decoders read ahead; the bytes after a value may look like part of it, so each loop compares with its end. A bare
    // number, which no closing byte ends, is copied too (test_a_row_cut_off_or_damaged_at_every_byte_changes_no_other).
    const bool is_padded = always_padded || bytes.readable - end < kReadAhead;
    if (__builtin_expect(is_padded, 0) && !padded.pad(p, end)) return out.columns.fail(0, BUILD_MEMORY);
    const uint8_t* first = p;
    const int64_t id = open_row(source, framing, i, p, end, failure);
    if (__builtin_expect(failure.reason == BAD_NONE, 1) && decode(id, p, end, failure)) continue;
    if (out.columns.failure != BUILD_OK) return false;
    out.columns.truncate(0, i);
    if (!is_padded) {
      bool is_good = false;
      if (!again_padded(source, framing, out, i, bytes, padded, decode, failure, first, is_good)) return false;
      if (is_good) continue;
    }
    if (!out.columns.append_null(0) || !keep_bad_row(out, i, bytes, failure, failure.at - first)) return false;
  }
  return out.finish() || out.columns.fail(0, BUILD_MEMORY);
}

inline bool decode_avro(const RowSource& source, const Framing& framing, const AvroPrograms& programs, Decoded& out) {
  AvroDecoder decoder(*out.plan, out.columns);
  int64_t last_id = 0;
  const AvroProgram* last = nullptr;
  try {
    return decode_rows(source, framing, out, false,
                       [&](int64_t id, const uint8_t* p, const uint8_t* end, RowFailure& failure) {
                         if (__builtin_expect(!last || id != last_id, 0)) {
                           last_id = id;
                           last = programs.find(id);
                           if (!last) {
                             failure.reason = BAD_SCHEMA_ID;
                             failure.at = p;
                             return false;
                           }
                         }
                         return decoder.row(*last, p, end, failure);
                       });
  } catch (const std::bad_alloc&) {
    return out.columns.fail(0, BUILD_MEMORY);
  }
}

inline bool decode_proto(const RowSource& source, const Framing& framing, const ProtoPrograms& programs, Decoded& out) {
  ProtoDecoder decoder(*out.plan, out.columns);
  const bool is_framed = framing.kind == FRAMING_CONFLUENT;
  int64_t last_id = 0;
  const ProtoWriter* last = nullptr;
  try {
    return decode_rows(source, framing, out, false,
                       [&](int64_t id, const uint8_t* p, const uint8_t* end, RowFailure& failure) {
                         if (__builtin_expect(!last || id != last_id, 0)) {
                           last_id = id;
                           last = programs.find(id);
                         }
                         failure.at = p;
                         if (!last) {
                           failure.reason = BAD_SCHEMA_ID;
                         } else if (is_framed && id < kHeaderIds) {
                           failure.reason = open_indexes(p, end, last->indexes);
                         }
                         if (failure.reason == BAD_NONE && !last->program) failure.reason = BAD_MESSAGE;
                         return failure.reason == BAD_NONE && decoder.row(*last->program, p, end, failure);
                       });
  } catch (const std::bad_alloc&) {
    return out.columns.fail(0, BUILD_MEMORY);
  }
}

// The ids of the writers' schemas among the rows, each once: those of headers, then the others in order of appearance.
inline std::vector<int64_t> schema_ids(const RowSource& source, const Framing& framing) {
  std::vector<int64_t> found;
  std::unordered_set<int64_t> seen;
  int64_t last = 0;
  for (size_t i = 0; i < source.schema_headers.values.size(); ++i)
    found.push_back(kHeaderIds + static_cast<int64_t>(i));
  if (framing.kind != FRAMING_CONFLUENT) return found;
  for (int64_t i = 0; i < source.length; ++i) {
    const RowBytes bytes = source.row(i);
    const uint8_t* p = bytes.begin;
    int64_t id;
    if (!p || source.schema_headers.of(i) != SchemaHeaders::kNone || framing.open(p, bytes.end, id) != BAD_NONE ||
        (id == last && !seen.empty()))
      continue;
    last = id;
    if (seen.insert(id).second) found.push_back(id);
  }
  return found;
}

inline bool decode_json(const RowSource& source, const Framing& framing, const JsonProgram& program, Decoded& out) {
  // The end of a number shows only in the byte after it: where rows are numbers, each is copied and zeros follow it.
  const ValueType root = program.plan->nodes[0].type;
  const bool closed = root == VALUE_STRUCT || root == VALUE_LIST || root == VALUE_MAP;
  try {
    JsonDecoder decoder(program, out.columns);
    return decode_rows(source, framing, out, !closed,
                       [&decoder](int64_t, const uint8_t* p, const uint8_t* end, RowFailure& failure) {
                         return decoder.row(p, end, failure);
                       });
  } catch (const std::bad_alloc&) {
    return out.columns.fail(0, BUILD_MEMORY);
  }
}

}  // namespace kc
