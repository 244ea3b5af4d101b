// Owns: the fuzz target of every codec. The first byte picks a message, the second a version, the rest is the body.
// What decodes must encode to bytes that decode again and encode to the same bytes.
// Threads: one. Never: part of the core.
//
//   clang++ -std=c++17 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Isrc/_core
//     tools/fuzz/fuzz_protocol.cpp -o build/fuzz_protocol && build/fuzz_protocol -max_total_time=60
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "protocol/api_versions.hpp"
#include "protocol/messages/all.hpp"

namespace {

void require(bool condition, const char* message, int16_t version, const char* reason) {
  if (condition) return;
  std::fprintf(stderr, "%s v%d: %s\n", message, version, reason);
  std::abort();
}

template <class M>
void try_message(int16_t version, const uint8_t* data, size_t size) {
  M first;
  kc::Reader reader(data, size);
  first.decode(reader, version);
  if (!reader.ok()) {
    const kc::Status status = reader.status();
    require(status.code == kc::ERR_BAD_MSG, M::name, version, "an error without its code");
    require(status.detail.find(M::name) == 0, M::name, version, "an error that does not name the message");
    require(*reader.error_field() != '\0', M::name, version, "an error that does not name a field");
    require(reader.remaining() == 0, M::name, version, "bytes left to read after an error");
    return;
  }
  const char* field = nullptr;
  require(first.can_encode(version, &field), M::name, version, "decoded, but not to be encoded in its own version");
  kc::Writer once;
  first.encode(once, version);
  require(once.ok(), M::name, version, "decoded, but too long for the wire");

  M second;
  kc::Reader again(once.data(), once.size());
  second.decode(again, version);
  require(again.ok() && again.remaining() == 0, M::name, version, "our own bytes do not decode");
  kc::Writer twice;
  second.encode(twice, version);
  const bool same = once.size() == twice.size() &&
                    (once.size() == 0 || std::memcmp(once.data(), twice.data(), once.size()) == 0);
  require(same, M::name, version, "encoding is not stable");
}

void try_version_table(int16_t version, const uint8_t* data, size_t size) {
  kc::ApiVersionTable table;
  kc::Status status;
  if (table.accept(data, size, version, &status) != kc::API_VERSIONS_READY) return;
  for (int16_t api = -1; api <= kc::ApiVersionTable::kApis; ++api) {
    const int32_t picked = table.pick(api, 0, 20);
    require(picked <= 20 && picked >= -1, "ApiVersionTable", version, "a version outside the range asked for");
  }
}

using Attempt = void (*)(int16_t, const uint8_t*, size_t);

struct Target {
  Attempt attempt;
  int16_t min_version;
  int16_t max_version;
};

const Target kTargets[] = {
#define KC_TARGET(M) {try_message<kc::M>, kc::M::min_version, kc::M::max_version},
    KC_FOR_EACH_MESSAGE(KC_TARGET)
#undef KC_TARGET
    {try_version_table, 0, kc::ApiVersionsResponse::max_version},
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Target& target = kTargets[data[0] % (sizeof kTargets / sizeof kTargets[0])];
  const int16_t versions = static_cast<int16_t>(target.max_version - target.min_version + 1);
  target.attempt(static_cast<int16_t>(target.min_version + data[1] % versions), data + 2, size - 2);
  return 0;
}
