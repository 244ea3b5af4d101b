"""TlsTransport over a socket pair, Python's ssl at the other end: no Kafka, a thread only where one side must block."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import fcntl
import socket
import ssl
import struct
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from certificates import Authority, Identity
from tests.core.inside import TlsFace, TransportFace

from kconsumer import KafkaError
from kconsumer.config.tls import pem_lines

DAY = datetime.timedelta(days=1)
Contexts = Callable[..., ssl.SSLContext]
AUTHORITY = Authority()
SERVER = AUTHORITY.issue()
CLIENT = AUTHORITY.issue("client", hosts=(), client=True)
READ_WANTS_WRITE = 1


def options(**given: Any) -> SimpleNamespace:
    names = ("ca_location certificate_location certificate_pem key_location key_pem key_password keystore_location "
             "keystore_password crl_location cipher_suites curves sigalgs protocols").split()
    return SimpleNamespace(**(dict.fromkeys(names) | {"ca_pem": AUTHORITY.pem, "verify": True, "verify_host": True}
                              | given))


@pytest.fixture
def server_context(tmp_path: Path) -> Contexts:
    def make(identity: Identity = SERVER, ask: str = "", **attributes: Any) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*identity.write(tmp_path, "server"))
        if ask:
            context.verify_mode = ssl.CERT_REQUIRED if ask == "required" else ssl.CERT_OPTIONAL
            context.load_verify_locations(cadata=AUTHORITY.pem)
        for name, value in attributes.items():
            setattr(context, name, value)
        return context

    return make


class Wire:
    """A client's transport and a server in memory, moved by hand over a socket pair: every step is the test's."""

    def __init__(self, face: TlsFace, context: ssl.SSLContext, host: str = "localhost", bulk: bool = False) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.theirs.setblocking(False)
        self.client: TransportFace = face.connect(self.ours.fileno(), host, 9093, bulk)
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = context.wrap_bio(self.into, self.out, server_side=True)
        self.unsent = b""

    def carry(self) -> None:
        """Carries the bytes at the server's side of the wire, in both directions."""
        try:
            while data := self.theirs.recv(1 << 20):
                self.into.write(data)
        except BlockingIOError:
            pass
        self.unsent += self.out.read()
        try:
            while self.unsent:
                self.unsent = self.unsent[self.theirs.send(self.unsent) :]
        except BlockingIOError:
            pass

    def serve(self, step: Callable[[], Any]) -> Any:
        """One call of the server's; None where it wants more."""
        try:
            return step()
        except ssl.SSLWantReadError:
            return None
        finally:
            self.carry()

    def shake(self) -> str:
        """Handshake of both; what the client came to: "done" or "failed"."""
        shaken = False
        for _ in range(20):
            state = self.client.handshake()
            self.carry()
            if not shaken:
                try:
                    shaken = self.serve(lambda: self.server.do_handshake() or True) is True
                except ssl.SSLError:
                    shaken = True
            if state == "failed" or (state == "done" and shaken):
                return str(state)
        raise AssertionError("the handshake does not end")

    def read(self) -> Any:
        self.carry()
        return self.client.read(1 << 20)

    def close(self) -> None:
        self.client.drop()
        self.ours.close()
        self.theirs.close()


Wires = Callable[..., Wire]


