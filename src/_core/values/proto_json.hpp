// Owns: a Protobuf message of a recursive type as JSON text: its messages, which may contain themselves, and their run.
// Threads: one at a time (the caller of decode). Never: writes to a column.
//
// Fields come in any order, and the last value of a field counts: the fields of a message are collected first. The
// parts of a message that comes several times are read as one message, as Protobuf merges them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "records/bytes.hpp"
#include "values/json_write.hpp"
#include "values/program.hpp"

namespace kc {

// What a message is in JSON. kconsumer/decoding/proto_json.py has the same order.
enum ProtoJsonForm : int32_t {
  PROTO_JSON_OBJECT = 0,
  PROTO_JSON_ONLY,        // the value of its only field, null without it: google.protobuf.Value
  PROTO_JSON_FIELD,       // its repeated field or map: google.protobuf.Struct and ListValue
  PROTO_JSON_WRAPPER,     // the value of its field, the default without it
  PROTO_JSON_TIMESTAMP,
  PROTO_JSON_DURATION,
};

// Types of fields; their numbers are those of FieldDescriptorProto.
enum ProtoJsonType : int32_t {
  PROTO_JSON_DOUBLE = 1,
  PROTO_JSON_FLOAT,
  PROTO_JSON_INT64,
  PROTO_JSON_UINT64,
  PROTO_JSON_INT32,
  PROTO_JSON_FIXED64,
  PROTO_JSON_FIXED32,
  PROTO_JSON_BOOL,
  PROTO_JSON_STRING,
  PROTO_JSON_GROUP,
  PROTO_JSON_MESSAGE,
  PROTO_JSON_BYTES,
  PROTO_JSON_UINT32,
  PROTO_JSON_ENUM,
  PROTO_JSON_SFIXED32,
  PROTO_JSON_SFIXED64,
  PROTO_JSON_SINT32,
  PROTO_JSON_SINT64,
};

struct ProtoJsonField {
  uint32_t number = 0;
  ProtoJsonType type = PROTO_JSON_INT32;
  bool repeated = false;
  bool is_null = false;               // an enum whose only value is null: google.protobuf.NullValue
  int32_t message = -1;               // index into the messages; of a map: its entry
  int32_t oneof = -1;                 // members of one oneof have the same number
  std::string name;
  std::vector<int32_t> numbers;       // of an enum
  std::vector<std::string> symbols;   // their names

  uint32_t wire() const {
    switch (type) {
      case PROTO_JSON_DOUBLE:
      case PROTO_JSON_FIXED64:
      case PROTO_JSON_SFIXED64: return 1;
      case PROTO_JSON_FLOAT:
      case PROTO_JSON_FIXED32:
      case PROTO_JSON_SFIXED32: return 5;
      case PROTO_JSON_STRING:
      case PROTO_JSON_BYTES:
      case PROTO_JSON_MESSAGE: return 2;
      case PROTO_JSON_GROUP: return 3;
      default: return 0;
    }
  }
};

struct ProtoJsonMessage {
  ProtoJsonForm form = PROTO_JSON_OBJECT;
  bool is_entry = false;
  std::vector<ProtoJsonField> fields; // ascending by number

  int32_t find(uint32_t number) const {
    const auto found = std::lower_bound(fields.begin(), fields.end(), number,
                                        [](const ProtoJsonField& f, uint32_t n) { return f.number < n; });
    return found != fields.end() && found->number == number ? static_cast<int32_t>(found - fields.begin()) : -1;
  }
};

class ProtoJson {
 public:
  struct Part {
    const uint8_t* begin;
    const uint8_t* end;
  };
  using Parts = std::vector<Part>;

  JsonWriter out;
  BadValue reason = BAD_NONE;         // why run() returned false
  const uint8_t* at = nullptr;        // and where

  // Writes a message as at most so many bytes.
  bool run(const std::vector<ProtoJsonMessage>& messages, int32_t message, const Parts& parts, int64_t most) {
    messages_ = messages.data();
    depth_ = 0;
    reason = BAD_NONE;
    out.begin(most);
    return write(messages_[message], parts);
  }

 private:
  using Bytes = const uint8_t*;
  static constexpr int32_t kMostNested = 100;

  struct Found {
    int32_t field;
    Part value;
    bool is_packed;
  };

