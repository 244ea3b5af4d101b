// Owns: TlsConfig, the `ssl.` properties of one consumer, and TlsFile, the state of one file of these properties.
// Threads: A writes them; then the threads that load credentials read them. Never: leaves a secret unwiped.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/secret.hpp"

namespace kc {

struct TlsConfig {
  std::string ca_location;  // a file, a folder, `probe`, or empty
  std::string ca_pem;
  std::string certificate_location, certificate_pem;
  std::string key_location;
  Secret key_pem, key_password;
  std::string keystore_location;
  Secret keystore_password;
  std::string crl_location;
  std::string cipher_suites, curves, sigalgs;
  std::string protocols;      // TLSv1.2, TLSv1.3; empty for both
  bool verify = true;         // verify the certificate of the broker
  bool verify_host = true;    // and that it is valid for the host name of the connection
  bool has_key_password = false, has_keystore_password = false;
  bool has_identity() const {
    return !certificate_location.empty() || !certificate_pem.empty() || !keystore_location.empty();
  }
};

// Identifies a version of a file. It follows symlinks, because mounted secrets change by a new symlink target.
struct TlsFile {
  std::string path;
  uint64_t device = 0, inode = 0;
  int64_t size = -1, seconds = 0, nanoseconds = 0;

  static TlsFile of(const std::string& path) {
    struct stat s;
    TlsFile file;
    file.path = path;
    if (::stat(path.c_str(), &s) == 0) file.take(s);
    return file;
  }
  void take(const struct stat& s) {
    device = static_cast<uint64_t>(s.st_dev);
    inode = static_cast<uint64_t>(s.st_ino);
    size = static_cast<int64_t>(s.st_size);
#ifdef __APPLE__
    seconds = s.st_mtimespec.tv_sec;
    nanoseconds = s.st_mtimespec.tv_nsec;
#else
    seconds = s.st_mtim.tv_sec;
    nanoseconds = s.st_mtim.tv_nsec;
#endif
  }
  bool operator==(const TlsFile& o) const {
    return device == o.device && inode == o.inode && size == o.size && seconds == o.seconds &&
           nanoseconds == o.nanoseconds;
  }
  bool changed() const { return !(of(path) == *this); }
};

// Reads a whole file, at most 16 MiB, and appends its state to `files`. Returns 0 or an errno.
inline int read_tls_file(const std::string& path, Secret* out, std::vector<TlsFile>* files) {
  constexpr size_t kMost = 16 << 20;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  struct stat s;
  int error = ::fstat(fd, &s) == 0 ? 0 : errno;
  if (error == 0) {
    TlsFile file;
    file.path = path;
    file.take(s);
    files->push_back(file);
  }
  uint8_t buffer[16384];
  while (error == 0 && out->size() <= kMost) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n == 0) break;
    if (n > 0) {
      out->append(buffer, static_cast<size_t>(n));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  OPENSSL_cleanse(buffer, sizeof buffer);
  ::close(fd);
  return error == 0 && out->size() > kMost ? EFBIG : error;
}

}  // namespace kc