@pytest.fixture
def wire(server_context: Contexts) -> Iterator[Wires]:
    made: list[Wire] = []

    def make(face: TlsFace | None = None, context: ssl.SSLContext | None = None, **more: Any) -> Wire:
        made.append(Wire(face or TlsFace(options()), context or server_context(), **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_conversation(wire: Wires, server_context: Contexts,
                        version: ssl.TLSVersion) -> None:
    one = wire(context=server_context(minimum_version=version, maximum_version=version))
    assert one.client.handshake() == "read"
    assert one.shake() == "done"
    assert one.client.description.startswith("TLSv1.3 " if version is ssl.TLSVersion.TLSv1_3 else "TLSv1.2 ")
    assert one.client.write(b"question") == 8
    one.carry()
    assert one.server.read(100) == b"question"
    assert one.read() is None and not one.client.pending
    one.serve(lambda: one.server.write(b"answer"))
    assert one.client.read(3) == b"ans" and one.client.pending  # the rest is inside, the selector knows nothing of it
    assert one.client.read(100) == b"wer" and not one.client.pending
    with pytest.raises(ssl.SSLWantReadError):
        one.server.read(1)
    one.client.close()
    one.carry()
    assert one.server.read(1) == b""  # our close_notify


def test_sni_names_hosts_and_no_addresses(wire: Wires, server_context: Contexts) -> None:
    asked: list[str | None] = []
    context = server_context()
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    for host in ("localhost", "localhost.", "127.0.0.1"):
        assert wire(context=context, host=host).shake() == "done"
    assert asked == ["localhost", "localhost", None]


@pytest.mark.parametrize("bulk", [False, True])
def test_much_in_both_directions_through_tiny_buffers(wire: Wires, bulk: bool) -> None:
    one = wire(bulk=bulk)
    for end in (one.ours, one.theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    assert one.shake() == "done"
    there, back = bytes(range(256)) * 4000, bytes(reversed(range(256))) * 4000
    sent = answered = 0
    got_there, got_back = bytearray(), bytearray()
    while len(got_there) < len(there) or len(got_back) < len(back):
        # The buffer moves and grows between attempts, as a connection's does.
        if sent < len(there):
            sent += one.client.write(bytes(there[sent : sent + 70_000])) or 0
        if answered < len(back) and not one.unsent:
            piece = back[answered : answered + 50_000]
            answered += one.serve(lambda piece=piece: one.server.write(piece)) or 0
        one.carry()
        try:
            got_there += one.server.read(1 << 20)
        except ssl.SSLWantReadError:
            pass
        while (data := one.client.read(9999)) is not None:
            got_back += data
        assert not one.client.pending  # half a record may lie inside: it is nothing to read
    assert bytes(got_there) == there and bytes(got_back) == back


def test_pending_reports_unread_bytes_of_the_socket(wire: Wires) -> None:
    one = wire()
    assert one.shake() == "done"
    one.serve(lambda: one.server.write(b"x" * 100_000))
    got = 0
    while one.client.pending or got == 0:
        got += len(one.client.read(1 << 20) or b"")
    assert got == 100_000


def test_half_a_record_is_nothing_to_read(wire: Wires) -> None:
    one = wire()
    assert one.shake() == "done"
    assert one.read() is None  # session tickets
    one.server.write(b"whole")
    record = one.out.read()
    one.theirs.send(record[:-1])
    assert one.client.read(100) is None and not one.client.pending
    one.theirs.send(record[-1:])
    assert one.client.read(100) == b"whole"


def test_sessions_are_resumed_with_their_broker(wire: Wires, server_context: Contexts) -> None:
    face, context = TlsFace(options()), server_context()
    for expected in (False, True, True):
        one = wire(face, context)
        assert one.shake() == "done"
        assert one.read() is None  # takes the tickets
        assert one.client.description.endswith(", resumed") is expected
    other = wire(face, context, host="127.0.0.1")
    assert other.shake() == "done" and "resumed" not in other.client.description


def test_closed_and_cut_off_are_distinguished(wire: Wires) -> None:
    one = wire()
    assert one.shake() == "done"
    assert one.serve(one.server.unwrap) is None  # its close_notify
    assert one.read() == b""
    two = wire()
    assert two.shake() == "done"
    two.theirs.close()
    with pytest.raises(OSError, match="cut off: closed without a TLS close_notify"):
        two.client.read(1)
    assert two.client.error_code == KafkaError._TRANSPORT


def refused(one: Wire) -> str:
    """The message of a handshake that fails, however late the failure arrives."""
    if one.shake() == "done":
        with pytest.raises(OSError):
            one.read()
    assert one.client.error_code == KafkaError._SSL
    assert one.client.handshake() == "failed"
    with pytest.raises(OSError):
        one.client.write(b"x")
    return str(one.client.error_text)


@pytest.mark.parametrize(
    ("server", "host", "words"),
    [
        (Authority("Other CA").issue(), "localhost", "is signed by 'CN=Other CA', which is not among the trusted CA "
         "certificates: give that CA's certificate in ssl.ca.location"),
        (AUTHORITY.issue(end=-DAY / 2), "localhost", "'CN=localhost' expired on "),
        (AUTHORITY.issue(start=DAY), "localhost", "'CN=localhost' is valid only from "),
        (AUTHORITY.issue(hosts=("a.example", "10.0.0.1", "::1")), "localhost",
         "is for a.example, 10.0.0.1, ::1 and not for 'localhost'"),
        (AUTHORITY.issue(hosts=("localhost",)), "127.0.0.1", "is for localhost and not for '127.0.0.1'"),
        (AUTHORITY.issue("bad\nname", hosts=("x" * 300 + ".example",)), "localhost", "x" * 80 + "... and not"),
        (AUTHORITY.issue(client=True), "localhost", "is not accepted: "),
    ],
)  # fmt: skip
def test_a_certificate_that_is_not_accepted(
    wire: Wires, server_context: Contexts, server: Identity, host: str, words: str
) -> None:
    text = refused(wire(context=server_context(server), host=host))
    assert text.startswith("TLS handshake failed: the broker's certificate ") and words in text
    assert text.isprintable()


def test_disabled_certificate_checks_are_not_made(wire: Wires, server_context: Contexts) -> None:
    elsewhere = server_context(AUTHORITY.issue(hosts=("elsewhere",)))
    assert wire(TlsFace(options(verify_host=False)), elsewhere).shake() == "done"
    stranger = server_context(Authority("Other CA").issue(hosts=("elsewhere",)))
    assert wire(TlsFace(options(verify=False)), stranger).shake() == "done"


@pytest.mark.parametrize("host", [
    "", ".", "..", "%x", "%", ".localhost", "localhost..", "local..host", "localhost%x", "%localhost", "local host",
    "localhost\x00.evil", "localhost\n", "\x00", " ", "127.0.0.1%lo",
])  # fmt: skip
@pytest.mark.parametrize("checked", [True, False])
def test_an_empty_host_name_is_refused_before_the_handshake(wire: Wires, host: str, checked: bool) -> None:
    """OpenSSL takes such a name for none, or for one that it is not, and would accept any certificate."""
    one = wire(TlsFace(options(verify_host=checked)), host=host)
    assert one.client.handshake() == "failed"
    assert one.client.error_code == KafkaError._SSL
    assert f"'{host}' is not a host name or an address" in one.client.error_text
    one.carry()
    assert one.into.pending == 0  # not a byte was sent


def test_addresses_with_a_zone_are_addresses(wire: Wires, server_context: Contexts) -> None:
    context = server_context(AUTHORITY.issue(hosts=("fe80::1",)))
    assert wire(context=context, host="fe80::1%eth0").shake() == "done"
    assert wire(context=context, host="fe80::2%eth0").shake() == "failed"


def test_intermediate_authorities(wire: Wires, server_context: Contexts) -> None:
    middle = Authority("Middle CA", AUTHORITY)
    identity = middle.issue()
    assert wire(context=server_context(identity)).shake() == "done"
    # One that is trusted itself needs no root above it.
    assert wire(TlsFace(options(ca_pem=middle.pem)), server_context(identity)).shake() == "done"


def test_revoked(wire: Wires, server_context: Contexts, tmp_path: Path) -> None:
    lists = tmp_path / "lists.pem"
    face = lambda text: TlsFace(options(crl_location=str(lists))) if lists.write_text(text) else None  # noqa: E731
    assert wire(face(AUTHORITY.revoke(CLIENT)), server_context()).shake() == "done"
    assert "has been revoked (ssl.crl.location)" in refused(wire(face(AUTHORITY.revoke(SERVER)), server_context()))
    assert "out of date" in refused(wire(face(AUTHORITY.revoke(end=-DAY)), server_context()))
    assert "has no list of revoked certificates by 'CN=Test CA'" in refused(
        wire(face(Authority("Other CA").revoke()), server_context()))


@pytest.mark.parametrize("trusted", ["root", "both", "intermediate"])
def test_revoked_authorities(wire: Wires, server_context: Contexts, tmp_path: Path, trusted: str) -> None:
    """A CA between the root and the broker: its list must be there, the root's counts where it is."""
    root = Authority("Root CA")
    middle = Authority("Middle CA", root)
    server = middle.issue("below a CA")
    known = {"root": root.pem, "both": root.pem + middle.pem, "intermediate": middle.pem}[trusted]
    lists = tmp_path / "lists.pem"

    def meet(*given: str) -> Wire:
        lists.write_text("".join(given))
        return wire(TlsFace(options(ca_pem=known, crl_location=str(lists))), server_context(server))

    assert meet(middle.revoke()).shake() == "done"
    assert meet(middle.revoke(), root.revoke()).shake() == "done"
    assert meet(middle.revoke(), root.revoke(SERVER)).shake() == "done"
    assert "'CN=Middle CA' has been revoked (ssl.crl.location)" in refused(meet(middle.revoke(), root.revoke(middle)))
    assert "'CN=below a CA' has been revoked" in refused(meet(middle.revoke(server), root.revoke()))
    assert "no list of revoked certificates by 'CN=Middle CA'" in refused(meet(root.revoke()))


def test_authorities_in_one_line(wire: Wires) -> None:
    text = " ".join((Authority("Other CA").pem + AUTHORITY.pem).split())
    assert wire(TlsFace(options(ca_pem=pem_lines(text)))).shake() == "done"


@pytest.mark.parametrize(("names_key", "words"), [
    (True, "has no list of revoked certificates by 'CN=Test CA'"), (False, "is not accepted: CRL signature failure")])
def test_a_revocation_list_with_a_foreign_signature_is_ignored(
    wire: Wires, server_context: Contexts, tmp_path: Path, names_key: bool, words: str
) -> None:
    """Of the same name, but with another key."""
    lists = tmp_path / "lists.pem"
    lists.write_text(Authority("Test CA").revoke(names_key=names_key))
    assert words in refused(wire(TlsFace(options(crl_location=str(lists))), server_context()))


def test_revoked_by_a_list_that_names_no_key(wire: Wires, server_context: Contexts, tmp_path: Path) -> None:
    """After a list with a foreign signature OpenSSL's first error is not the one that ends the handshake."""
    root = Authority("Root CA")
    middle = Authority("Middle CA", root)
    lists = tmp_path / "lists.pem"
    lists.write_text(middle.revoke(names_key=False) + root.revoke(middle, names_key=False))
    face = TlsFace(options(ca_pem=middle.pem, crl_location=str(lists)))
    assert "'CN=Middle CA' has been revoked (ssl.crl.location)" in refused(
        wire(face, server_context(middle.issue("below a CA"))))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_client_certificates(
    wire: Wires, server_context: Contexts, version: ssl.TLSVersion
) -> None:
    context = server_context(ask="required", minimum_version=version, maximum_version=version)
    ours = options(certificate_pem=CLIENT.certificate_pem, key_pem=CLIENT.key_pem())
    good = wire(TlsFace(ours), context)
    assert good.shake() == "done"
    assert good.server.getpeercert()["subject"] == ((("commonName", "client"),),)
    assert "the broker demands a client certificate" in refused(wire(context=context)).replace(
        "and this client have no cipher suite, curve or signature algorithm in common", "demands a client certificate")
    stranger = Authority("Other CA").issue("stranger", client=True)
    strange = TlsFace(options(certificate_pem=stranger.certificate_pem, key_pem=stranger.key_pem()))
    text = refused(wire(strange, context))
    assert "the broker does not accept the client certificate 'CN=stranger' (alert: unknown CA)" in text


def test_a_late_alert_after_a_failed_write(wire: Wires, server_context: Contexts) -> None:
    """With TLS 1.3 our first request crosses the broker's refusal, and the broker's kernel resets the connection."""
    one = wire(context=server_context(ask="required"))
    assert one.shake() == "done"
    one.theirs.close()
    with pytest.raises(OSError, match="the broker demands a client certificate"):
        for _ in range(3):
            one.client.write(b"request")
    assert one.client.error_code == KafkaError._SSL


def test_versions_without_a_common_one(wire: Wires, server_context: Contexts) -> None:
    old = server_context(maximum_version=ssl.TLSVersion.TLSv1_2)
    text = refused(wire(TlsFace(options(protocols="TLSv1.3")), old))
    assert "supports neither TLS 1.2 nor 1.3" in text
    assert wire(TlsFace(options(protocols="TLSv1.2"))).shake() == "done"


def test_suites(wire: Wires, server_context: Contexts) -> None:
    suites = "TLS_CHACHA20_POLY1305_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    one = wire(TlsFace(options(cipher_suites=suites)))
    assert one.shake() == "done" and "TLS_CHACHA20_POLY1305_SHA256" in one.client.description
    old = server_context(maximum_version=ssl.TLSVersion.TLSv1_2)
    two = wire(TlsFace(options(cipher_suites=suites)), old)
    assert two.shake() == "done" and "ECDHE-ECDSA-AES256-GCM-SHA384" in two.client.description
    nothing = refused(wire(TlsFace(options(cipher_suites="ECDHE-RSA-AES128-GCM-SHA256")), old))
    assert "have no cipher suite, curve or signature algorithm in common" in nothing and "ssl.cipher.suites" in nothing
    assert "supports neither" in refused(wire(TlsFace(options(cipher_suites="TLS_AES_128_GCM_SHA256")), old))


def test_tickets_without_end_leave_the_loop_time_for_other_work(wire: Wires, server_context: Contexts) -> None:
    """OpenSSL reads on until it has plaintext: one call must not take all that a broker sends."""
    one = wire(context=server_context(minimum_version=ssl.TLSVersion.TLSv1_3, num_tickets=2000))
    for end in (one.ours, one.theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    assert one.shake() == "done"
    calls = 0
    while True:
        one.carry()
        waiting = unread(one.ours)
        if not waiting:
            break
        assert one.client.read(100) is None
        assert waiting - unread(one.ours) < 100_000
        assert one.client.pending or not unread(one.ours)
        calls += 1
    assert calls > 3 and not one.unsent
    one.serve(lambda: one.server.write(b"hello"))
    assert one.client.read(100) == b"hello"


def unread(sock: socket.socket) -> int:
    """The bytes that wait in a socket."""
    return struct.unpack("i", fcntl.ioctl(sock, termios.FIONREAD, bytes(4)))[0]


def plaintext(face: TlsFace, answer: bytes, end: bool = True, known: bool = False) -> Any:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    client = face.connect(ours.fileno(), "localhost", 9093)
    assert client.handshake() == "read"
    theirs.recv(10_000)
    theirs.sendall(answer)
    if end:
        theirs.close()
    state = client.handshake()
    assert state == "failed", state
    code, text = client.error_code, client.error_text
    client.drop()
    ours.close()
    theirs.close()
    return code, text


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n", b"\x00\x00\x00\x0a\x00\x00\x00\x01\x00#"])
def test_a_port_that_speaks_something_else(answer: bytes) -> None:
    code, text = plaintext(TlsFace(options()), answer)
    assert code == KafkaError._SSL and "the answer is not TLS: connect to the TLS listener's port" in text


def test_a_port_that_hangs_up(wire: Wires) -> None:
    face = TlsFace(options())
    code, text = plaintext(face, b"")
    assert code == KafkaError._SSL and "at the start of the TLS handshake: connect to the TLS listener's port" in text
    # A broker that has spoken TLS is in trouble: no reason to doubt the configuration.
    assert wire(face).shake() == "done"
    assert plaintext(face, b"") == (KafkaError._TRANSPORT, "closed by the broker during the TLS handshake")


def update_keys(server: ssl.SSLObject) -> None:
    """The server will change its keys before it sends again, and wants the client to change its own (RFC 8446 §4.6.3).

    Python's ssl offers no way to: the pointer lies after the head of its object and a reference.
    """
    import _ssl

    connection = ctypes.c_void_p.from_address(
        id(server._sslobj) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p))  # type: ignore[attr-defined]
    call = ctypes.CDLL(_ssl.__file__).SSL_key_update
    call.argtypes = [ctypes.c_void_p, ctypes.c_int]
    assert call(connection, 1) == 1


def test_keys_change_on_demand(wire: Wires, server_context: Contexts) -> None:
    one = wire(context=server_context(minimum_version=ssl.TLSVersion.TLSv1_3))
    assert one.shake() == "done"
    for number in range(5):
        update_keys(one.server)
        said = b"%d" % number
        one.serve(lambda said=said: one.server.write(said))
        assert one.read() == said
        assert one.client.crossed == 0
        assert one.client.write(said) == len(said)
        one.carry()
        assert one.server.read(10) == said


def test_keys_change_while_the_socket_is_full(wire: Wires, server_context: Contexts) -> None:
    """A record of ours is half sent when the wish for new keys comes, and so is, later, our answer to it: what is read
    in between comes whole, and what is written goes on where it was."""
    one = wire(context=server_context(minimum_version=ssl.TLSVersion.TLSv1_3))
    assert one.shake() == "done"
    one.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    data = bytes(range(251)) * 4000
    sent, received, heard, told = 0, b"", b"", b""
    turns = 0
    while len(received) < len(data):
        turns += 1
        while sent < len(data) and (taken := one.client.write(data[sent : sent + 5000])) is not None:
            sent += taken
        if turns % 7 == 1:
            update_keys(one.server)
            told += b"%d," % turns
            one.serve(lambda said=b"%d," % turns: one.server.write(said))
        while one.unsent:  # the way to the client is free
            one.unsent = one.unsent[one.theirs.send(one.unsent) :]
        heard += one.client.read(100) or b""
        with contextlib.suppress(BlockingIOError):
            one.into.write(one.theirs.recv(997))  # never where a record ends
        with contextlib.suppress(ssl.SSLWantReadError):
            received += one.server.read(1 << 20)
        one.unsent += one.out.read()
        assert turns < 100_000
    assert received == data
    while one.client.crossed:
        heard += one.client.read(100) or b""
        one.carry()
    heard += one.client.read(1 << 16) or b""
    assert heard == told and told.count(b",") > 50


def test_reading_waits_for_the_answer_to_new_keys(wire: Wires, server_context: Contexts) -> None:
    """The socket is full, and not with a record half sent, when new keys are wanted: until our answer to that has gone,
    OpenSSL does not read, so the transport says that reading waits for room to write."""
    one = wire(context=server_context(minimum_version=ssl.TLSVersion.TLSv1_3))
    assert one.shake() == "done" and one.read() is None
    one.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    piece, pieces = b"as long as the answer", 0

    def say(word: bytes) -> None:
        """By the server, without making room in the other direction."""
        one.server.write(word)
        data = one.out.read()
        assert one.theirs.send(data) == len(data)

    while one.client.write(piece) is not None:
        pieces += 1
    while one.client.write(piece) is None:  # the one that did not fit; then it is full again
        one.into.write(one.theirs.recv(1))
    pieces += 1
    update_keys(one.server)
    say(b"new keys")
    assert one.client.read(100) == b"new keys"
    assert one.client.write(piece) is None
    assert one.client.crossed == 0
    say(b"more")
    for _ in range(2):
        assert one.client.read(100) is None
        assert one.client.crossed == READ_WANTS_WRITE
        assert not one.client.pending
    one.carry()
    assert one.client.read(100) == b"more"
    assert one.client.crossed == 0
    assert one.client.write(piece) == len(piece)
    pieces += 1
    one.carry()
    received = b""
    with contextlib.suppress(ssl.SSLWantReadError):
        while True:
            received += one.server.read(1 << 16)
    assert received == piece * pieces


def test_garbage_after_the_handshake(wire: Wires) -> None:
    one = wire()
    assert one.shake() == "done"
    assert one.read() is None
    one.theirs.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
    with pytest.raises(OSError, match="TLS receive failed: "):
        one.client.read(10)
    assert one.client.error_code == KafkaError._TRANSPORT and not one.client.pending


def test_blocking_server_in_a_thread(server_context: Contexts) -> None:
    """A whole megabyte each way, the server at its own pace."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    data = b"0123456789abcdef" * 65536

    def serve() -> None:
        with server_context().wrap_socket(theirs, server_side=True) as server:
            server.sendall(data)
            assert server.recv(2) == b"ok"

    thread = threading.Thread(target=serve)
    thread.start()
    client = TlsFace(options()).connect(ours.fileno(), "localhost", 1, True)
    while client.handshake() != "done":
        pass
    got = bytearray()
    while len(got) < len(data):
        got += client.read(1 << 20) or b""
    assert bytes(got) == data
    client.write(b"ok")
    thread.join()
    client.drop()
    ours.close()


# -- credentials -------------------------------------------------------------------------------------------------------


def wrong(**given: Any) -> str:
    with pytest.raises(ValueError) as caught:
        TlsFace(options(**given))
    return str(caught.value)


@pytest.fixture
def files(tmp_path: Path) -> SimpleNamespace:
    certificate, key = CLIENT.write(tmp_path, "client")
    locked = tmp_path / "locked.key"
    locked.write_text(CLIENT.key_pem("right"))
    store = tmp_path / "client.p12"
    store.write_bytes(CLIENT.keystore("right"))
    other = tmp_path / "other.key"
    other.write_text(SERVER.key_pem())
    return SimpleNamespace(certificate=str(certificate), key=str(key), locked=str(locked), store=str(store),
                           other=str(other))


def test_files_that_cannot_be_used(files: SimpleNamespace, tmp_path: Path) -> None:
    certificate = {"certificate_location": files.certificate}
    none, empty, damaged = str(tmp_path / "none"), tmp_path / "empty", tmp_path / "damaged"
    empty.touch()
    damaged.write_text(AUTHORITY.pem.replace("MII", "AAA", 1))
    folder = tmp_path / "folder"
    folder.mkdir()
    missing = f"'{none}' cannot be read: No such file or directory"
    assert wrong(ca_pem=None, ca_location=none) == f"ssl.ca.location {missing}"
    assert wrong(ca_pem=None, ca_location=str(empty)) == f"ssl.ca.location '{empty}' contains no certificate (PEM)"
    assert wrong(ca_pem=None, ca_location=str(damaged)).startswith(f"ssl.ca.location '{damaged}' is damaged: ")
    assert wrong(ca_pem=None, ca_location=str(folder)) == (
        f"ssl.ca.location '{folder}' has no file with a certificate (PEM)")
    assert wrong(ca_pem="nothing") == "ssl.ca.pem contains no certificate (PEM)"
    assert wrong(cipher_suites="TLS_AES_128_GCM_SHA256", protocols="TLSv1.2") == (
        "ssl.cipher.suites 'TLS_AES_128_GCM_SHA256' contains no suite of TLS 1.2, the only version in "
        "ssl.enabled.protocols")
    assert wrong(crl_location=none) == f"ssl.crl.location {missing}"
    assert wrong(crl_location=str(empty)) == (
        f"ssl.crl.location '{empty}' contains no list of revoked certificates (PEM)")
    assert wrong(certificate_location=none, key_location=files.key) == f"ssl.certificate.location {missing}"
    assert wrong(certificate_location=files.key, key_location=files.key) == (
        f"ssl.certificate.location '{files.key}' contains no certificate (PEM)")
    assert wrong(key_location=none, **certificate) == f"ssl.key.location {missing}"
    assert wrong(key_location=files.certificate, **certificate) == (
        f"ssl.key.location '{files.certificate}' contains no private key (PEM)")
    assert wrong(key_location=files.other, **certificate) == (
        f"ssl.key.location '{files.other}' is not the key of the certificate in ssl.certificate.location "
        f"'{files.certificate}'")
    assert wrong(key_pem=SERVER.key_pem(), certificate_pem=CLIENT.certificate_pem) == (
        "ssl.key.pem is not the key of the certificate in ssl.certificate.pem")
    assert wrong(key_location=files.locked, **certificate) == (
        f"ssl.key.location '{files.locked}' is encrypted: set ssl.key.password")
    text = wrong(key_location=files.locked, key_password="hunter2", **certificate)
    assert text == f"ssl.key.location '{files.locked}' cannot be decrypted: ssl.key.password is wrong"
    assert wrong(keystore_location=none) == f"ssl.keystore.location {missing}"
    assert wrong(keystore_location=files.store) == (
        f"ssl.keystore.location '{files.store}' is encrypted: set ssl.keystore.password")
    assert wrong(keystore_location=files.store, keystore_password="hunter2") == (
        f"ssl.keystore.location '{files.store}' cannot be opened: ssl.keystore.password is wrong")
    assert "set PEM files in ssl.certificate.location" in wrong(keystore_location=files.key)
    damaged.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    assert "but a JKS keystore: convert it with keytool" in wrong(keystore_location=str(damaged))
    assert wrong(cipher_suites="NONSENSE") == "ssl.cipher.suites 'NONSENSE' contains no suite known to OpenSSL"
    assert "ssl.cipher.suites 'TLS_NONSENSE' " in wrong(cipher_suites="TLS_NONSENSE")
    assert wrong(curves="nonsense").startswith("ssl.curves.list 'nonsense' contains a curve unknown")
    assert wrong(sigalgs="nonsense").startswith("ssl.sigalgs.list 'nonsense' contains an algorithm unknown")


def test_every_form_of_an_identity(
    wire: Wires, server_context: Contexts, files: SimpleNamespace, tmp_path: Path
) -> None:
    open_store = tmp_path / "open.p12"
    open_store.write_bytes(CLIENT.keystore(None))
    for given in (
        {"certificate_location": files.certificate, "key_location": files.key},
        {"certificate_location": files.certificate, "key_location": files.locked, "key_password": "right"},
        {"certificate_pem": CLIENT.certificate_pem, "key_pem": CLIENT.key_pem("p"), "key_password": "p"},
        {"keystore_location": files.store, "keystore_password": "right"},
        {"keystore_location": str(open_store)},
    ):
        one = wire(TlsFace(options(**given)), server_context(ask="required"))
        assert one.shake() == "done"
        assert one.server.getpeercert()["subject"] == ((("commonName", "client"),),)


def test_authorities_from_files_folders_and_the_system(
    wire: Wires, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "authorities"
    folder.mkdir()
    Authority("Other CA").write(folder / "a.pem")
    bundle = AUTHORITY.write(folder / "no-hash-for-a-name.crt")
    (folder / "notes.txt").write_text("no certificate")
    (folder / "private.key").write_text(SERVER.key_pem())
    for place in (folder, bundle):
        assert wire(TlsFace(options(ca_pem=None, ca_location=str(place)))).shake() == "done"
    for given in ({"ca_pem": None}, {"ca_pem": None, "ca_location": "probe"}):
        monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
        monkeypatch.delenv("SSL_CERT_DIR", raising=False)
        assert wire(TlsFace(options(**given))).shake() == "done"
        monkeypatch.delenv("SSL_CERT_FILE")
        monkeypatch.setenv("SSL_CERT_DIR", str(folder))
        assert wire(TlsFace(options(**given))).shake() == "done"
        monkeypatch.delenv("SSL_CERT_DIR")


# -- rotation ----------------------------------------------------------------------------------------------------------


def test_certificates_are_read_again_once_they_changed(
    wire: Wires, server_context: Contexts, files: SimpleNamespace, tmp_path: Path
) -> None:
    face = TlsFace(options(certificate_location=files.certificate, key_location=files.key))
    context = server_context(ask="required")

    def subject() -> str:
        face.check()
        one = wire(face, context)
        assert one.shake() == "done"
        assert one.read() is None
        return str(one.server.getpeercert()["subject"][0][0][1])

    assert subject() == "client" and face.news() == (0, "")
    following = AUTHORITY.issue("following", client=True)
    Path(files.certificate).write_text(following.certificate_pem)
    assert subject() == "client"  # half of it: the key is still the old one's
    level, text = face.news()
    assert level == 3 and "is not the key of the certificate" in text and "the previous credentials stay in use" in text
    Path(files.key).write_text(following.key_pem())
    assert subject() == "following"
    assert face.news() == (5, "TLS credentials have changed on disk and were read again")
    assert subject() == "following" and face.news() == (0, "")
    Path(files.key).unlink()
    assert subject() == "following"
    assert face.news()[0] == 3


def test_a_mounted_secret_changes_by_its_link(
    wire: Wires, server_context: Contexts, tmp_path: Path
) -> None:
    other = Authority("Other CA")
    for name, authority in (("first", other), ("second", AUTHORITY)):
        (tmp_path / name).mkdir()
        authority.write(tmp_path / name / "ca.pem")
    link = tmp_path / "data"
    link.symlink_to("first")
    face = TlsFace(options(ca_pem=None, ca_location=str(link / "ca.pem")))
    assert "which is not among the trusted" in refused(wire(face))
    link.unlink()
    link.symlink_to("second")
    face.check()
    assert wire(face).shake() == "done"


def test_sessions_do_not_outlive_the_credentials_they_were_made_with(
    wire: Wires, server_context: Contexts, tmp_path: Path
) -> None:
    ca, context = AUTHORITY.write(tmp_path / "ca.pem"), server_context()
    face = TlsFace(options(ca_pem=None, ca_location=str(ca)))
    one = wire(face, context)
    assert one.shake() == "done" and one.read() is None
    ca.write_text(Authority("Other CA").pem)
    face.check()
    assert "which is not among the trusted" in refused(wire(face, context))


def test_a_closed_client_does_not_connect_again(wire: Wires) -> None:
    face = TlsFace(options())
    face.close()
    face.check()
    assert wire(face).client.handshake() == "failed"
