"""A listener's certificate is renewed while it listens."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization

from dev.pki import Authority, new_key
from reconciler.adapters.http import certificate as certificate_module
from reconciler.adapters.http.certificate import RenewedCertificate
from reconciler.adapters.http.listener import TLSFiles, listening
from tests.integration.http.conftest import LOOPBACK

pytestmark = pytest.mark.integration

DEADLINE_S = 10.0
AUTHORITY = Authority.create("tests")


class Mounted:
    """A Secret's folder as a kubelet mounts it: files are links into a folder that is swapped."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._number = 0
        root.mkdir()
        self.renew()
        for name in ("tls.crt", "tls.key"):
            (root / name).symlink_to(f"..data/{name}")

    @property
    def files(self) -> TLSFiles:
        return TLSFiles(certificate=self._root / "tls.crt", key=self._root / "tls.key")

    def renew(self) -> None:
        """Swap a new pair in."""
        self.swap_in(AUTHORITY.server_folder)

    def break_it(self) -> None:
        """Swap in a new chain with the key of yet another one."""

        def make(folder: Path, name: str) -> None:
            AUTHORITY.server_folder(folder, name)
            other = self._root.parent / f"other-{self._number}"
            AUTHORITY.server_folder(other, name)
            shutil.copy(other / "tls.key", folder / "tls.key")

        self.swap_in(make)

    def swap_in(self, make: Callable[[Path, str], object]) -> None:
        self._number += 1
        folder = self._root / f"..{self._number}"
        make(folder, "node-listener")
        link = self._root / "..data_tmp"
        link.symlink_to(folder.name)
        os.replace(link, self._root / "..data")


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    return Mounted(tmp_path / "tls")


@pytest.fixture
async def port(mounted: Mounted, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(certificate_module, "RELOAD_INTERVAL_S", 0.02)
    app = web.Application()

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    app.router.add_get("/", hello)
    async with listening(app, LOOPBACK, tls=mounted.files) as url:
        yield int(url.rpartition(":")[2])


async def _connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return await asyncio.open_connection("127.0.0.1", port, ssl=context)


def _certificate_of(writer: asyncio.StreamWriter) -> bytes:
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    assert isinstance(found, bytes)
    return found


async def _seen(port: int) -> bytes:
    _, writer = await _connect(port)
    try:
        return _certificate_of(writer)
    finally:
        writer.close()
        await writer.wait_closed()


async def _until(fact: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not await fact():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_a_new_certificate_is_shown_without_a_restart(port: int, mounted: Mounted) -> None:
    first = await _seen(port)
    reader, writer = await _connect(port)

    mounted.renew()

    async def changed() -> bool:
        return await _seen(port) != first

    await _until(changed)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200"), "an open connection goes on"
    assert _certificate_of(writer) == first
    writer.close()


async def test_a_broken_pair_changes_nothing_and_is_told_once(
    port: int, mounted: Mounted, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    first = await _seen(port)

    mounted.break_it()

    async def told() -> bool:
        return "certificate_unusable" in caplog.text

    await _until(told)
    await asyncio.sleep(0.2)
    assert await _seen(port) == first
    assert caplog.text.count("certificate_unusable") == 1

    mounted.renew()

    async def changed() -> bool:
        return await _seen(port) != first

    await _until(changed)


def test_the_same_files_are_not_loaded_again(mounted: Mounted) -> None:
    certificate = RenewedCertificate(mounted.files.certificate, mounted.files.key)

    assert not certificate.renew()


def test_files_that_are_gone_are_told_once_and_taken_when_they_are_back(
    mounted: Mounted, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = RenewedCertificate(mounted.files.certificate, mounted.files.key)
    key = mounted.files.key
    key.unlink()

    assert [certificate.renew(), certificate.renew()] == [False, False]
    assert caplog.text.count("certificate_unusable") == 1

    mounted.renew()
    key.symlink_to("..data/tls.key")

    assert certificate.renew()


def test_a_key_with_a_passphrase_asks_nobody(mounted: Mounted) -> None:
    locked = new_key().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    mounted.files.key.write_bytes(locked)

    with pytest.raises((OSError, ValueError)):
        RenewedCertificate(mounted.files.certificate, mounted.files.key)