  __attribute__((noinline)) bool fail(BadValue why, Bytes where) {
    if (reason == BAD_NONE) {
      reason = why;
      at = where;
    }
    return false;
  }

  bool varint(Bytes& p, Bytes end, uint64_t& n) {
    n = 0;
    for (int32_t i = 0; i < 10; ++i) {
      if (p == end) return fail(BAD_CUT_OFF, p);
      const uint64_t byte = *p++;
      n |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return true;
    }
    return fail(BAD_VARINT, p);
  }

  // Reads the value after a tag; `value` are its bytes, of a group those of its fields.
  bool skip(uint64_t tag, Bytes& p, Bytes end, Part& value, int32_t depth) {
    uint64_t n;
    value.begin = p;
    switch (tag & 7) {
      case 0:
        if (!varint(p, end, n)) return false;
        break;
      case 1:
      case 5:
        n = (tag & 7) == 1 ? 8 : 4;
        if (static_cast<uint64_t>(end - p) < n) return fail(BAD_CUT_OFF, end);
        p += n;
        break;
      case 2:
        if (!varint(p, end, n)) return false;
        if (static_cast<uint64_t>(end - p) < n) return fail(BAD_CUT_OFF, end);
        value.begin = p;
        p += n;
        break;
      case 3:
        if (depth == kMostNested) return fail(BAD_DEPTH, p);
        for (;;) {
          Bytes first = p;
          Part inner;
          if (!varint(p, end, n)) return false;
          if ((n & 7) == 4) {
            if (n >> 3 != tag >> 3) return fail(BAD_TAG, first);
            value.end = first;
            return true;
          }
          if (n >> 3 == 0) return fail(BAD_TAG, first);
          if (!skip(n, p, end, inner, depth + 1)) return false;
        }
      default: return fail(BAD_TAG, p);
    }
    value.end = p;
    return true;
  }

  // Collects the known fields in the order of the bytes.
  bool collect(const ProtoJsonMessage& m, const Parts& parts, std::vector<Found>& found) {
    for (const Part& part : parts) {
      Bytes p = part.begin;
      while (p < part.end) {
        Bytes first = p;
        uint64_t tag;
        Part value;
        if (!varint(p, part.end, tag)) return false;
        if (tag >> 3 == 0 || tag > UINT32_MAX) return fail(BAD_TAG, first);
        if (!skip(tag, p, part.end, value, 0)) return false;
        const int32_t field = m.find(static_cast<uint32_t>(tag >> 3));
        if (field < 0) continue;
        const ProtoJsonField& f = m.fields[static_cast<size_t>(field)];
        const uint32_t wire = static_cast<uint32_t>(tag & 7);
        const bool is_packed = f.repeated && wire == 2 && f.wire() != 2 && f.wire() != 3;
        if (wire == f.wire() || is_packed) found.push_back({field, value, is_packed});
      }
    }
    return true;
  }

