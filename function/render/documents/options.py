"""Rules for the knobs an enrolment document is made of: URLs, an image, checksums, CAs.

The checks, so that settings at start-up and a document at render time refuse the same
values. Errors name the field, never the value. Source: seed 003, "The three
composition-root knobs"; kinds.md, "Settings of broker serve".
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from function.contract.errors import ContractError

ARCHITECTURES: Final = ("amd64", "arm64")
"""The architectures plexd is published for, in Go's spelling."""

ARCH_PLACEHOLDER: Final = "{arch}"

URL_MAX: Final = 2048
"""Longest URL in characters: what every HTTP client and proxy accepts."""

IMAGE_MAX: Final = 512
"""Longest image reference in characters: 255 of repository, 128 of tag, 71 of digest."""

_URL_SAFE: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!&()*+,;=%-]+")
"""RFC 3986 without quote and dollar, so that a URL is inert in a shell and an env file."""

_IMAGE: Final = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._/-]*)?)"
    r"(:(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----"
)


def http_url(field: str, value: str | None) -> str:
    """Return an absolute http(s) URL with a host, trimmed.

    Raises:
        ContractError: It is blank, not absolute, of another scheme, holds user
            information or a character that a shell would read.
    """
    text = _required(field, value, URL_MAX)
    if not _URL_SAFE.fullmatch(text):
        raise ContractError(field=field, rule="must hold only unquoted URL characters")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ContractError(field=field, rule="must be an absolute http(s) URL") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise ContractError(field=field, rule="must be an absolute http(s) URL with a host")
    if "@" in parts.netloc:
        raise ContractError(field=field, rule="must not hold user information")
    return text


def download_url(field: str, value: str | None) -> dict[str, str]:
    """Return a download URL per architecture, `{arch}` replaced where it stands.

    Raises:
        ContractError: As `http_url`.
    """
    text = _required(field, value, URL_MAX)
    return {arch: http_url(field, text.replace(ARCH_PLACEHOLDER, arch)) for arch in ARCHITECTURES}


def image(field: str, value: str | None) -> str:
    """Return an image reference with a tag or a digest, trimmed.

    Raises:
        ContractError: It is blank, malformed, has neither tag nor digest, or floats on
            `:latest`.
    """
    text = _required(field, value, IMAGE_MAX)
    found = _IMAGE.fullmatch(text)
    if found is None:
        raise ContractError(field=field, rule="must be an image reference")
    if found["digest"] is None and found["tag"] is None:
        raise ContractError(field=field, rule="must have a tag or a digest")
    if found["tag"] == "latest":
        raise ContractError(field=field, rule="must not use the floating tag :latest")
    return text


def sha256(field: str, sums: dict[str, str]) -> dict[str, str]:
    """Return checksums by architecture, checked and in a fixed order.

    Raises:
        ContractError: An architecture is unknown or a sum is not 64 lower-case hex digits.
    """
    for arch in sorted(sums):
        if arch not in ARCHITECTURES:
            raise ContractError(field=field, rule=f"must be keyed by {' or '.join(ARCHITECTURES)}")
        if not _SHA256.fullmatch(sums[arch]):
            raise ContractError(field=f"{field}.{arch}", rule="must be 64 lower-case hex digits")
    return {arch: sums[arch] for arch in ARCHITECTURES if arch in sums}


def ca_bundle(field: str, value: str) -> tuple[str, ...]:
    """Return the certificates of a PEM bundle, one by one.

    Raises:
        ContractError: There is no certificate, or something that is none, such as a key.
    """
    text = value.replace("\r\n", "\n")
    certificates = tuple(_CERTIFICATE.findall(text))
    rest = _CERTIFICATE.sub("", text)
    if not certificates or "-----" in rest:
        raise ContractError(field=field, rule="must hold PEM certificates and nothing else")
    return certificates


def _required(field: str, value: str | None, longest: int) -> str:
    text = (value or "").strip()
    if not text:
        raise ContractError(field=field, rule="is required")
    if len(text) > longest:
        raise ContractError(field=field, rule=f"must hold at most {longest} characters")
    return text
