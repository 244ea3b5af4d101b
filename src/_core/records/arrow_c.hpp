// Owns: the structs of Arrow's C data interface, and the memory of each exported struct.
// Threads: A fills them; their holder releases them on any thread. Never: touches Python.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "records/columns.hpp"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
}
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
extern "C" {
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema*);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray*);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
}
#endif

namespace kc {

// private_data of an exported schema.
struct SchemaParts {
  std::string format;
  std::string name;
  std::vector<ArrowSchema*> children;
};

// private_data of an exported array. Each array keeps the memory of its own buffers alive, so that a consumer can move
// a child out of its parent.
struct ArrayParts {
  Columns* columns = nullptr;          // retained
  std::shared_ptr<const void> holds;   // keeps the other memory of the buffers alive
  std::vector<const void*> buffers;
  std::vector<void*> owned;            // malloc'ed buffers
  std::vector<ArrowArray*> children;
};

enum ArrowColumn : int {
  COLUMN_NONE = -1,
  COLUMN_TOPIC = 0,
  COLUMN_PARTITION,
  COLUMN_OFFSET,
  COLUMN_TIMESTAMP,
  COLUMN_TIMESTAMP_TYPE,
  COLUMN_LEADER_EPOCH,
  COLUMN_KEY,
  COLUMN_VALUE,
  COLUMN_HEADERS,
  COLUMN_COUNT,
};

// The type of one exported column: the default, or the type in the requested schema.
struct ArrowField {
  int column = COLUMN_NONE;
  std::string name;
  std::string format;
  std::string dictionary;              // format of the dictionary's values; empty without a dictionary
  bool nullable = false;
  std::vector<ArrowField> children;
};

// Rows of an arena, with the topics and partitions, which the arena does not have.
struct ArrowSource {
  Columns* columns = nullptr;          // borrowed for the call; exported arrays retain it
  int32_t row_start = 0;
  int32_t row_end = 0;
  std::vector<std::string> topics;     // the dictionary
  std::vector<int32_t> run_topics;     // by index into columns->runs: index into topics
  std::vector<int32_t> run_partitions; // by index into columns->runs: partition id
  bool with_headers = false;           // whether the default schema has the headers column
};

// private_data of an exported stream. The stream can outlive its batch.
struct StreamParts {
  ArrowSource source;                  // the stream retains its columns
  ArrowField root;
  bool ended = false;
  std::string error;
};

}  // namespace kc
