#!/usr/bin/env bash
# Owns: the system packages that building and testing need: installs what is missing (Debian and Ubuntu, as root), else
# prints the one line that does, and fails. Arguments: the Python that will be used; `fuzz` to have clang with libFuzzer,
# `kerberos` the KDC that the tests of GSSAPI start (they are skipped, saying so, where there is none).
# Never: touches anything when nothing is missing, installs a Python.
set -euo pipefail

python=${1:-python3}

if ! command -v "$python" >/dev/null; then
  echo "setup: no '$python' on PATH; name one with: make setup PYTHON=..." >&2
  exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  echo "setup: Python 3.10 or newer is needed, $python is $("$python" -V)" >&2
  exit 1
fi

has_headers() {  # the Python's own C headers
  "$python" -c 'import os, sysconfig; raise SystemExit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'
}

has_jdk() {  # javac of Java 17 or newer
  local version
  version=$(javac -version 2>&1) || return 1
  [[ $version =~ ([0-9]+) ]] && (( BASH_REMATCH[1] >= 17 ))
}

if [[ $(uname) == Darwin ]]; then
  missing=()
  for formula in lz4 zstd snappy openssl@3 openjdk@17 maven; do
    brew list --versions "$formula" >/dev/null 2>&1 || missing+=("$formula")
  done
  if (( ${#missing[@]} )); then
    echo "setup: run this, then make again: brew install ${missing[*]}" >&2
    exit 1
  fi
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "setup: not Debian or Ubuntu: make sure that a C++17 compiler, the headers of lz4, zstd, snappy, zlib and" >&2
  echo "setup: OpenSSL, Java 17 (with javac) and Maven are there" >&2
  exit 0
fi

missing=()
for package in g++ liblz4-dev libzstd-dev libsnappy-dev zlib1g-dev libssl-dev; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
has_headers || missing+=("python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-dev")
"$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=("python3-venv")
command -v mvn >/dev/null || missing+=(maven)
if ! has_jdk; then
  # Releases that no longer carry Java 17 have a newer default; the lists of a fresh container are empty.
  if (( $(id -u) == 0 )); then apt-get update -qq; fi
  if apt-cache show openjdk-17-jdk-headless >/dev/null 2>&1; then
    missing+=(openjdk-17-jdk-headless)
  else
    missing+=(default-jdk-headless)
  fi
fi
if [[ ${2:-} == fuzz ]]; then
  command -v clang++ >/dev/null || missing+=(clang)
  if ! ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1; then
    if (( $(id -u) == 0 )); then apt-get update -qq; fi
    # Debian 12 has the run time per version only.
    if apt-cache show libclang-rt-dev >/dev/null 2>&1; then missing+=(libclang-rt-dev); else missing+=(libclang-rt-14-dev); fi
  fi
fi
if [[ ${2:-} == kerberos ]]; then
  for package in krb5-kdc krb5-admin-server krb5-user; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
fi
(( ${#missing[@]} )) || exit 0

install="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
if (( $(id -u) != 0 )); then
  echo "setup: run this, then make again: sudo sh -c '$install'" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}"
if ! has_jdk; then
  echo "setup: javac is still not of Java 17 or newer: $(javac -version 2>&1 || true)" >&2
  exit 1
fi
