#!/usr/bin/env bash
# Owns: building the extension modules in place, in a mode: release or debug (setup.py's KCONSUMER_DEBUG).
# Objects of one mode are never linked with those of the other: a change of mode builds everything again.
# Never: installs anything.
set -euo pipefail

python=$1
mode=$2
stamp=build/stamps/mode
force=()
if [[ $(cat "$stamp" 2>/dev/null || true) != "$mode" ]]; then
  force=(--force)
  rm -f "$stamp"
fi
log=build/build.log
export KCONSUMER_DEBUG=$([[ $mode == debug ]] && echo 1 || echo 0)
if ! "$python" setup.py build_ext --inplace "${force[@]}" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
echo "$mode" >"$stamp"
