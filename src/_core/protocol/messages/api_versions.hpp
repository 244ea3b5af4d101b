// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of ApiVersions, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct ApiVersionsRequest {
  static constexpr const char* name = "ApiVersionsRequest";
  static constexpr int16_t api_key = 18;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 5;
  static constexpr int16_t header_version(int16_t version) { return version >= 3 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t) { return 0; }

  std::string client_software_name;
  std::string client_software_version;
  NullableString cluster_id;
  int32_t node_id = -1;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 3;
    if (version >= 3) {
      w.write_string(client_software_name, flexible);
      w.write_string(client_software_version, flexible);
    }
    if (version >= 5) {
      w.write_nullable_string(cluster_id, flexible, true);
      w.write_int32(node_id);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 3;
    r.begin(name, version);
    if (version >= 3) {
      r.read_string(client_software_name, flexible, "client_software_name");
      r.read_string(client_software_version, flexible, "client_software_version");
    } else {
      client_software_name.clear();
      client_software_version.clear();
    }
    if (version >= 5) {
      r.read_nullable_string(cluster_id, flexible, true, "cluster_id");
      node_id = r.read_int32("node_id");
    } else {
      cluster_id.set_null();
      node_id = -1;
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("client_software_name", client_software_name);
    f("client_software_version", client_software_version);
    f("cluster_id", cluster_id);
    f("node_id", node_id);
  }
};

struct ApiVersionsResponse_ApiVersion {
  int16_t api_key = 0;
  int16_t min_version = 0;
  int16_t max_version = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 3;
    w.write_int16(api_key);
    w.write_int16(min_version);
    w.write_int16(max_version);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 3;
    api_key = r.read_int16("ApiVersion.api_key");
    min_version = r.read_int16("ApiVersion.min_version");
    max_version = r.read_int16("ApiVersion.max_version");
    if (flexible) {
      r.skip_tagged_fields("ApiVersion.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 3 ? 7 : 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("api_key", api_key);
    f("min_version", min_version);
    f("max_version", max_version);
  }
};

struct ApiVersionsResponse_SupportedFeatureKey {
  std::string name;
  int16_t min_version = 0;
  int16_t max_version = 0;

  void encode(Writer& w, int16_t) const {
    w.write_string(name, true);
    w.write_int16(min_version);
    w.write_int16(max_version);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    r.read_string(name, true, "SupportedFeatureKey.name");
    min_version = r.read_int16("SupportedFeatureKey.min_version");
    max_version = r.read_int16("SupportedFeatureKey.max_version");
    r.skip_tagged_fields("SupportedFeatureKey.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("min_version", min_version);
    f("max_version", max_version);
  }
};

struct ApiVersionsResponse_FinalizedFeatureKey {
  std::string name;
  int16_t max_version_level = 0;
  int16_t min_version_level = 0;

  void encode(Writer& w, int16_t) const {
    w.write_string(name, true);
    w.write_int16(max_version_level);
    w.write_int16(min_version_level);
    w.write_uvarint(0);
  }
  void decode(Reader& r, int16_t) {
    r.read_string(name, true, "FinalizedFeatureKey.name");
    max_version_level = r.read_int16("FinalizedFeatureKey.max_version_level");
    min_version_level = r.read_int16("FinalizedFeatureKey.min_version_level");
    r.skip_tagged_fields("FinalizedFeatureKey.tagged_fields");
  }
  static constexpr size_t min_size(int16_t) {
    return 6;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("max_version_level", max_version_level);
    f("min_version_level", min_version_level);
  }
};

struct ApiVersionsResponse {
  static constexpr const char* name = "ApiVersionsResponse";
  static constexpr int16_t api_key = 18;
  static constexpr int16_t min_version = 0;
  static constexpr int16_t max_version = 5;
  static constexpr int16_t header_version(int16_t) { return 0; }

  int16_t error_code = 0;
  std::vector<ApiVersionsResponse_ApiVersion> api_keys;
  int32_t throttle_time_ms = 0;
  std::vector<ApiVersionsResponse_SupportedFeatureKey> supported_features;
  int64_t finalized_features_epoch = -1;
  std::vector<ApiVersionsResponse_FinalizedFeatureKey> finalized_features;
  bool zk_migration_ready = false;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 3;
    w.write_int16(error_code);
    w.write_structs(api_keys, version, flexible);
    if (version >= 1) {
      w.write_int32(throttle_time_ms);
    }
    if (flexible) {
      Writer::Tags tags = w.begin_tags();
      if (!supported_features.empty()) {
        w.begin_tag(tags, 0);
        w.write_structs(supported_features, version, true);
        w.end_tag(tags);
      }
      if (finalized_features_epoch != -1) {
        w.begin_tag(tags, 1);
        w.write_int64(finalized_features_epoch);
        w.end_tag(tags);
      }
      if (!finalized_features.empty()) {
        w.begin_tag(tags, 2);
        w.write_structs(finalized_features, version, true);
        w.end_tag(tags);
      }
      if (zk_migration_ready) {
        w.begin_tag(tags, 3);
        w.write_bool(zk_migration_ready);
        w.end_tag(tags);
      }
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 3;
    r.begin(name, version);
    error_code = r.read_int16("error_code");
    r.read_structs(api_keys, version, flexible, "api_keys");
    if (version >= 1) {
      throttle_time_ms = r.read_int32("throttle_time_ms");
    } else {
      throttle_time_ms = 0;
    }
    supported_features.clear();
    finalized_features_epoch = -1;
    finalized_features.clear();
    zk_migration_ready = false;
    if (flexible) {
      for (TaggedFields tags(r, "tagged_fields"); tags.next();) {
        switch (tags.tag()) {
          case 0:
            r.read_structs(supported_features, version, true, "supported_features");
            break;
          case 1:
            finalized_features_epoch = r.read_int64("finalized_features_epoch");
            break;
          case 2:
            r.read_structs(finalized_features, version, true, "finalized_features");
            break;
          case 3:
            zk_migration_ready = r.read_bool("zk_migration_ready");
            break;
          default:
            tags.skip();
        }
      }
    }
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("error_code", error_code);
    f("api_keys", api_keys);
    f("throttle_time_ms", throttle_time_ms);
    f("supported_features", supported_features);
    f("finalized_features_epoch", finalized_features_epoch);
    f("finalized_features", finalized_features);
    f("zk_migration_ready", zk_migration_ready);
  }
};

}  // namespace kc
