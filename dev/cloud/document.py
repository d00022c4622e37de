"""Parses a ``#cloud-config`` document into the values that a boot executes.

Pure: bytes in, a ``Document`` or a ``DocumentError`` out; faults of single entries are kept as
values, because cloud-init goes on with the rest. Errors name places and rules, never content: the
document carries a bootstrap token. Read by the guest and by tests.

Source: cloud-init's modules ``write_files``, ``ca_certs`` and ``runcmd``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from dev.cloud import decoding

_HEADER = b"#cloud-config"
_DEFAULT_MODE = 0o644
_MODE_MAX = 0o7777


class DocumentError(ValueError):
    """The whole document cannot be executed; the text quotes nothing of it."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"cannot read document: {detail}")


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One entry of ``write_files``.

    Attributes:
        place: Where the entry stands, for messages: ``write_files[3]``.
        content: Decoded bytes.
        mode: Permission bits.
        owner: ``user`` or ``user:group``.
    """

    place: str
    path: str
    content: bytes
    mode: int
    owner: str
    append: bool
    deferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CaCerts:
    """The ``ca_certs`` key: certificates to trust, and whether the shipped ones go."""

    trusted: tuple[str, ...]
    remove_defaults: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What one boot executes.

    Attributes:
        files: In document order, deferred ones included.
        ca_certs: ``None``: the key is absent and the trust store stays as it is.
        commands: A ``str`` is shell text, a tuple is a program with its arguments.
        faults: What was skipped and why, in document order.
    """

    files: tuple[File, ...]
    ca_certs: CaCerts | None
    commands: tuple[str | tuple[str, ...], ...]
    faults: tuple[str, ...]


def parse(user_data: str | bytes) -> Document:
    """Reads user data, packed or plain.

    Raises:
        DocumentError: broken packing, no ``#cloud-config`` first line, no YAML mapping below it.
    """
    try:
        data = decoding.unwrap(user_data)
    except decoding.DecodingError as error:
        raise DocumentError(str(error)) from None
    if data.split(b"\n", 1)[0].strip() != _HEADER:
        detail = "its first line must be #cloud-config"
        raise DocumentError(detail)
    faults: list[str] = []
    body = _mapping(data)
    return Document(
        files=_files(body.get("write_files"), faults),
        ca_certs=_ca_certs(body, faults),
        commands=_commands(body.get("runcmd"), faults),
        faults=tuple(faults),
    )


def _mapping(data: bytes) -> Mapping[str, Any]:
    try:
        body = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError):
        # PyYAML quotes the offending line, which may hold the token.
        detail = "it is not YAML"
        raise DocumentError(detail) from None
    if body is None:
        return {}
    if not isinstance(body, dict):
        detail = "its body must be a mapping"
        raise DocumentError(detail)
    return body


def _list(value: object, place: str, faults: list[str]) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        faults.append(f"{place}: must be a list")
        return []
    return value


def _files(value: object, faults: list[str]) -> tuple[File, ...]:
    files: list[File] = []
    for index, entry in enumerate(_list(value, "write_files", faults)):
        place = f"write_files[{index}]"
        try:
            files.append(_file(entry, place))
        except ValueError as error:
            faults.append(f"{place}: {error}")
    return tuple(files)


def _file(entry: object, place: str) -> File:
    if not isinstance(entry, dict):
        message = "must be a mapping"
        raise ValueError(message)  # noqa: TRY004 - one type for every fault of an entry
    path = entry.get("path")
    if not isinstance(path, str) or not path.startswith("/"):
        message = "path must be an absolute path"
        raise ValueError(message)
    content = entry.get("content")
    if content is None:
        content = b""
    if not isinstance(content, (str, bytes)):
        message = "content must be text or binary"
        raise ValueError(message)  # noqa: TRY004 - one type for every fault of an entry
    raw = content.encode() if isinstance(content, str) else content
    return File(
        place=place,
        path=path,
        content=decoding.decode(raw, str(entry.get("encoding") or "")),
        mode=_mode(entry.get("permissions")),
        owner=str(entry.get("owner") or "root:root"),
        append=entry.get("append") is True,
        deferred=entry.get("defer") is True,
    )


def _mode(value: object) -> int:
    """Reads permissions: a string is octal; a number is taken as it is; nonsense is the default."""
    if isinstance(value, int) and not isinstance(value, bool):
        mode = value
    elif isinstance(value, str):
        try:
            mode = int(value.strip(), 8)
        except ValueError:
            return _DEFAULT_MODE
    else:
        return _DEFAULT_MODE
    return mode if 0 <= mode <= _MODE_MAX else _DEFAULT_MODE


def _ca_certs(body: Mapping[str, Any], faults: list[str]) -> CaCerts | None:
    value = body.get("ca_certs", body.get("ca-certs"))
    if value is None:
        return None
    if not isinstance(value, dict):
        faults.append("ca_certs: must be a mapping")
        return None
    trusted = value.get("trusted")
    if isinstance(trusted, str):
        trusted = [trusted]
    return CaCerts(
        trusted=tuple(str(item) for item in _list(trusted, "ca_certs.trusted", faults)),
        remove_defaults=value.get("remove_defaults", value.get("remove-defaults")) is True,
    )


def _commands(value: object, faults: list[str]) -> tuple[str | tuple[str, ...], ...]:
    commands: list[str | tuple[str, ...]] = []
    for index, entry in enumerate(_list(value, "runcmd", faults)):
        match entry:
            case str():
                commands.append(entry)
            case int() if not isinstance(entry, bool):
                commands.append(str(entry))
            case list() if entry:
                commands.append(tuple(str(word) for word in entry))
            case None:
                continue
            case _:
                faults.append(f"runcmd[{index}]: must be a string or a list")
    return tuple(commands)
