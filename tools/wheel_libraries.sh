#!/usr/bin/env bash
# Owns: building the C libraries that wheels bundle, from the sources of a released tag each, for cibuildwheel's
# before-all: shared, position independent, for the baseline of the architecture (zstd and OpenSSL choose at run time).
# Arguments: where to install. With KCONSUMER_SOURCES=FOLDER sources lie there as FOLDER/zlib, …; else git fetches them.
# Beside them go the version and the licence of each, which tools/finish_wheel.py asks for.
# Never: takes a library of the system.
set -euo pipefail

prefix=$1
# What OpenSSL's Configure is written in, where the image of the build has little of it.
if command -v dnf >/dev/null; then dnf -y -q install perl-core; elif command -v apk >/dev/null; then apk add -q perl linux-headers; fi
jobs=$(getconf _NPROCESSORS_ONLN)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
told=$prefix/share/kconsumer
mkdir -p "$told"
export CFLAGS="-O3 -fPIC ${CFLAGS:-}" CXXFLAGS="-O3 -fPIC ${CXXFLAGS:-}"
[[ $(uname) == Darwin ]] && export MACOSX_DEPLOYMENT_TARGET=${MACOSX_DEPLOYMENT_TARGET:-11.0}

source_of() {  # name, repository, tag, licence file
  if [[ -n ${KCONSUMER_SOURCES:-} ]]; then
    cp -r "$KCONSUMER_SOURCES/$1" "$work/$1"
  else
    git clone -q --depth 1 --branch "$3" -c advice.detachedHead=false "https://github.com/$2" "$work/$1"
  fi
  cp "$work/$1/$4" "$told/$1.licence"
  sed 's/^[^0-9]*//' <<<"$3" >"$told/$1.version"
}

with_cmake() {  # name, folder of CMakeLists.txt, options
  cmake -S "$work/$1/$2" -B "$work/$1.build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_NAME_DIR="$prefix/lib" -DBUILD_SHARED_LIBS=ON \
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "${@:3}" >/dev/null
  cmake --build "$work/$1.build" -j "$jobs" >/dev/null
  cmake --install "$work/$1.build" --strip >/dev/null
}

source_of zlib madler/zlib v1.3.1 LICENSE
(cd "$work/zlib" && ./configure --prefix="$prefix" >/dev/null && make -j "$jobs" >/dev/null && make install >/dev/null)

source_of lz4 lz4/lz4 v1.10.0 lib/LICENSE
with_cmake lz4 build/cmake -DLZ4_BUILD_CLI=OFF -DLZ4_BUILD_LEGACY_LZ4C=OFF

source_of zstd facebook/zstd v1.5.7 LICENSE
with_cmake zstd build/cmake -DZSTD_BUILD_PROGRAMS=OFF -DZSTD_BUILD_STATIC=OFF -DZSTD_BUILD_TESTS=OFF

source_of snappy google/snappy 1.2.2 COPYING
with_cmake snappy . -DSNAPPY_BUILD_TESTS=OFF -DSNAPPY_BUILD_BENCHMARKS=OFF -DSNAPPY_REQUIRE_AVX=OFF \
  -DSNAPPY_REQUIRE_AVX2=OFF

# Without modules: a provider that the system's openssl.cnf names would be looked for below the prefix, where on macOS any
# user can put one.
source_of openssl openssl/openssl openssl-3.5.4 LICENSE.txt
(cd "$work/openssl" && ./Configure --prefix="$prefix" --libdir=lib --openssldir=/etc/ssl no-tests no-docs no-legacy \
  no-module no-engine shared >/dev/null && make -j "$jobs" >/dev/null && make install_sw >/dev/null)

echo "libraries: $(cd "$told" && for v in *.version; do printf '%s %s, ' "${v%.version}" "$(cat "$v")"; done)in $prefix"
