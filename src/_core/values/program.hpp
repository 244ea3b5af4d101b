// Owns: the compiled schema of decoded values: a flat array of nodes, one per column, and the error texts of bad rows.
// Threads: any (immutable once made). Never: knows a wire format, touches Python, contains decoded data.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kc {

// The type of a column. kconsumer/decoding/plan.py has the same order.
enum ValueType : int32_t {
  VALUE_NULL = 0,
  VALUE_BOOL,
  VALUE_INT,         // width, is_signed
  VALUE_FLOAT,       // width 4 or 8
  VALUE_DECIMAL,     // width 16 or 32, precision, scale
  VALUE_TEXT,        // is_large
  VALUE_BINARY,      // is_large
  VALUE_FIXED,       // width: bytes of each entry
  VALUE_DATE,        // width 4: days; 8: milliseconds
  VALUE_TIME,        // width 4 or 8, unit
  VALUE_TIMESTAMP,   // unit, has_zone
  VALUE_DURATION,    // unit
  VALUE_INTERVAL,    // width 16: months, days (int32) and nanoseconds (int64)
  VALUE_RAW_JSON,    // text of a JSON value, is_large
  VALUE_STRUCT,
  VALUE_LIST,        // is_large
  VALUE_MAP,
  VALUE_DICTIONARY,  // int32 indices into `symbols`
};

// Units of time as powers of ten: seconds 0, milliseconds 3, microseconds 6, nanoseconds 9.
struct ValueNode {
  ValueType type = VALUE_NULL;
  bool nullable = true;
  bool is_signed = true;
  bool is_large = false;           // 64-bit offsets
  bool has_zone = false;
  int32_t width = 0;               // bytes of an entry; 0 if it has none or a variable number
  int32_t unit = 0;
  int32_t precision = 0;
  int32_t scale = 0;
  int32_t parent = -1;
  std::string name;
  std::string format;              // Arrow format string
  std::vector<int32_t> children;   // indices into Plan::nodes
  std::vector<std::string> symbols;
};

struct Plan {
  std::vector<ValueNode> nodes;    // nodes[0] is a row
  // Returns the path of a node in a row, such as "position.lat"; empty for the row itself.
  std::string path(int32_t node) const {
    std::string out;
    for (int32_t at = node; at > 0; at = nodes[static_cast<size_t>(at)].parent) {
      const std::string& name = nodes[static_cast<size_t>(at)].name;
      out = out.empty() ? name : name + "." + out;
    }
    return out;
  }
};

enum BadValue : int32_t {
  BAD_NONE = 0,
  BAD_EMPTY,
  BAD_CUT_OFF,
  BAD_TRAILING,
  BAD_SYNTAX,
  BAD_TYPE,
  BAD_RANGE,
  BAD_INEXACT,
  BAD_UTF8,
  BAD_ESCAPE,
  BAD_TIME,
  BAD_BASE64,
  BAD_LENGTH,
  BAD_MISSING,
  BAD_NULL,
  BAD_DEPTH,
  BAD_FRAME,
  BAD_SCHEMA_ID,
  BAD_VARINT,
  BAD_COUNT,
  BAD_BRANCH,
  BAD_SYMBOL,
  BAD_WRITER,
  BAD_TAG,
  BAD_MESSAGE,
  BAD_BOOL,
  BAD_NEGATIVE,
  BAD_BLOCK,
  BAD_PACKED,
  BAD_COUNT_OF_REASONS,
};

inline const char* bad_value_text(int32_t reason) {
  static const char* const kTexts[BAD_COUNT_OF_REASONS] = {
      "",
      "the value is empty",
      "the value ends too early",
      "there are bytes after the value",
      "not valid JSON",
      "expected another type",
      "the number does not fit the type",
      "the value has more digits than the type keeps",
      "not valid UTF-8",
      "not a valid escape sequence",
      "not a valid date or time for this type",
      "not valid base64",
      "expected another length",
      "a required field is missing",
      "null in a field that does not allow null",
      "nested too deeply",
      "the framing is invalid",
      "the schema id is unknown",
      "not a valid variable-length integer",
      "more items than the bytes can hold",
      "the union has no such branch",
      "the enum has no such symbol",
      "data with this schema id cannot be converted to the decoder's schema",
      "not a valid field number or wire type",
      "the message indexes identify a different message",
      "expected a boolean, found a byte that is neither 0 nor 1",
      "the length is negative",
      "the items do not have the size that their block states",
      "the bytes of the packed list do not end with an item",
  };
  return reason > 0 && reason < BAD_COUNT_OF_REASONS ? kTexts[reason] : "";
}

// A type in words, as users declare it.
inline std::string type_text(const ValueNode& node) {
  const std::string bits = std::to_string(node.width * 8);
  switch (node.type) {
    case VALUE_NULL: return "null";
    case VALUE_BOOL: return "bool";
    case VALUE_INT: return (node.is_signed ? "int" : "uint") + bits;
    case VALUE_FLOAT: return "float" + bits;
    case VALUE_DECIMAL: return "decimal(" + std::to_string(node.precision) + ", " + std::to_string(node.scale) + ")";
    case VALUE_TEXT:
    case VALUE_DICTIONARY: return "string";
    case VALUE_BINARY: return "binary (a base64 string)";
    case VALUE_FIXED: return "fixed[" + std::to_string(node.width) + "] (a base64 string)";
    case VALUE_DATE: return "date";
    case VALUE_TIME: return "time";
    case VALUE_TIMESTAMP: return "timestamp";
    case VALUE_DURATION: return "duration";
    case VALUE_INTERVAL: return "interval";
    case VALUE_RAW_JSON: return "json";
    case VALUE_STRUCT: return "struct";
    case VALUE_LIST: return "list";
    case VALUE_MAP: return "map";
  }
  return "another type";
}

// Why a row is bad, with what was expected and found: `value` are its bytes, `position` the place of the failure.
inline std::string bad_value_reason(int32_t reason, const ValueNode& node, const std::string& value, int64_t position,
                                    int64_t found) {
  if (reason == BAD_LENGTH)
    return "expected " + std::to_string(node.width) + " bytes, found " + std::to_string(found);
  if (reason == BAD_SYNTAX && position == 0 && value.compare(0, 3, "\xef\xbb\xbf") == 0)
    return "not valid JSON: it begins with a byte order mark (BOM)";
  if (reason != BAD_TYPE) return bad_value_text(reason);
  const char first = static_cast<size_t>(position) < value.size() ? value[static_cast<size_t>(position)] : '\0';
  const char* kind = "another value";
  switch (first) {
    case '"': kind = found ? "a string that is not a number" : "a string"; break;
    case '{': kind = "an object"; break;
    case '[': kind = "an array"; break;
    case 't':
    case 'f': kind = "a boolean"; break;
    case 'n': kind = "null"; break;
    default:
      if (first == '-' || (first >= '0' && first <= '9')) kind = "a number";
  }
  return "expected " + type_text(node) + ", found " + kind;
}

}  // namespace kc
