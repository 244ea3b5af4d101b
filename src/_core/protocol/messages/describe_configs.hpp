// Generated from kafka-clients 4.4.0 by tools/generate_protocol.py; not to be edited.
// Owns: the wire form of DescribeConfigs, all versions. Threads: any (values). Never: knows a connection.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/wire.hpp"

namespace kc {

struct DescribeConfigsRequest_DescribeConfigsResource {
  int8_t resource_type = 0;
  std::string resource_name;
  Nullable<std::vector<std::string>> configuration_keys{PRESENT};

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_int8(resource_type);
    w.write_string(resource_name, flexible);
    w.write_strings(configuration_keys, flexible, true);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    resource_type = r.read_int8("DescribeConfigsResource.resource_type");
    r.read_string(resource_name, flexible, "DescribeConfigsResource.resource_name");
    r.read_strings(configuration_keys, flexible, true, "DescribeConfigsResource.configuration_keys");
    if (flexible) {
      r.skip_tagged_fields("DescribeConfigsResource.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 4 ? 4 : 7;
  }
  template <class F>
  void each_field(F&& f) {
    f("resource_type", resource_type);
    f("resource_name", resource_name);
    f("configuration_keys", configuration_keys);
  }
};

struct DescribeConfigsRequest {
  static constexpr const char* name = "DescribeConfigsRequest";
  static constexpr int16_t api_key = 32;
  static constexpr int16_t min_version = 1;
  static constexpr int16_t max_version = 4;
  static constexpr int16_t header_version(int16_t version) { return version >= 4 ? 2 : 1; }
  static constexpr int16_t response_header_version(int16_t version) { return version >= 4 ? 1 : 0; }

  std::vector<DescribeConfigsRequest_DescribeConfigsResource> resources;
  bool include_synonyms = false;
  bool include_documentation = false;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_structs(resources, version, flexible);
    w.write_bool(include_synonyms);
    if (version >= 3) {
      w.write_bool(include_documentation);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.begin(name, version);
    r.read_structs(resources, version, flexible, "resources");
    include_synonyms = r.read_bool("include_synonyms");
    if (version >= 3) {
      include_documentation = r.read_bool("include_documentation");
    } else {
      include_documentation = false;
    }
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t version, const char** field) const {
    if (version < 3 && include_documentation) return refuse_field(field, "include_documentation");
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("resources", resources);
    f("include_synonyms", include_synonyms);
    f("include_documentation", include_documentation);
  }
};

struct DescribeConfigsResponse_DescribeConfigsSynonym {
  std::string name;
  NullableString value{PRESENT};
  int8_t source = 0;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_string(name, flexible);
    w.write_nullable_string(value, flexible, true);
    w.write_int8(source);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.read_string(name, flexible, "DescribeConfigsSynonym.name");
    r.read_nullable_string(value, flexible, true, "DescribeConfigsSynonym.value");
    source = r.read_int8("DescribeConfigsSynonym.source");
    if (flexible) {
      r.skip_tagged_fields("DescribeConfigsSynonym.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 4 ? 4 : 5;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("value", value);
    f("source", source);
  }
};

struct DescribeConfigsResponse_DescribeConfigsResourceResult {
  std::string name;
  NullableString value{PRESENT};
  bool read_only = false;
  int8_t config_source = -1;
  bool is_sensitive = false;
  std::vector<DescribeConfigsResponse_DescribeConfigsSynonym> synonyms;
  int8_t config_type = 0;
  NullableString documentation{PRESENT};

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_string(name, flexible);
    w.write_nullable_string(value, flexible, true);
    w.write_bool(read_only);
    w.write_int8(config_source);
    w.write_bool(is_sensitive);
    w.write_structs(synonyms, version, flexible);
    if (version >= 3) {
      w.write_int8(config_type);
      w.write_nullable_string(documentation, flexible, true);
    }
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.read_string(name, flexible, "DescribeConfigsResourceResult.name");
    r.read_nullable_string(value, flexible, true, "DescribeConfigsResourceResult.value");
    read_only = r.read_bool("DescribeConfigsResourceResult.read_only");
    config_source = r.read_int8("DescribeConfigsResourceResult.config_source");
    is_sensitive = r.read_bool("DescribeConfigsResourceResult.is_sensitive");
    r.read_structs(synonyms, version, flexible, "DescribeConfigsResourceResult.synonyms");
    if (version >= 3) {
      config_type = r.read_int8("DescribeConfigsResourceResult.config_type");
      r.read_nullable_string(documentation, flexible, true, "DescribeConfigsResourceResult.documentation");
    } else {
      config_type = 0;
      documentation.set_present().clear();
    }
    if (flexible) {
      r.skip_tagged_fields("DescribeConfigsResourceResult.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 4 ? 9 : version >= 3 ? 14 : 11;
  }
  template <class F>
  void each_field(F&& f) {
    f("name", name);
    f("value", value);
    f("read_only", read_only);
    f("config_source", config_source);
    f("is_sensitive", is_sensitive);
    f("synonyms", synonyms);
    f("config_type", config_type);
    f("documentation", documentation);
  }
};

struct DescribeConfigsResponse_DescribeConfigsResult {
  int16_t error_code = 0;
  NullableString error_message{PRESENT};
  int8_t resource_type = 0;
  std::string resource_name;
  std::vector<DescribeConfigsResponse_DescribeConfigsResourceResult> configs;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_int16(error_code);
    w.write_nullable_string(error_message, flexible, true);
    w.write_int8(resource_type);
    w.write_string(resource_name, flexible);
    w.write_structs(configs, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    error_code = r.read_int16("DescribeConfigsResult.error_code");
    r.read_nullable_string(error_message, flexible, true, "DescribeConfigsResult.error_message");
    resource_type = r.read_int8("DescribeConfigsResult.resource_type");
    r.read_string(resource_name, flexible, "DescribeConfigsResult.resource_name");
    r.read_structs(configs, version, flexible, "DescribeConfigsResult.configs");
    if (flexible) {
      r.skip_tagged_fields("DescribeConfigsResult.tagged_fields");
    }
  }
  static constexpr size_t min_size(int16_t version) {
    return version >= 4 ? 7 : 11;
  }
  template <class F>
  void each_field(F&& f) {
    f("error_code", error_code);
    f("error_message", error_message);
    f("resource_type", resource_type);
    f("resource_name", resource_name);
    f("configs", configs);
  }
};

struct DescribeConfigsResponse {
  static constexpr const char* name = "DescribeConfigsResponse";
  static constexpr int16_t api_key = 32;
  static constexpr int16_t min_version = 1;
  static constexpr int16_t max_version = 4;
  static constexpr int16_t header_version(int16_t version) { return version >= 4 ? 1 : 0; }

  int32_t throttle_time_ms = 0;
  std::vector<DescribeConfigsResponse_DescribeConfigsResult> results;

  void encode(Writer& w, int16_t version) const {
    const bool flexible = version >= 4;
    w.write_int32(throttle_time_ms);
    w.write_structs(results, version, flexible);
    if (flexible) {
      w.write_uvarint(0);
    }
  }
  void decode(Reader& r, int16_t version) {
    const bool flexible = version >= 4;
    r.begin(name, version);
    throttle_time_ms = r.read_int32("throttle_time_ms");
    r.read_structs(results, version, flexible, "results");
    if (flexible) {
      r.skip_tagged_fields("tagged_fields");
    }
  }
  bool can_encode(int16_t, const char**) const {
    return true;
  }
  template <class F>
  void each_field(F&& f) {
    f("throttle_time_ms", throttle_time_ms);
    f("results", results);
  }
};

}  // namespace kc
