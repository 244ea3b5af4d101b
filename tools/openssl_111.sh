#!/usr/bin/env bash
# Owns: the proof that kconsumer still builds with OpenSSL 1.1.1, and that its TLS and SASL work with it (Linux): builds
# 1.1.1w in build/openssl-1.1.1, kconsumer with it in another folder, and runs the tests of TLS and SASL, or the given ones.
# The sources are those of the crate openssl-src, whose checksum cargo knows; with KCONSUMER_SOURCES=FOLDER they lie there
# as FOLDER/openssl-1.1.1. Arguments: the Python, then pytest's.
# Never: touches the modules in src/, passes when another OpenSSL was loaded.
set -euo pipefail

python=$1
shift
[[ $python != */* || $python == /* ]] || python=$PWD/$python
place=$PWD/build/openssl-1.1.1
prefix=$place/prefix
jobs=${KCONSUMER_JOBS:-$(getconf _NPROCESSORS_ONLN)}

fetch() {
  command -v cargo >/dev/null || { echo "openssl_111: install cargo, or set KCONSUMER_SOURCES" >&2; exit 1; }
  mkdir -p "$place/fetch/src"
  touch "$place/fetch/src/lib.rs"
  cat >"$place/fetch/Cargo.toml" <<'TOML'
[package]
name = "sources"
version = "0.0.0"
edition = "2021"
[dependencies]
openssl-src = "=111.28.2"
[workspace]
TOML
  (cd "$place/fetch" && cargo vendor -q >/dev/null)
  cp -r "$place/fetch/vendor/openssl-src/openssl" "$place/source"
}

if [[ ! -e $prefix/lib/libssl.so.1.1 ]]; then
  rm -rf "$place"
  mkdir -p "$place"
  if [[ -n ${KCONSUMER_SOURCES:-} ]]; then cp -r "$KCONSUMER_SOURCES/openssl-1.1.1" "$place/source"; else fetch; fi
  (cd "$place/source" && sh ./config --prefix="$prefix" --libdir=lib shared no-tests >/dev/null &&
    make -s -j "$jobs" build_libs >/dev/null && make -s install_dev install_runtime_libs >/dev/null)
fi

KCONSUMER_TESTING=1 KCONSUMER_LIBRARIES=$prefix "$python" setup.py -q build --build-base "$place/build" \
  --build-lib "$place/lib" >"$place/build.log" 2>&1 || { cat "$place/build.log" >&2; exit 1; }
# Run where they lie, so that tests.core is found here before the one that was built in place.
root=$PWD
export PYTHONPATH=$place/lib:$root LD_LIBRARY_PATH=$prefix/lib
cd "$place/lib"
"$python" - "$place" <<'PYTHON'
import sys
from tests.core.inside import openssl_version
loaded = [line.split()[-1] for line in open("/proc/self/maps") if "libssl.so.1.1" in line]
assert openssl_version() == (1, 1) and loaded[0].startswith(sys.argv[1]), f"{openssl_version()}, {loaded}"
PYTHON
if [[ $# == 0 ]]; then set -- tests/unit/network tests/kafka/test_tls{,_examples}.py tests/kafka/test_sasl{,_examples}.py; fi
exec "$python" -m pytest -c "$root/pyproject.toml" --rootdir "$root" "${@/#tests\//$root/tests/}"
