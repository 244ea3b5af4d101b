"""Certificates for tests: authorities, what they sign, lists of what they revoke, keystores.

Owns: Authority, Identity. Threads: any. Never: made for anything but tests: keys are quick to make and lie unprotected.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


@dataclass(frozen=True)
class Identity:
    """A certificate, its key, and the authorities between it and a root."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...] = ()

    @property
    def certificate_pem(self) -> str:
        return "".join(one.public_bytes(Encoding.PEM).decode() for one in (self.certificate, *self.chain))

    def key_pem(self, password: str | None = None) -> str:
        lock = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock).decode()

    def keystore(self, password: str | None) -> bytes:
        """PKCS#12."""
        lock = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return pkcs12.serialize_key_and_certificates(b"one", self.key, self.certificate, list(self.chain) or None, lock)

    def write(self, folder: Path, name: str, password: str | None = None) -> tuple[Path, Path]:
        """The files of the certificate and of the key."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_text(self.certificate_pem)
        key.write_text(self.key_pem(password))
        return certificate, key

    def write_both(self, path: Path) -> Path:
        """Certificate and key in one file, as Kafka's ``ssl.keystore.type=PEM`` wants them."""
        path.write_text(self.key_pem() + self.certificate_pem)
        return path


class Authority:
    """A CA: a root, or one signed by another."""

    def __init__(self, name: str = "Test CA", parent: Authority | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        issuer = parent or self
        self.name = _name(name)
        builder = (
            x509.CertificateBuilder().subject_name(self.name).issuer_name(issuer.name)
            .public_key(self.key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(_now() - DAY).not_valid_after(_now() + 100 * DAY)
            .add_extension(x509.BasicConstraints(True, None), True)
            .add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False)
        )
        self.certificate = builder.sign(issuer.key, hashes.SHA256())
        self.chain: tuple[x509.Certificate, ...] = (self.certificate, *parent.chain) if parent else ()

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write(self, path: Path) -> Path:
        path.write_text(self.pem)
        return path

    def issue(
        self,
        name: str = "localhost",
        hosts: Sequence[str] = ("localhost", "127.0.0.1"),
        start: datetime.timedelta = -DAY,
        end: datetime.timedelta = 30 * DAY,
        client: bool = False,
    ) -> Identity:
        """A certificate for `hosts`, valid from `start` to `end` from now; `client`: for a client and no server."""
        key = ec.generate_private_key(ec.SECP256R1())
        use = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        builder = (
            x509.CertificateBuilder().subject_name(_name(name)).issuer_name(self.name)
            .public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(_now() + start).not_valid_after(_now() + end)
            .add_extension(x509.BasicConstraints(False, None), True)
            .add_extension(x509.ExtendedKeyUsage([use]), False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), False)
        return Identity(builder.sign(self.key, hashes.SHA256()), key, self.chain)

    def revoke(self, *identities: Identity | Authority, end: datetime.timedelta = 30 * DAY,
               names_key: bool = True) -> str:
        """The list of revoked certificates (PEM), with or without the extension that names the CA's key."""
        builder = (
            x509.CertificateRevocationListBuilder().issuer_name(self.name)
            .last_update(_now() - 2 * DAY).next_update(_now() + end)
        )
        if names_key:
            builder = builder.add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False)
        for identity in identities:
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder().serial_number(identity.certificate.serial_number)
                .revocation_date(_now() - DAY).build())
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def broker_in(folder: Path) -> Path:
    """The folder, with a CA (ca.pem) and the certificate and key of a broker that it has signed (broker.pem)."""
    authority = Authority()
    authority.write(folder / "ca.pem")
    authority.issue("broker").write_both(folder / "broker.pem")
    return folder
