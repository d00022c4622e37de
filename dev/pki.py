"""Certificates for processes on this host.

Certificate authorities, what they issue, and the three-file folders that Crossplane and its
functions read. Everything in `dev` and the end-to-end tests may import it.
"""

import ipaddress
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=30)
"""Longer than any session; nothing here renews certificates."""

SKEW = timedelta(minutes=5)
"""Certificates start this much in the past, for clocks that were set back."""

LOOPBACK_NAMES = ("localhost",)
LOOPBACK_ADDRESSES = ("127.0.0.1",)

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def private_key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def public_key_pem(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def new_key() -> ec.EllipticCurvePrivateKey:
    """Make a P-256 key: quick to make, and accepted by everything that runs here."""
    return ec.generate_private_key(ec.SECP256R1())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whom a certificate names, and where it may be reached.

    Args:
        name: common name; Kubernetes takes it as the user.
        groups: organizations; Kubernetes takes them as the user's groups.
        dns_names: empty for a pure client.
        addresses: IP addresses; empty for a pure client.
    """

    name: str
    groups: Sequence[str] = ()
    dns_names: Sequence[str] = ()
    addresses: Sequence[str] = ()


class Authority:
    """A certificate authority, made here or taken from a cluster's Secret."""

    def __init__(self, certificate: x509.Certificate, key: PrivateKey) -> None:
        self._certificate = certificate
        self.key = key
        with warnings.catch_warnings():
            # Crossplane's own authority calls its country "Earth"; two letters are due.
            warnings.simplefilter("ignore", UserWarning)
            self._name = certificate.subject

    @classmethod
    def create(cls, name: str) -> Self:
        key = new_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = (
            _builder(subject, subject, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, pair: Pair) -> Self:
        """Take over an authority.

        Raises:
            TypeError: its key is neither RSA nor elliptic.
        """
        key = serialization.load_pem_private_key(pair.key, password=None)
        if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            message = f"cannot load authority: unsupported key type {type(key).__name__}"
            raise TypeError(message)
        return cls(x509.load_pem_x509_certificate(pair.certificate), key)

    @property
    def certificate(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, subject: Subject) -> Pair:
        """Issue a certificate good for both ends of a connection."""
        key = new_key()
        name = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in subject.groups),
                x509.NameAttribute(NameOID.COMMON_NAME, subject.name),
            ]
        )
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        # OpenSSL's strict mode, Python's default from 3.13, wants the issuer's key named.
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = (
            _builder(name, self._name, key)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(issuer, critical=False)
        )
        names = [
            *(x509.DNSName(name) for name in subject.dns_names),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in subject.addresses),
        ]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return Pair(
            certificate=certificate.public_bytes(serialization.Encoding.PEM),
            key=private_key_pem(key),
        )

    def server_folder(self, folder: Path, name: str, *host_names: str) -> Path:
        """Write what a server on this host needs for mutual TLS; answers `folder`.

        Args:
            folder: gets `ca.crt`, `tls.crt` and `tls.key`.
            name: the server's common name.
            host_names: further names and IP addresses beside `localhost` and 127.0.0.1.

        Idempotency: a second call replaces certificate and key.
        """
        addresses = tuple(host for host in host_names if _is_address(host))
        subject = Subject(
            name=name,
            dns_names=(*LOOPBACK_NAMES, *(host for host in host_names if host not in addresses)),
            addresses=(*LOOPBACK_ADDRESSES, *addresses),
        )
        return write_folder(folder, self.certificate, self.issue(subject))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def write_folder(folder: Path, authority: bytes, pair: Pair) -> Path:
    """Write `ca.crt`, `tls.crt` and `tls.key`, as a mounted TLS Secret shows them.

    Idempotency: a second call replaces the three files.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / "ca.crt").write_bytes(authority)
    (folder / "tls.crt").write_bytes(pair.certificate)
    key = folder / "tls.key"
    key.touch(mode=0o600)
    key.write_bytes(pair.key)
    return folder


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFETIME)
    )
