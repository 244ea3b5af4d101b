#!/usr/bin/env bash
# Owns: the proof that an installed package works on every Python from 3.10 to 3.13 found here: in a clean venv of each,
# out of the source tree, `pip install .` with the modules that tests use, and the quick tests; or with --wheels FOLDER the
# wheel that lies there, nothing but that, and what tools/test_wheel.py runs of the unit and embedded tests. Further
# arguments are pytest's. MINORS="11 12" leaves the others out.
# Never: passes when no Python was found.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
tree=$(pwd)
wheels=
if [[ ${1:-} == --wheels ]]; then
  wheels=$(cd "$2" && pwd)
  shift 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tested=0
for minor in ${MINORS:-10 11 12 13}; do
  python=$("$here/find_python.sh" "$minor") || { echo "== no Python 3.$minor here"; continue; }
  echo "== $("$python" -V)"
  "$python" -m venv "$work/3.$minor"
  pip=("$work/3.$minor/bin/python" -m pip install -q --disable-pip-version-check)
  if [[ -n $wheels ]]; then
    "${pip[@]}" --no-index --no-deps --find-links "$wheels" --only-binary :all: kconsumer
  else
    KCONSUMER_TESTING=1 "${pip[@]}" .
  fi
  (cd "$work" && "3.$minor/bin/python" -c 'import kconsumer; print("installed", kconsumer.__version__, "without dependencies")')
  (cd "$work" && "3.$minor/bin/python" -c 'import importlib.util as u; assert u.find_spec("pyspark_kconsumer"), "Spark would not find us"')
  "${pip[@]}" pytest pytest-timeout pytest-xdist hypothesis 'confluent-kafka[schemaregistry]>=2.16' 'kafka-python>=3.0.12' pyarrow \
    polars duckdb pandas numpy lz4 zstandard python-snappy xxhash cryptography prometheus-client uvloop 'click>=8.1' 'rich>=13' \
    fastavro protobuf 'grpcio-tools>=1.66' nbclient ipykernel matplotlib
  # Out of the tree: what is imported must be what was installed.
  if [[ -n $wheels ]]; then
    (cd "$work" && "3.$minor/bin/python" "$here/test_wheel.py" "$tree" "$@")
  else
    # The tree is on the path for the tests that import others; kconsumer is not there, but in its folder src.
    # The installed tests.core is found before one that was built in the tree.
    site=$("$work/3.$minor/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    (cd "$work" && PYTHONPATH=$site:$tree "3.$minor/bin/python" -m pytest -c "$tree/pyproject.toml" --rootdir "$tree" \
      -p no:cacheprovider -m 'not slow and not spark and not kafka' "$@" "$tree/tests")
  fi
  tested=$((tested + 1))
done
if (( tested == 0 )); then
  echo "no Python from 3.10 to 3.13 found" >&2
  exit 1
fi
