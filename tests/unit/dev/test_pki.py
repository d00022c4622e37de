"""Certificates, checked by OpenSSL as strictly as newer Pythons do by default."""

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from dev import pki


def shake_hands(server: Path, *, name: str) -> None:
    """Let a client and a server built from the same folder meet in memory."""
    accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    accepting.load_cert_chain(server / "tls.crt", server / "tls.key")
    accepting.load_verify_locations(server / "ca.crt")
    accepting.verify_mode = ssl.CERT_REQUIRED
    calling = ssl.create_default_context(cafile=server / "ca.crt")
    calling.verify_flags |= ssl.VERIFY_X509_STRICT
    calling.load_cert_chain(server / "tls.crt", server / "tls.key")
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        calling.wrap_bio(down, up, server_hostname=name),
        accepting.wrap_bio(up, down, server_side=True),
    ]
    for _ in range(4):  # flights of a TLS 1.3 handshake, with one to spare
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)
    assert not ends


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "other.example", "192.0.2.7"])
def test_a_server_folder_is_good_for_mutual_tls(tmp_path: Path, name: str) -> None:
    hosts = ("other.example", "192.0.2.7")
    folder = pki.Authority.create("test").server_folder(tmp_path / "s", "fn", *hosts)

    shake_hands(folder, name=name)


def test_a_server_is_not_taken_for_another(tmp_path: Path) -> None:
    folder = pki.Authority.create("test").server_folder(tmp_path / "s", "fn")

    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(folder, name="elsewhere.example")


def test_a_loaded_authority_issues_what_the_original_vouches_for(tmp_path: Path) -> None:
    original = pki.Authority.create("test")
    copy = pki.Authority.load(
        pki.Pair(certificate=original.certificate, key=pki.private_key_pem(original.key))
    )

    folder = copy.server_folder(tmp_path / "s", "fn")
    (folder / "ca.crt").write_bytes(original.certificate)

    shake_hands(folder, name="localhost")


def test_kubernetes_reads_user_and_groups_from_the_subject() -> None:
    subject = pki.Subject(name="someone", groups=("one", "two"))

    pair = pki.Authority.create("test").issue(subject)

    certificate = x509.load_pem_x509_certificate(pair.certificate)
    assert certificate.subject.rfc4514_string() == "CN=someone,O=two,O=one"


def test_only_its_owner_may_read_the_key(tmp_path: Path) -> None:
    folder = pki.Authority.create("test").server_folder(tmp_path / "s", "fn")

    assert (folder / "tls.key").stat().st_mode & 0o077 == 0
