"""Where each system keeps the authorities it trusts: an /etc of that shape, mounted for one process alone."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from certificates import Authority

AUTHORITY = Authority()
# Ends with 0 after a handshake without any ca option, else with the reason as its last words.
CLIENT = """
import select, sys
from types import SimpleNamespace
from tests.core.inside import TlsFace

class Options(SimpleNamespace):
    verify = verify_host = True
    def __getattr__(self, name):
        return None

fd = int(sys.argv[1])
try:
    client = TlsFace(Options()).connect(fd, "localhost", 9093, False)
except ValueError as error:
    sys.exit(str(error))
while (state := client.handshake()) not in ("done", "failed"):
    select.select([fd], [], [], 10)
if state == "failed":
    sys.exit(client.error_text)
"""


def _unshare() -> list[str]:
    """The command before a command that runs it with separate mounts: as root, or by a user namespace."""
    ways = [["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]]
    for way in ways if shutil.which("unshare") else []:
        if subprocess.call([*way, "mount", "-t", "tmpfs", "none", "/etc"], stderr=subprocess.DEVNULL) == 0:
            return way
    return []


@pytest.fixture(scope="module")
def unshare() -> list[str]:
    way = _unshare()
    if not way:
        pytest.skip("this user may not mount anything, not even for one process (unshare --mount)")
    return way


def handshake(unshare: list[str], etc: dict[str, Path], tmp_path: Path) -> str:
    """The client's error with this /etc; "" once it trusts the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*AUTHORITY.issue().write(tmp_path, "server"))
    steps = ["mount -t tmpfs none /etc"]
    steps += [f"mkdir -p {os.path.dirname(path)} && cp {source} {path}" for path, source in etc.items()]
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SSL_CERT_")}
    with ours, theirs:
        command = f'{" && ".join(steps)} && exec "$0" -c "$1" {theirs.fileno()}'
        child = subprocess.Popen([*unshare, "sh", "-c", command, sys.executable, CLIENT], env=environment,
                                 pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True)
        theirs.close()
        try:
            context.wrap_socket(ours, server_side=True).close()
        except (ssl.SSLError, OSError):
            pass  # the client's words are the test's
        words = child.communicate(timeout=60)[1]
    assert (child.returncode == 0) == (words == ""), words
    return words.strip()


@pytest.mark.parametrize("place", [
    pytest.param("/etc/ssl/certs/ca-certificates.crt", id="debian"),
    pytest.param("/etc/pki/tls/certs/ca-bundle.crt", id="red-hat"),
    pytest.param("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", id="red-hat-extracted"),
    pytest.param("/etc/ssl/cert.pem", id="alpine-macos"),
    pytest.param("/etc/ssl/ca-bundle.pem", id="suse"),
    pytest.param("/etc/ssl/certs/one-of-many.pem", id="folder"),
])
def test_the_store_is_found(unshare: list[str], place: str, tmp_path: Path) -> None:
    bundle = AUTHORITY.write(tmp_path / "bundle.pem")
    assert handshake(unshare, {place: bundle}, tmp_path) == ""


def test_a_store_without_the_authority(unshare: list[str], tmp_path: Path) -> None:
    other = Authority("Other CA").write(tmp_path / "other.pem")
    words = handshake(unshare, {"/etc/pki/tls/certs/ca-bundle.crt": other}, tmp_path)
    assert "which is not among the trusted" in words


def test_no_store_at_all(unshare: list[str], tmp_path: Path) -> None:
    words = handshake(unshare, {}, tmp_path)
    assert words.startswith("ssl.ca.location is not set and this system has no CA certificates (searched ")
    assert "/etc/pki/tls/certs/ca-bundle.crt" in words
