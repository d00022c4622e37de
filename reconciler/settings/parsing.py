"""Parses single settings from their text.

One parser per kind of value; each raises ValueError with the rule, never with the value.
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import SplitResult, urlsplit

from pydantic import BeforeValidator, SecretStr

CA_BUNDLE_MAX_BYTES: Final = 64 * 1024
"""More than any cloud takes as user data."""
DURATION_MAX: Final = timedelta(days=4000)

_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_UNIT_S: Final = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0,
}  # fmt: skip
_IMAGE_PATH: Final = re.compile(r"[a-z0-9][a-z0-9._-]*(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_URL_TEXT: Final = re.compile(r"([A-Za-z0-9._~:/?#@!$&()*+,;=%\[\]-]|\{arch\})+")
"""What RFC 3986 allows but the quote, because URLs end up in scripts; and `{arch}`."""
_RATE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)/(s|m|h)")
_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """An address to listen on; port 0 takes a free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Tell whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterRate:
    """Registrations per second, of one address and of one Project."""

    per_address: float
    per_project: float


def duration(text: str) -> timedelta:
    """Read a duration in Go's syntax, for example `1h30m` or `250ms`.

    Raises:
        ValueError: It is none, it is negative, or it is longer than eleven years.
    """
    if text == "0":
        return timedelta()
    end = 0
    seconds = 0.0
    for match in _DURATION.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        seconds += float(match[1]) * _UNIT_S[match[2]]
    if not text or end != len(text) or seconds > DURATION_MAX.total_seconds():
        _refuse("must be a positive duration such as 30s or 1h")
    return timedelta(seconds=seconds)


def _refuse(rule: str) -> NoReturn:
    raise ValueError(rule)


def between(shortest: timedelta, longest: timedelta, rule: str) -> BeforeValidator:
    """Return the validator of a duration with bounds."""
    return BeforeValidator(partial(_within, shortest, longest, rule))


def between_or_never(shortest: timedelta, longest: timedelta, rule: str) -> BeforeValidator:
    """Return the validator of a duration with bounds, or of the word `never`, which is None."""

    def check(text: str) -> timedelta | None:
        return None if text == "never" else _within(shortest, longest, rule, text)

    return BeforeValidator(check)


def _within(shortest: timedelta, longest: timedelta, rule: str, text: str) -> timedelta:
    value = duration(text)
    if not shortest <= value <= longest:
        _refuse(rule)
    return value


def dsn(text: str) -> SecretStr:
    """Read a connection string; kept redacted, because it holds a password."""
    try:
        netloc = urlsplit(text).netloc
    except ValueError:
        _refuse("must be a postgresql:// URL")
    if not text.startswith(("postgresql://", "postgres://")):
        _refuse("must be a postgresql:// URL")
    for host in netloc.rpartition("@")[2].split(","):
        if not _has_port(host):
            _refuse("must be a postgresql:// URL with ports up to 65535")
    return SecretStr(text)


def _has_port(host: str) -> bool:
    """Tell whether the port of a host, if it has one, is legal."""
    try:
        _ = urlsplit(f"//{host}").port
    except ValueError:
        return False
    return True


def url(text: str) -> str:
    """Read an absolute http(s) URL, as it is."""
    parts = _split(text)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        _refuse("must be an absolute http(s) URL with a host")
    if "@" in parts.netloc or parts.fragment:
        _refuse("must be a URL without credentials and without a fragment")
    return text


def _split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts if _URL_TEXT.fullmatch(text) else None


def base_url(text: str) -> str:
    """Read a URL that paths are appended to: without a query, without a slash at its end."""
    absolute = url(text)
    if "?" in absolute or "{" in absolute:
        _refuse("must be a URL without a query or placeholder")
    return absolute.rstrip("/")


def image(text: str) -> str:
    """Read an image reference that names one image: by tag or by digest, never `:latest`."""
    name, at, digest = text.partition("@")
    repository, _, last = name.rpartition("/")
    last, colon, tag = last.partition(":")
    path = f"{repository}/{last}".removeprefix("/")
    if _IMAGE_PATH.fullmatch(path) is None or (at and _DIGEST.fullmatch(digest) is None):
        _refuse("must be an image reference")
    if tag == "latest":
        _refuse("must not use the floating tag :latest")
    if not at and not colon:
        _refuse("must have a tag or a digest")
    if colon and _TAG.fullmatch(tag) is None:
        _refuse("must have a valid tag")
    return text


def sums(text: str) -> dict[str, str]:
    """Read SHA-256 sums per architecture."""
    sums: dict[str, str] = {}
    for item in text.split(","):
        architecture, _, checksum = item.strip().partition("=")
        known = architecture in {"amd64", "arm64"} and architecture not in sums
        if not known or re.fullmatch(r"[0-9a-fA-F]{64}", checksum) is None:
            _refuse("must be amd64=<64 hex digits>,arm64=<64 hex digits>")
        sums[architecture] = checksum.lower()
    return sums


def listen(text: str) -> ListenAddress:
    """Read `host:port`; an empty host means every address, as Go reads it."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "0.0.0.0"  # noqa: S104 - as Go reads it
    if not colon or not port.isdecimal() or int(port) > 65535:
        _refuse("must be host:port")
    return ListenAddress(host=host, port=int(port))


def rate(text: str) -> RegisterRate:
    """Read one rate, or two: per address and per Project."""
    parts = [_RATE.fullmatch(part.strip()) for part in text.split(",")]
    rates = [float(part[1]) / _UNIT_S[part[2]] for part in parts if part is not None]
    if len(rates) != len(parts) or len(rates) > 2 or min(rates) <= 0:
        _refuse("must be <per address>/s,<per Project>/s")
    return RegisterRate(per_address=rates[0], per_project=rates[-1])


def file(text: str) -> Path:
    """Read the path of a file that exists."""
    path = Path(text)
    if not path.is_file() or not os.access(path, os.R_OK):
        _refuse("must name a file that can be read")
    return path


def is_pair(certificate: Path, key: Path) -> bool:
    """Tell whether two files are a PEM chain and its key, which must have no passphrase."""
    try:
        # Without a password OpenSSL asks whoever is at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        return False
    return True


def ca_bundle(text: str) -> str:
    """Read the certificates of a PEM file."""
    path = file(text)
    if path.stat().st_size > CA_BUNDLE_MAX_BYTES:
        _refuse(f"must name a file of at most {CA_BUNDLE_MAX_BYTES} bytes")
    bundle = path.read_text(encoding="ascii", errors="replace")
    if _CERTIFICATE not in bundle or "PRIVATE KEY" in bundle:
        _refuse("must name a file of PEM certificates without a key")
    return bundle
