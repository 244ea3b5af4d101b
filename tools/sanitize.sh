#!/usr/bin/env bash
# Owns: building the extension modules with ThreadSanitizer, or AddressSanitizer and UndefinedBehaviorSanitizer, in a
# copy of the sources under build/sanitize/, and running tests with them: tools/sanitize.sh thread|address [pytest args].
# Without arguments for pytest: with `thread` tests/unit/test_threads.py, with `address` the unit tests of the core and
# those of fork() on the embedded cluster.
# Fails on a finding in our code, on a failed test, and when a module turns out not to be instrumented: a run that is
# green because nothing was watched means nothing. Never: touches the modules that were built in place.
set -euo pipefail

cd "$(dirname "$0")/.."
mode=${1:?"sanitize.sh thread|address [pytest arguments]"}
shift
python=${PYTHON:-.venv/bin/python}
root=$PWD
tree=$root/build/sanitize/$mode
case $mode in
  thread) debug=0; runtime=libtsan.so; symbol=__tsan_; tests=(tests/unit/test_threads.py) ;;
  address)
    # Unoptimized: the compiler takes many times as long otherwise, and assertions are on.
    debug=1; runtime=libasan.so; symbol=__asan_
    # The slow ones decode thousands of millions of items.
    tests=(tests/unit/{managers,consumer,state,events,records,values,protocol,network} tests/unit/test_threads.py
           tests/embedded/test_fork.py -m "not slow")
    ;;
  *) echo "sanitize: the mode is thread or address, not $mode" >&2; exit 2 ;;
esac
(( $# == 0 )) || tests=("$@")

# A copy, because modules lie beside their sources. Unchanged files keep their time, and so their objects.
mkdir -p "$tree"
tar -c --exclude='*.so' --exclude='__pycache__' --exclude='*.egg-info' src tests/core setup.py pyproject.toml README.md \
  LICENSE |
  tar -x -C "$tree"
ln -sfn ../_core "$tree/src/kconsumer/_core"
log=$tree/build.log
export KCONSUMER_DEBUG=$debug KCONSUMER_SANITIZE=$mode
if ! (cd "$tree" && "$root/$python" setup.py build_ext --inplace) >"$log" 2>&1; then
  tail -40 "$log" >&2
  exit 1
fi

checked=0
while IFS= read -r module; do
  if [[ $(nm -D --undefined-only "$module") != *"$symbol"* ]]; then
    echo "sanitize: $module does not import $symbol*: it is not instrumented" >&2
    exit 1
  fi
  checked=$((checked + 1))
done < <(find "$tree/src/_core" "$tree/tests/core" -name '*.so')
echo "sanitize: $checked modules instrumented ($mode)"

reports=$tree/reports
preload=$("${CXX_FOR_RUNTIME:-g++}" -print-file-name=$runtime)
# AddressSanitizer looks for the C++ library's throw when it starts.
[[ $mode == thread ]] || preload+=" $("${CXX_FOR_RUNTIME:-g++}" -print-file-name=libstdc++.so)"
# In the copy, whose tests/core is found before the one that was built in place.
watched() {
  env -C "$tree" LD_PRELOAD="$preload" PYTHONPATH="$tree/src:$root" PYTHONDONTWRITEBYTECODE=1 PYTHONMALLOC=malloc \
    TSAN_OPTIONS="exitcode=66 second_deadlock_stack=1 history_size=5 log_path=$reports/report" \
    ASAN_OPTIONS="detect_leaks=0 log_path=$reports/report" UBSAN_OPTIONS="print_stacktrace=1 log_path=$reports/report" \
    "$root/$python" "$@"
}
count_reports() {
  cat "$reports"/report.* 2>/dev/null |
    grep -cE 'WARNING: ThreadSanitizer|ERROR: AddressSanitizer|Sanitizer: CHECK failed|runtime error' || true
}

# A fault of our own must be reported, by the same interpreter with the same modules, or nothing below means anything.
rm -rf "$reports"
mkdir -p "$reports"
cat >"$tree/probe.cpp" <<'CPP'
#include <thread>
extern "C" void fault_thread() {
  static int n;
  std::thread a([] { for (int i = 0; i < 10000; i++) n++; }), b([] { for (int i = 0; i < 10000; i++) n++; });
  a.join();
  b.join();
}
extern "C" void fault_address() {
  static volatile int past = 8;
  volatile char* p = new char[8];
  p[past] = 1;
  delete[] p;
}
CPP
"${CXX_FOR_RUNTIME:-g++}" -std=c++17 -g -fPIC -shared "-fsanitize=$mode" "$tree/probe.cpp" -o "$tree/probe.so"
watched -c 'import ctypes, sys, kconsumer
assert kconsumer.__file__.startswith(sys.argv[1]), kconsumer.__file__
getattr(ctypes.CDLL(sys.argv[2]), sys.argv[3])()' "$tree/src" "$tree/probe.so" "fault_$mode" 2>"$tree/probe.log" || true
if (( $(count_reports) == 0 )); then
  echo "sanitize: a planted fault is not reported; see $tree/probe.log" >&2
  exit 1
fi

rm -rf "$reports"
mkdir -p "$reports"
status=0
watched -m pytest -c "$root/pyproject.toml" --rootdir "$root" -q -p no:cacheprovider --timeout 600 \
  "${tests[@]/#tests\//$root/tests/}" || status=$?
found=$(count_reports)
if (( found > 0 )); then
  cat "$reports"/report.* >&2
fi
echo "sanitize: $found report(s), tests ended with $status"
(( found == 0 && status == 0 ))
