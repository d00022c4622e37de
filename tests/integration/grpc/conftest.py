"""Certificates and addresses for the function's own process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from dev.pki import Authority, Subject, write_folder
from tests.integration.grpc import serving


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Folders with ca.crt, tls.crt and tls.key.

    Attributes:
        server: The function's own.
        client: Crossplane's, of the same authority.
        stranger: A client's of another authority.
    """

    server: Path
    client: Path
    stranger: Path


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    folder = tmp_path_factory.mktemp("tls")
    ours = Authority.create("test")
    theirs = Authority.create("stranger")
    crossplane = Subject(name="crossplane")
    return Tls(
        server=ours.server_folder(folder / "server", "function"),
        client=write_folder(folder / "client", ours.certificate, ours.issue(crossplane)),
        stranger=write_folder(folder / "stranger", ours.certificate, theirs.issue(crossplane)),
    )


@pytest.fixture
def address() -> str:
    return serving.free_address()
