"""The settings of the relay and its sink.

The sink and how it is spoken to. Source: docs/events.md "Settings".
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, NoReturn

from pydantic import BeforeValidator, Field, SecretStr

from reconciler.settings import parsing
from reconciler.settings.environment import Environment

_EVENTS: Final = "PLEXSPHERE_EVENTS_"
LOG_SINK: Final = "log:"
_SCHEMES: Final = ("http://", "https://", "nats://", "tls://")
BATCH_MAX: Final = 10_000
"""A claim is held while its events are published: some megabytes, and some seconds."""
_SOURCE_MAX: Final = 256
_STREAM_MAX: Final = 32


def _refuse(rule: str) -> NoReturn:
    raise ValueError(rule)


def _sink(text: str) -> SecretStr:
    """Read where events go; kept redacted, because it may hold credentials."""
    rule = "must be log:, an http(s):// URL, or a nats:// or tls:// URL of a server"
    host = text.partition("://")[2].partition("/")[0].rpartition("@")[2]
    if text != LOG_SINK and not (text.startswith(_SCHEMES) and host and text.isprintable()):
        _refuse(rule)
    return SecretStr(text)


def _source(text: str) -> str:
    if len(text) > _SOURCE_MAX or not text.isascii() or not text.isprintable() or " " in text:
        _refuse(f"must be a URI or an absolute path of at most {_SOURCE_MAX} characters")
    return text


def _stream(text: str) -> str:
    if len(text) > _STREAM_MAX or not text.replace("-", "").replace("_", "").isalnum():
        _refuse(f"must be at most {_STREAM_MAX} letters, digits, dashes and underscores")
    return text


def _batch(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= BATCH_MAX:
        _refuse(f"must be a number between 1 and {BATCH_MAX}")
    return int(text)


def _mode(text: str) -> bool:
    if text not in {"structured", "binary"}:
        _refuse("must be structured or binary")
    return text == "binary"


class EventSettings(Environment):
    """The settings of event delivery."""

    events_sink: Annotated[SecretStr, BeforeValidator(_sink)] = Field(
        default=SecretStr(LOG_SINK),
        alias=f"{_EVENTS}SINK",
        description="Where events go; never shown, it may hold a password.",
    )
    events_source: Annotated[str, BeforeValidator(_source)] = Field(
        default="/plexsphere",
        alias=f"{_EVENTS}SOURCE",
        description="The CloudEvents source of this installation.",
    )
    events_batch: Annotated[int, BeforeValidator(_batch)] = Field(
        default=512,
        alias=f"{_EVENTS}BATCH",
        description="Events that one process claims at once.",
    )
    events_binary: Annotated[bool, BeforeValidator(_mode)] = Field(
        default=False,
        alias=f"{_EVENTS}HTTP_MODE",
        description="How an HTTP sink gets events: structured or binary.",
    )
    events_stream: Annotated[str, BeforeValidator(_stream)] | None = Field(
        default=None,
        alias=f"{_EVENTS}NATS_STREAM",
        description="JetStream stream that is created when it is missing; none: it must exist.",
    )
    events_ca_file: Annotated[Path, BeforeValidator(parsing.file)] | None = Field(
        default=None,
        alias=f"{_EVENTS}CA_FILE",
        description="PEM file of the authorities that a sink's certificate is checked with.",
    )
