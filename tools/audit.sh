#!/usr/bin/env bash
# Owns: asking PyPI which packages that the extras and the development tools resolve to today have known vulnerabilities.
# Fails where there is one, and where a package could not be looked up. Arguments: the interpreter with kconsumer's metadata.
# Never: changes that interpreter's packages; pip-audit has a venv of its own in build/audit.
set -euo pipefail

python=$1
extras=(arrow spark testing cli bench demo docs wheel dev)
out=build/audit
mkdir -p "$out"
[[ -x $out/venv/bin/pip ]] || "$python" -m venv "$out/venv"
"$out/venv/bin/pip" install -q --disable-pip-version-check -U pip-audit
# One at a time: demo wants another pyspark than spark does.
for extra in "${extras[@]}"; do
  "$python" tools/requirements.py "$extra" >"$out/$extra.txt"
  echo "== $extra"
  "$out/venv/bin/pip-audit" --strict --progress-spinner off -r "$out/$extra.txt"
done
