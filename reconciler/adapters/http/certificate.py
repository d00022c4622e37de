"""Renews a listener's certificate while it listens.

Noticing new files and taking them over.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
from pathlib import Path
from typing import Final, NoReturn

RELOAD_INTERVAL_S: Final = 10.0
"""Between two looks at the files: a kubelet writes new ones within a minute, and certificates
are renewed days before they end."""
FILE_MAX_BYTES: Final = 1024 * 1024
"""Longest file that is looked at: a chain has a few kilobytes."""

_log = logging.getLogger(__name__)


class RenewedCertificate:
    """The newest good pair of a chain and a key.

    New files become a context of their own, and a handshake switches to the newest one that
    could be made. Loading them into the context in use would be shorter, but a new chain
    without its key, as files have it while they are written, would take the old key away.

    Args:
        chain: PEM.
        key: PEM, without a passphrase.

    Raises:
        OSError: They cannot be read, or are no pair.
        ValueError: The key has a passphrase.
    """

    def __init__(self, chain: Path, key: Path) -> None:
        self._chain = chain
        self._key = key
        self._seen: bytes | None = self._digest()
        self._newest = self._load()
        self._front = self._newest
        self._front.sni_callback = self._switch

    @property
    def context(self) -> ssl.SSLContext:
        """What the listener is opened with; it stays the same."""
        return self._front

    def renew(self) -> bool:
        """Take over files that changed; tell whether there is a new certificate.

        Files that cannot be used change nothing, and are logged once.
        """
        seen, self._seen = self._seen, self._read()
        if self._seen is None or self._seen == seen:
            if self._seen != seen:
                _log.warning("certificate_unusable error=unreadable")
            return False
        try:
            self._newest = self._load()
        except (OSError, ValueError) as error:
            _log.warning("certificate_unusable error=%s", type(error).__name__)
            return False
        _log.info("certificate_renewed")
        return True

    async def watch(self) -> NoReturn:
        """Renew until cancelled."""
        while True:
            await asyncio.sleep(RELOAD_INTERVAL_S)
            await asyncio.to_thread(self.renew)

    def _switch(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        # Called in every handshake, with or without a server name.
        connection.context = self._newest

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Without a password OpenSSL asks whoever is at the terminal.
        context.load_cert_chain(self._chain, self._key, password="")
        return context

    def _read(self) -> bytes | None:
        try:
            return self._digest()
        except OSError:
            return None

    def _digest(self) -> bytes:
        """Return what stands for the files' content: names and times say too little.

        A kubelet swaps a symbolic link, and two writes may fall into one tick of a clock.
        """
        found = hashlib.sha256()
        for path in (self._chain, self._key):
            with path.open("rb") as file:
                found.update(hashlib.sha256(file.read(FILE_MAX_BYTES)).digest())
        return found.digest()
