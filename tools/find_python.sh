#!/usr/bin/env bash
# Owns: where CPython 3.N is (argument: N): on PATH as python3.N, or under pyenv. Prints its path, or fails.
# Never: takes one that does not start.
set -euo pipefail

python=$(command -v "python3.$1" || true)
if [[ -z $python ]] || ! "$python" -c pass 2>/dev/null; then
  versions=${PYENV_ROOT:-$HOME/.pyenv}/versions
  python=$(ls -d "$versions"/3."$1".*/bin/python 2>/dev/null | sort -V | tail -1 || true)
fi
[[ -n $python ]] && echo "$python"
