#!/usr/bin/env bash
# Owns: the proof that a wheel installs and works in a bare system without a network: a Debian root with Python and nothing
# else, in its own network namespace (loopback only). There `pip install --no-index` takes the wheel, `kconsumer` is
# imported, and 1,000 records are consumed from an embedded cluster, whose extra comes from confluent-kafka's wheel.
# Arguments: the folder of the wheel (default: dist), and the root (default: made with debootstrap, and removed). Needs root.
# Never: passes if the network can be reached from inside.
set -euo pipefail

dist=$(cd "${1:-dist}" && pwd)
root=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -z $root ]]; then
  root=$work/root
  debootstrap --variant=minbase --include=python3-venv bookworm "$root" >"$work/debootstrap.log" || {
    tail -5 "$work/debootstrap.log" >&2
    exit 1
  }
fi
version=$(chroot "$root" python3 -c 'import sys; print("%d%d" % sys.version_info[:2])')
wheel=$(ls -t "$dist"/kconsumer-*-cp"$version"-*"$(uname -m)".whl 2>/dev/null | head -1) || true
[[ -n $wheel ]] || { echo "offline_install: $dist has no wheel for CPython ${version:0:1}.${version:1} on $(uname -m)" >&2; exit 1; }

rm -rf "$root/offline"
mkdir -p "$root/offline/wheels"
cp "$wheel" "$root/offline/wheels/"
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --python-version "$version" \
  --platform manylinux_2_28_"$(uname -m)" -d "$root/offline/wheels" 'confluent-kafka>=2.16'

cat >"$root/offline/smoke.py" <<'PYTHON'
import socket

try:
    socket.create_connection(("1.1.1.1", 443), timeout=2)
except OSError:
    pass
else:
    raise SystemExit("offline_install: the network can be reached")

import kconsumer
from kconsumer.testing import EmbeddedCluster

with EmbeddedCluster(1) as cluster:
    cluster.create_topic("t", partitions=2)
    cluster.produce("t", ({"partition": i % 2, "value": str(i)} for i in range(1000)))
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    with kconsumer.Consumer(settings) as consumer:
        consumer.subscribe(["t"])
        values = set()
        while len(values) < 1000:
            values.update(int(message.value()) for message in consumer.consume(1000, timeout=10))
print(f"kconsumer {kconsumer.__version__}: 1,000 records consumed, without a network")
PYTHON

unshare --net chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root bash -euc '
  ip link set lo up 2>/dev/null || python3 -c "
import fcntl, socket, struct
s = socket.socket()
fcntl.ioctl(s, 0x8914, struct.pack(\"16sh\", b\"lo\", 0x41))  # SIOCSIFFLAGS: IFF_UP | IFF_RUNNING
"
  cd /offline
  python3 -m venv venv
  venv/bin/pip install -q --disable-pip-version-check --no-index --find-links wheels kconsumer
  venv/bin/pip list --disable-pip-version-check
  venv/bin/pip install -q --disable-pip-version-check --no-index --find-links wheels "kconsumer[testing]"
  venv/bin/python smoke.py'
