#!/usr/bin/env bash
# Owns: building every tools/fuzz/fuzz_*.cpp with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, and running
# each for FUZZ_SECONDS (default 30) over its corpus in build/fuzz. Arguments: the targets to run, by file stem.
# Fails on the first finding, whose input libFuzzer leaves under build/fuzz/<target>/. Never: changes the source tree.
set -euo pipefail

cd "$(dirname "$0")/../.."
seconds=${FUZZ_SECONDS:-30}
out=build/fuzz
clang=${CLANGXX:-clang++}
if ! command -v "$clang" >/dev/null; then
  echo "fuzz: no $clang; on Debian/Ubuntu: apt-get install clang libclang-rt-dev (Debian 12: libclang-rt-14-dev)" >&2
  exit 1
fi
mkdir -p "$out"
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  "$clang" -x c++ -fsanitize=fuzzer,address,undefined - -o "$out/probe" 2>"$out/probe.log"; then
  echo "fuzz: $clang cannot link libFuzzer; on Debian/Ubuntu: apt-get install libclang-rt-dev (Debian 12: libclang-rt-14-dev)" >&2
  cat "$out/probe.log" >&2
  exit 1
fi

targets=("$@")
if (( ${#targets[@]} == 0 )); then
  for source in tools/fuzz/fuzz_*.cpp; do
    [[ -e $source ]] && targets+=("$(basename "$source" .cpp)")
  done
fi
if (( ${#targets[@]} == 0 )); then
  echo "fuzz: there is no tools/fuzz/fuzz_*.cpp" >&2
  exit 1
fi

run() {
  local target=$1 work=$out/$1 seeds=()
  mkdir -p "$work/corpus"
  [[ -d tools/fuzz/seeds/$target ]] && seeds=("tools/fuzz/seeds/$target")
  "$clang" -std=c++17 -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all \
    -fsanitize=fuzzer,address,undefined -Isrc/_core "tools/fuzz/$target.cpp" -o "$work/$target" -lz -llz4 -lzstd -lsnappy -lssl -lcrypto || return 1
  # libFuzzer's own allocation bound turns an unearned allocation into a finding; a hang is one after 10 seconds.
  "$work/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=0 \
    -artifact_prefix="$work/" "$work/corpus" "${seeds[@]}" >"$work/log" 2>&1 || { tail -60 "$work/log" >&2; return 1; }
  echo "== $target, $seconds s: $(tail -1 "$work/log")"
}

# One on each processor; after a finding no other begins.
export -f run
export clang seconds out
printf '%s\n' "${targets[@]}" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -I{} bash -euo pipefail -c 'run {} || exit 255'
