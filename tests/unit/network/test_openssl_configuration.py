"""OpenSSL's configuration file holds, as docs/security.md says: a system's policy is a policy for this client too."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))
from certificates import Authority

CLIENT = """
import socket, sys
from kconsumer import config
from kconsumer.config.tls import tls_options
from tests.core.inside import TlsFace
client = TlsFace(tls_options(config.parse({"bootstrap.servers": "localhost", "security.protocol": "ssl",
                                           "ssl.ca.location": sys.argv[2]})))
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
    transport = client.connect(sock.fileno(), "localhost", 9093)
    state = transport.handshake()
    assert state == "done", state
    print(transport.description)
"""
POLICY = """
openssl_conf = all
[all]
ssl_conf = of_tls
[of_tls]
system_default = policy
[policy]
Ciphersuites = TLS_CHACHA20_POLY1305_SHA256
"""


def negotiated(tmp_path: Path, environment: dict[str, str]) -> str:
    """The parameters that a client in a separate process negotiates with a server that accepts all."""
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue().write(tmp_path, "server"))

    def serve() -> None:
        sock, _ = listener.accept()
        with context.wrap_socket(sock, server_side=True) as served:
            served.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, str(listener.getsockname()[1]), str(authority.write(tmp_path / "ca.pem"))],
            capture_output=True, text=True, env={**os.environ, **environment}, check=False, timeout=60)
        server.join(60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(ssl.OPENSSL_VERSION_INFO < (1, 1, 1), reason="suites of TLS 1.3 are newer")
def test_the_configuration_file_counts(tmp_path: Path) -> None:
    (tmp_path / "openssl.cnf").write_text(POLICY)
    assert "CHACHA20" in negotiated(tmp_path, {"OPENSSL_CONF": str(tmp_path / "openssl.cnf")})
    assert "CHACHA20" not in negotiated(tmp_path, {"OPENSSL_CONF": os.devnull})
