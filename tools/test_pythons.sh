#!/usr/bin/env bash
# Owns: the proof that `pip install .` in a clean venv gives a working package on every Python from 3.10 to 3.13 found
# here (as python3.N on PATH, or under pyenv): installs it and runs the quick tests outside the source tree.
# Never: passes when no Python was found.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tested=0
for minor in 10 11 12 13; do
  python=$(command -v "python3.$minor" || true)
  if [[ -z $python ]] || ! "$python" -c pass 2>/dev/null; then
    versions=${PYENV_ROOT:-$HOME/.pyenv}/versions
    python=$(ls -d "$versions"/3."$minor".*/bin/python 2>/dev/null | sort -V | tail -1 || true)
  fi
  if [[ -z $python ]]; then
    echo "== no Python 3.$minor here"
    continue
  fi
  echo "== $("$python" -V)"
  "$python" -m venv "$work/3.$minor"
  "$work/3.$minor/bin/python" -m pip install -q --disable-pip-version-check .
  "$work/3.$minor/bin/python" -c 'import kconsumer; print("installed", kconsumer.__version__, "without dependencies")'
  "$work/3.$minor/bin/python" -c 'import importlib.util as u; assert u.find_spec("pyspark_kconsumer"), "Spark would not find us"'
  "$work/3.$minor/bin/python" -m pip install -q --disable-pip-version-check \
    pytest pytest-timeout hypothesis 'confluent-kafka>=2.16' 'kafka-python>=3.0.12' pyarrow \
    polars duckdb pandas numpy lz4 zstandard python-snappy 'click>=8.1' 'rich>=13'
  # Out of the tree: what is imported must be what was installed.
  (cd "$work" && "3.$minor/bin/python" -m pytest -c "$OLDPWD/pyproject.toml" --rootdir "$OLDPWD" \
    -p no:cacheprovider -m 'not slow and not spark and not kafka' "$@" "$OLDPWD/tests")
  tested=$((tested + 1))
done
if (( tested == 0 )); then
  echo "no Python from 3.10 to 3.13 found" >&2
  exit 1
fi
