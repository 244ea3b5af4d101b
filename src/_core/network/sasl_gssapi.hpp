// Owns: GSSAPI (RFC 4752, Kerberos) with a libgssapi that is loaded at run time, so that a build or a wheel does not
// need it. Threads: every step on H, because the library waits for name servers and the KDC.
// Never: encrypts later requests: Kafka uses GSSAPI only for authentication.
#pragma once
#include <dlfcn.h>

#include <cstring>
#include <mutex>

#include "network/sasl_mechanism.hpp"

namespace kc {

// The used parts of the C bindings (RFC 2744), with separate names.
namespace gss {
struct Buffer {
  size_t length = 0;
  void* value = nullptr;
};
struct Oid {
  uint32_t length;
  const void* elements;
};
struct StoreElement {
  const char* key;
  const char* value;
};
struct Store {
  uint32_t count;
  StoreElement* elements;
};
constexpr uint32_t kContinue = 1;
constexpr uint32_t kErrors = 0xffff0000u;
constexpr uint32_t kMutual = 2, kReplay = 4, kSequence = 8, kIntegrity = 32;
constexpr int kInitiate = 1, kStatusOfGss = 1, kStatusOfMechanism = 2;
constexpr uint32_t kIndefinite = 0xffffffffu;
constexpr uint8_t kNoLayer = 1;

// Loaded once and never closed, because the library keeps per-thread state.
struct Library {
  uint32_t (*import_name)(uint32_t*, Buffer*, const Oid*, void**) = nullptr;
  uint32_t (*release_name)(uint32_t*, void**) = nullptr;
  uint32_t (*init_sec_context)(uint32_t*, void*, void**, void*, const Oid*, uint32_t, uint32_t, void*, Buffer*, void**,
                               Buffer*, uint32_t*, uint32_t*) = nullptr;
  uint32_t (*delete_sec_context)(uint32_t*, void**, Buffer*) = nullptr;
  uint32_t (*release_buffer)(uint32_t*, Buffer*) = nullptr;
  uint32_t (*display_status)(uint32_t*, uint32_t, int, const Oid*, uint32_t*, Buffer*) = nullptr;
  uint32_t (*wrap)(uint32_t*, void*, int, uint32_t, Buffer*, int*, Buffer*) = nullptr;
  uint32_t (*unwrap)(uint32_t*, void*, Buffer*, Buffer*, int*, uint32_t*) = nullptr;
  uint32_t (*release_cred)(uint32_t*, void**) = nullptr;
  // Not in every library: takes a keytab or cache as arguments instead of environment variables.
  uint32_t (*acquire_cred_from)(uint32_t*, void*, uint32_t, void*, int, const Store*, void**, void*,
                                uint32_t*) = nullptr;
  std::string missing;  // why the library is not usable; empty if it is
};

template <class F>
bool find_symbol(void* library, const char* name, F* out) {
  *out = reinterpret_cast<F>(dlsym(library, name));
  return *out != nullptr;
}

inline void load_library(Library* lib) {
#ifdef __APPLE__
  const char* const names[] = {"/System/Library/Frameworks/GSS.framework/GSS", "libgssapi_krb5.dylib"};
  const char* const install = "it is part of macOS";
#else
  const char* const names[] = {"libgssapi_krb5.so.2", "libgssapi.so.3", "libgssapi_krb5.so"};
  const char* const install = "install it: libgssapi-krb5-2 on Debian and Ubuntu, krb5-libs on Red Hat and Alpine";
#endif
  void* handle = nullptr;
  for (const char* name : names) {
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle) break;
  }
  if (!handle) {
    lib->missing = std::string("GSSAPI needs the Kerberos library libgssapi_krb5, which was not found: ") + install;
    return;
  }
  const bool whole = find_symbol(handle, "gss_import_name", &lib->import_name) &&
                     find_symbol(handle, "gss_release_name", &lib->release_name) &&
                     find_symbol(handle, "gss_init_sec_context", &lib->init_sec_context) &&
                     find_symbol(handle, "gss_delete_sec_context", &lib->delete_sec_context) &&
                     find_symbol(handle, "gss_release_buffer", &lib->release_buffer) &&
                     find_symbol(handle, "gss_display_status", &lib->display_status) &&
                     find_symbol(handle, "gss_wrap", &lib->wrap) && find_symbol(handle, "gss_unwrap", &lib->unwrap) &&
                     find_symbol(handle, "gss_release_cred", &lib->release_cred);
  find_symbol(handle, "gss_acquire_cred_from", &lib->acquire_cred_from);
  if (!whole) lib->missing = std::string("this libgssapi does not have all functions that GSSAPI needs: ") + install;
}

inline Library& library() {
  static Library lib;
  static std::once_flag once;
  std::call_once(once, [] { load_library(&lib); });
  return lib;
}

constexpr Oid kHostService{10, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"};
constexpr Oid kPrincipalName{10, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01"};
constexpr Oid kKerberos{9, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"};
}  // namespace gss

struct KerberosSettings {
  std::string service = "kafka";
  std::string principal;  // empty: the principal of the keytab or the cache
  std::string keytab;     // empty: use the tickets in the default cache
  std::string cache;      // cache for the tickets of the keytab; the connections of a consumer share it
};

class SaslGssapi final : public SaslMechanism {
 public:
  SaslGssapi(const KerberosSettings& settings, const std::string& host) : settings_(settings), host_(host) {}
  ~SaslGssapi() override {
    if (!lib_) return;
    uint32_t minor = 0;
    if (context_) lib_->delete_sec_context(&minor, &context_, nullptr);
    if (target_) lib_->release_name(&minor, &target_);
    if (credential_) lib_->release_cred(&minor, &credential_);
  }
  const char* name() const override { return "GSSAPI"; }
  const char* remedy() const override { return "check sasl.kerberos.service.name and the tickets (klist)"; }
  bool slow() const override { return true; }

  SaslOutcome step(const uint8_t* message, size_t length, bool first, Secret* out, std::string* why) override {
    if (first && !begin(why)) return SASL_FAILED;
    gss::Buffer input;
    input.length = length;
    input.value = const_cast<uint8_t*>(message);
    if (state_ == CONTEXT) return establish(first ? nullptr : &input, out, why);
    if (state_ == LAYER) return negotiate(&input, out, why);
    if (length == 0) return SASL_DONE;
    *why = "the broker sent a GSSAPI message after the end of the authentication";
    return SASL_FAILED;
  }

 private:
  enum State : uint8_t { CONTEXT, LAYER, SETTLED };

  bool begin(std::string* why) {
    gss::Library& lib = gss::library();
    if (!lib.missing.empty()) {
      *why = lib.missing;
      return false;
    }
    lib_ = &lib;
    return import(settings_.service + "@" + host_, gss::kHostService, &target_, why) &&
           (settings_.keytab.empty() && settings_.principal.empty() ? true : acquire(why));
  }

  bool import(const std::string& text, const gss::Oid& kind, void** out, std::string* why) {
    gss::Buffer name;
    name.length = text.size();
    name.value = const_cast<char*>(text.data());
    uint32_t minor = 0;
    const uint32_t major = lib_->import_name(&minor, &name, &kind, out);
    return !(major & gss::kErrors) || failed("invalid Kerberos name '" + text + "'", major, minor, why);
  }

  bool acquire(std::string* why) {
    if (!lib_->acquire_cred_from) {
      *why = "this libgssapi does not support a keytab or principal from properties: set KRB5_CLIENT_KTNAME and "
             "KRB5CCNAME in the environment instead of sasl.kerberos.keytab and sasl.kerberos.principal";
      return false;
    }
    void* principal = nullptr;
    if (!settings_.principal.empty() && !import(settings_.principal, gss::kPrincipalName, &principal, why)) return false;
    gss::StoreElement elements[] = {{"client_keytab", settings_.keytab.c_str()}, {"ccache", settings_.cache.c_str()}};
    const gss::Store store{2, elements};
    const gss::Store* from = settings_.keytab.empty() ? nullptr : &store;
    uint32_t minor = 0, ignored = 0;
    const uint32_t major = lib_->acquire_cred_from(&minor, principal, gss::kIndefinite, nullptr, gss::kInitiate, from,
                                                   &credential_, nullptr, nullptr);
    if (principal) lib_->release_name(&ignored, &principal);
    return !(major & gss::kErrors) ||
           failed(settings_.keytab.empty() ? "cannot get a Kerberos ticket"
                                           : "cannot get a Kerberos ticket with the keytab " + settings_.keytab,
                  major, minor, why);
  }

  SaslOutcome establish(gss::Buffer* input, Secret* out, std::string* why) {
    gss::Buffer token;
    uint32_t minor = 0, ignored = 0, flags = 0;
    const uint32_t major =
        lib_->init_sec_context(&minor, credential_, &context_, target_, &gss::kKerberos,
                               gss::kMutual | gss::kReplay | gss::kSequence | gss::kIntegrity, 0, nullptr, input,
                               nullptr, &token, &flags, nullptr);
    out->append(token.value, token.length);
    lib_->release_buffer(&ignored, &token);
    if (major & gss::kErrors) {
      failed("cannot create a Kerberos context with " + settings_.service + "@" + host_, major, minor, why);
      return SASL_FAILED;
    }
    if (major & gss::kContinue) return SASL_SEND;
    if (!(flags & gss::kMutual)) {
      *why = "the broker did not prove its identity to Kerberos";
      return SASL_FAILED;
    }
    // The message may be empty. The broker then sends its security layers.
    state_ = LAYER;
    return SASL_SEND;
  }

  // Handles the broker's security layers, one bit each, and its buffer size. Both messages are wrapped.
  SaslOutcome negotiate(gss::Buffer* input, Secret* out, std::string* why) {
    gss::Buffer plain, wrapped;
    uint32_t minor = 0, ignored = 0;
    uint32_t major = lib_->unwrap(&minor, context_, input, &plain, nullptr, nullptr);
    if (major & gss::kErrors) {
      failed("cannot unwrap the broker's offer of security layers", major, minor, why);
      return SASL_FAILED;
    }
    const bool usable = plain.length == 4 && (static_cast<const uint8_t*>(plain.value)[0] & gss::kNoLayer);
    lib_->release_buffer(&ignored, &plain);
    if (!usable) {
      *why = "the broker requires a GSSAPI security layer, but Kafka uses GSSAPI only for authentication";
      return SASL_FAILED;
    }
    uint8_t answer[4] = {gss::kNoLayer, 0, 0, 0};
    gss::Buffer choice;
    choice.length = sizeof answer;
    choice.value = answer;
    major = lib_->wrap(&minor, context_, 0, 0, &choice, nullptr, &wrapped);
    if (major & gss::kErrors) {
      failed("cannot wrap the choice of a security layer", major, minor, why);
      return SASL_FAILED;
    }
    out->append(wrapped.value, wrapped.length);
    lib_->release_buffer(&ignored, &wrapped);
    state_ = SETTLED;
    return SASL_SEND;
  }

  // Sets `why` to `action` and the library's text. Always returns false.
  bool failed(const std::string& action, uint32_t major, uint32_t minor, std::string* why) {
    *why = action;
    describe_status(major, gss::kStatusOfGss, why);
    if (minor) describe_status(minor, gss::kStatusOfMechanism, why);
    return false;
  }
  void describe_status(uint32_t status, int kind, std::string* why) {
    uint32_t minor = 0, more = 0;
    for (int lines = 0; lines < 4; ++lines) {
      gss::Buffer text;
      if (lib_->display_status(&minor, status, kind, &gss::kKerberos, &more, &text) & gss::kErrors) return;
      *why += ": " + quoted_words(static_cast<const char*>(text.value), text.length);
      lib_->release_buffer(&minor, &text);
      if (!more) return;
    }
  }

  KerberosSettings settings_;
  std::string host_;
  gss::Library* lib_ = nullptr;
  void* target_ = nullptr;
  void* credential_ = nullptr;
  void* context_ = nullptr;
  State state_ = CONTEXT;
};

}  // namespace kc