  bool write(const ProtoJsonMessage& m, const Parts& parts) {
    if (++depth_ > kMostNested) return fail(BAD_DEPTH, parts.empty() ? nullptr : parts[0].begin);
    std::vector<Found> found;
    if (!collect(m, parts, found)) return false;
    drop_other_members(m, found);
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.field < b.field; });
    const bool good = m.form == PROTO_JSON_OBJECT ? object(m, found) : special(m, found);
    --depth_;
    return good && (out.fits() || fail(BAD_COUNT, parts.empty() ? nullptr : parts[0].begin));
  }

  // Of a oneof, only the member that came last counts.
  static void drop_other_members(const ProtoJsonMessage& m, std::vector<Found>& found) {
    std::unordered_map<int32_t, int32_t> last;
    for (const Found& one : found) {
      const int32_t oneof = m.fields[static_cast<size_t>(one.field)].oneof;
      if (oneof >= 0) last[oneof] = one.field;
    }
    if (last.empty()) return;
    found.erase(std::remove_if(found.begin(), found.end(),
                               [&](const Found& one) {
                                 const int32_t oneof = m.fields[static_cast<size_t>(one.field)].oneof;
                                 return oneof >= 0 && last[oneof] != one.field;
                               }),
                found.end());
  }

  bool object(const ProtoJsonMessage& m, const std::vector<Found>& found) {
    out.text += '{';
    for (size_t i = 0; i < found.size();) {
      size_t end = i;
      while (end < found.size() && found[end].field == found[i].field) ++end;
      const ProtoJsonField& f = m.fields[static_cast<size_t>(found[i].field)];
      if (i) out.text += ',';
      out.string(f.name);
      out.text += ':';
      if (!field(f, &found[i], &found[0] + end)) return false;
      i = end;
    }
    out.text += '}';
    return true;
  }

  bool special(const ProtoJsonMessage& m, const std::vector<Found>& found) {
    if (m.form == PROTO_JSON_TIMESTAMP || m.form == PROTO_JSON_DURATION) return time(m, found);
    if (!found.empty()) {
      const Found* first = &found[0];
      return field(m.fields[static_cast<size_t>(first->field)], first, first + found.size());
    }
    if (m.form == PROTO_JSON_ONLY) {
      out.raw("null");
    } else if (m.form == PROTO_JSON_WRAPPER) {
      zero(m.fields[0]);
    } else {
      out.raw(messages_entry(m.fields[0]) ? "{}" : "[]");
    }
    return true;
  }

  bool messages_entry(const ProtoJsonField& f) const {
    return f.message >= 0 && messages_[f.message].is_entry;
  }

  // Writes the value of a field from all its places in the message.
  bool field(const ProtoJsonField& f, const Found* first, const Found* end) {
    if (messages_entry(f)) return map(messages_[f.message], first, end);
    if (!f.repeated) {
      if (f.type != PROTO_JSON_MESSAGE && f.type != PROTO_JSON_GROUP) {
        Part value = end[-1].value;
        return scalar(f, value.begin, value.end);
      }
      Parts parts;
      for (const Found* one = first; one < end; ++one) parts.push_back(one->value);
      return write(messages_[f.message], parts);
    }
    bool more = false;
    out.text += '[';
    for (const Found* one = first; one < end; ++one) {
      Bytes p = one->value.begin;
      do {
        if (one->is_packed && p == one->value.end) break;
        if (more) out.text += ',';
        more = true;
        if (f.type == PROTO_JSON_MESSAGE || f.type == PROTO_JSON_GROUP) {
          if (!write(messages_[f.message], {one->value})) return false;
        } else if (!scalar(f, p, one->value.end)) {
          return false;
        }
        if (!out.fits()) return fail(BAD_COUNT, p);
      } while (one->is_packed);
    }
    out.text += ']';
    return true;
  }

  // Of equal keys the last one counts.
  bool map(const ProtoJsonMessage& entry, const Found* first, const Found* end) {
    std::vector<std::pair<std::string, Parts>> entries;
    std::unordered_map<std::string, size_t> places;
    for (const Found* one = first; one < end; ++one) {
      std::vector<Found> found;
      if (!collect(entry, {one->value}, found)) return false;
      std::string before;
      before.swap(out.text);
      bool good = true;
      const Found* key = nullptr;
      Parts value;
      for (const Found& part : found) {
        if (part.field == 0) key = &part;
        if (part.field == 1) {
          const ProtoJsonType type = entry.fields[1].type;
          if (type != PROTO_JSON_MESSAGE && type != PROTO_JSON_GROUP) value.clear();
          value.push_back(part.value);
        }
      }
      const bool is_text = entry.fields[0].type == PROTO_JSON_STRING;
      if (!is_text) out.text += '"';
      if (key) {
        Bytes p = key->value.begin;
        good = scalar(entry.fields[0], p, key->value.end);
      } else {
        zero(entry.fields[0]);
      }
      if (!is_text) out.text += '"';
      before.swap(out.text);
      if (!good) return false;
      const auto place = places.emplace(before, entries.size());
      if (place.second) {
        entries.emplace_back(before, value);
      } else {
        entries[place.first->second].second = value;
      }
    }
    out.text += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i) out.text += ',';
      out.raw(entries[i].first);
      out.text += ':';
      if (!entry_value(entry.fields[1], entries[i].second)) return false;
      if (!out.fits()) return fail(BAD_COUNT, first->value.begin);
    }
    out.text += '}';
    return true;
  }

  bool entry_value(const ProtoJsonField& f, const Parts& parts) {
    if (f.type == PROTO_JSON_MESSAGE || f.type == PROTO_JSON_GROUP) return write(messages_[f.message], parts);
    if (!parts.empty()) {
      Bytes p = parts[0].begin;
      return scalar(f, p, parts[0].end);
    }
    zero(f);
    return true;
  }

  // Writes the default of a scalar.
  void zero(const ProtoJsonField& f) {
    switch (f.type) {
      case PROTO_JSON_BOOL: return out.boolean(false);
      case PROTO_JSON_STRING:
      case PROTO_JSON_BYTES: return out.raw("\"\"");
      case PROTO_JSON_ENUM: return symbol(f, 0);
      default: return out.raw("0");
    }
  }

  void symbol(const ProtoJsonField& f, int32_t number) {
    if (f.is_null) return out.raw("null");
    for (size_t i = 0; i < f.numbers.size(); ++i) {
      if (f.numbers[i] == number) {
        out.string(f.symbols[i]);
        return;
      }
    }
    out.integer(number);
  }

  template <class T>
  static T load(Bytes p) {
    T found;
    memcpy(&found, p, sizeof(T));
    return found;
  }

  // Writes one scalar at p; moves p after it. Its bytes are there, unless it is packed.
  bool scalar(const ProtoJsonField& f, Bytes& p, Bytes end) {
    uint64_t n = 0;
    const uint32_t wire = f.wire();
    Bytes first = p;
    if (wire == 2) {
      const auto length = static_cast<size_t>(end - p);
      p = end;
      if (f.type == PROTO_JSON_STRING) return out.string(first, length) || fail(BAD_UTF8, first);
      out.base64(first, length);
      return true;
    }
    if (wire == 0) {
      if (!varint(p, end, n)) return false;
    } else {
      const int64_t bytes = wire == 1 ? 8 : 4;
      if (end - p < bytes) return fail(BAD_PACKED, end);
      p += bytes;
    }
    switch (f.type) {
      case PROTO_JSON_DOUBLE: out.floating(load<double>(first)); break;
      case PROTO_JSON_FLOAT: out.floating(load<float>(first)); break;
      case PROTO_JSON_FIXED64: out.integer(load<uint64_t>(first)); break;
      case PROTO_JSON_FIXED32: out.integer(load<uint32_t>(first)); break;
      case PROTO_JSON_SFIXED32: out.integer(load<int32_t>(first)); break;
      case PROTO_JSON_SFIXED64: out.integer(load<int64_t>(first)); break;
      case PROTO_JSON_INT64: out.integer(static_cast<int64_t>(n)); break;
      case PROTO_JSON_UINT64: out.integer(n); break;
      case PROTO_JSON_INT32: out.integer(static_cast<int32_t>(n)); break;
      case PROTO_JSON_UINT32: out.integer(static_cast<uint32_t>(n)); break;
      case PROTO_JSON_SINT32: out.integer(static_cast<int32_t>(zigzag(static_cast<uint32_t>(n)))); break;
      case PROTO_JSON_SINT64: out.integer(zigzag(n)); break;
      case PROTO_JSON_BOOL: out.boolean(n != 0); break;
      default: symbol(f, static_cast<int32_t>(n));
    }
    return true;
  }

  // A time: field 1 has seconds, field 2 nanoseconds.
  bool time(const ProtoJsonMessage& m, const std::vector<Found>& found) {
    int64_t seconds = 0;
    int32_t nanos = 0;
    for (const Found& one : found) {
      uint64_t n;
      Bytes p = one.value.begin;
      if (!varint(p, one.value.end, n)) return false;
      if (m.fields[static_cast<size_t>(one.field)].number == 1) {
        seconds = static_cast<int64_t>(n);
      } else {
        nanos = static_cast<int32_t>(n);
      }
    }
    Bytes where = found.empty() ? nullptr : found[0].value.begin;
    if (m.form == PROTO_JSON_TIMESTAMP) {
      if (seconds < -62135596800 || seconds > 253402300799 || nanos < 0 || nanos > 999999999)
        return fail(BAD_RANGE, where);
      out.instant(seconds, nanos);
      return true;
    }
    if (seconds < -315576000000 || seconds > 315576000000 || nanos < -999999999 || nanos > 999999999 ||
        (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0))
      return fail(BAD_RANGE, where);
    out.duration(seconds, nanos);
    return true;
  }

  const ProtoJsonMessage* messages_ = nullptr;
  int32_t depth_ = 0;
};

}  // namespace kc
