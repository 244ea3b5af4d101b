#!/usr/bin/env bash
# Owns: the proof that kconsumer works on ARM64 (Linux), on an x86-64 machine: tests under qemu-user, in build/arm64.
#   root/      Debian's arm64 packages, only unpacked: CPython 3.11 and the C libraries. No chroot, no binfmt_misc.
#   venv/      arm64 wheels of the packages that tests use. Its bin/python is a script that starts CPython in qemu, so
#              that tests can start it too.
#   lib/       kconsumer, cross-compiled with the flags of a wheel, with the modules that only tests use.
# Arguments: CPython 3.11 with Cython and setuptools; then pytest's (default: tests/unit and tests/embedded).
# Never: passes if a module of another processor was imported; shows that the order of memory accesses is right: on
# x86-64, qemu keeps the order of x86-64, which is stronger than ARM64's.
set -euo pipefail

python=$1
shift
tree=$PWD
place=$tree/build/arm64
root=$place/root
site=$place/venv/lib/python3.11/site-packages
emulated=$place/venv/bin/python
jobs=${KCONSUMER_JOBS:-$(getconf _NPROCESSORS_ONLN)}

if [[ $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') != 3.11 ]]; then
  echo "arm64: CPython 3.11 is needed, as in Debian 12: make setup PYTHON=python3.11" >&2
  exit 1
fi
for command in mmdebstrap qemu-aarch64-static aarch64-linux-gnu-g++; do
  command -v "$command" >/dev/null || {
    echo "arm64: $command is missing: apt-get install mmdebstrap qemu-user-static g++-aarch64-linux-gnu" >&2
    exit 1
  }
done

unpack() {
  rm -rf "$root"
  mkdir -p "$place"
  mmdebstrap --quiet --variant=extract --architectures=arm64 --include=python3.11,libpython3.11-dev,libgssapi-krb5-2 \
    --include=liblz4-dev,libzstd-dev,libsnappy-dev,zlib1g-dev,libssl-dev bookworm "$root" >"$place/root.log" 2>&1 || {
    tail -5 "$place/root.log" >&2
    exit 1
  }
  # Links for the linker that begin with / would leave the root.
  find "$root/usr/lib/aarch64-linux-gnu" -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -sfr "$root$(readlink "$link")" "$link"
  done
  touch "$place/root.done"
}

install_packages() {
  rm -rf "$place/venv"
  mkdir -p "$site" "${emulated%/*}"
  printf 'home = %s\n' "$root/usr/bin" >"$place/venv/pyvenv.cfg"
  cat >"$emulated" <<SH
#!/bin/sh
exec qemu-aarch64-static -cpu neoverse-n1 -L '$root' -0 "\$0" '$root/usr/bin/python3.11' "\$@"
SH
  chmod +x "$emulated"
  echo "$place/lib" >"$site/kconsumer.pth"
  "$python" -m pip install -q --disable-pip-version-check --target "$site" --only-binary :all: --implementation cp \
    --python-version 3.11 --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \
    --platform manylinux2014_aarch64 --upgrade \
    pytest pytest-timeout hypothesis 'confluent-kafka[avro,schemaregistry]>=2.16' 'kafka-python>=3.0.12' pyarrow polars \
    duckdb pandas numpy lz4 zstandard python-snappy xxhash cryptography prometheus-client uvloop 'click>=8.2' \
    'rich>=13' fastavro protobuf 'grpcio-tools>=1.66'
  touch "$place/venv.done"
}

# The host's Python runs setup.py, and reads the compilers and the names of modules from Debian's arm64 CPython.
compile() {
  mkdir -p "$place/sysconfig"
  cp "$root/usr/lib/python3.11/_sysconfigdata__aarch64-linux-gnu.py" "$place/sysconfig/"
  env PYTHONPATH="$place/sysconfig" _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__aarch64-linux-gnu \
    _PYTHON_HOST_PLATFORM=linux-aarch64 \
    CC="aarch64-linux-gnu-gcc --sysroot=$root -I$root/usr/include/python3.11" \
    CXX="aarch64-linux-gnu-g++ --sysroot=$root -I$root/usr/include/python3.11" \
    LDSHARED="aarch64-linux-gnu-gcc --sysroot=$root -shared" \
    LDCXXSHARED="aarch64-linux-gnu-g++ --sysroot=$root -shared" \
    KCONSUMER_TESTING=1 KCONSUMER_JOBS="$jobs" \
    "$python" setup.py -q build --build-base "$place/build" --build-lib "$place/lib" >"$place/build.log" 2>&1 || {
    grep -m 20 -E 'error|Error' "$place/build.log" >&2 || tail -20 "$place/build.log" >&2
    exit 1
  }
}

[[ -e $place/root.done ]] || unpack
[[ -e $place/venv.done ]] || install_packages
compile

"$emulated" - "$place/lib" <<'PYTHON'
import importlib
import platform
import sys
from pathlib import Path

core = Path(sys.argv[1]) / "kconsumer" / "_core"
found = sorted(core.rglob("*.so"))
assert platform.machine() == "aarch64" and found, platform.machine()
for path in found:
    name = ".".join(path.relative_to(core.parents[1]).parts).partition(".cpython-")[0]
    module = importlib.import_module(name)
    assert Path(module.__file__) == path and path.name.endswith("-aarch64-linux-gnu.so"), module.__file__
print(f"arm64: {len(found)} modules imported by CPython {platform.python_version()} on {platform.machine()}")
PYTHON

[[ $# -gt 0 ]] || set -- tests/unit tests/embedded
# Left out: qemu does not apply limits of memory (RLIMIT_AS).
exec "$emulated" -m pytest -p no:cacheprovider --timeout=1200 -m 'not slow and not spark and not kafka' \
  --ignore=tests/unit/managers/test_no_memory_for_a_batch.py "$@"
