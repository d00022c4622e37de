"""Judges whether traffic to Postgres can be read or altered on its way.

Where a connection string leads and how it is protected there, by the driver's rules of
precedence. Where the driver would look elsewhere (a service file), the answer is the
careful one.
"""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

VERIFIED: Final = "verify-full"
"""The one mode in which a server proves that it has the name that was asked for (libpq)."""


def is_private(dsn: str, *, host: str | None, mode: str | None) -> bool:
    """Tell whether nobody between us and Postgres reads or answers in its place.

    Args:
        dsn: A `postgresql://` URL.
        host: `PGHOST`, which counts where the URL names no host.
        mode: `PGSSLMODE`, which counts where the URL has no `sslmode`.

    Returns:
        True when every host is this machine, by a socket or by loopback, or when the server's
        certificate is verified along with its name.
    """
    parts = urlsplit(dsn)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    elsewhere = "service" in options
    if options.get("sslmode", None if elsewhere else mode) == VERIFIED:
        return True
    before, at, after = parts.netloc.partition("@")
    listed = unquote(after if at else before) or options.get("host")
    if not listed:
        listed = None if elsewhere else host
        if not listed:
            # The driver tries the usual sockets, then localhost.
            return not elsewhere
    return all(_is_here(each) for each in listed.split(","))


def _is_here(host: str) -> bool:
    if host.startswith("/"):
        return True
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
