"""Strict JSON bodies.

Size, type, encoding, and shape of a body. Nothing of a body is ever part of an error,
because a token may stand anywhere in it.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, ValidationError

from reconciler.adapters.http.problem import refuse

BODY_MAX_BYTES: Final = 16 * 1024
"""Largest body: a registration is below one kibibyte (contracts §1.3)."""

Model = TypeVar("Model", bound="StrictBody")


class StrictBody(BaseModel):
    """A body whose unknown fields are refused and whose types are not coerced."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, hide_input_in_errors=True,
        arbitrary_types_allowed=True,
    )  # fmt: skip


async def read(request: web.Request, model: type[Model], *, code: str = "") -> Model:
    """Return a request's body.

    Args:
        request: Whose body it is.
        model: What it must be.
        code: The contract's code for a body that cannot be decoded; empty for none.

    Raises:
        ProblemError: 415 for another content type, any content encoding or another Unicode
            encoding than UTF-8, 413 for more than 16 KiB, 400 for what is no such JSON object.
    """
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise refuse(415, "Content-Encoding must be absent", code=code)
    if request.content_type != "application/json":
        raise refuse(415, "Content-Type must be application/json", code=code)
    if (request.charset or "utf-8").lower() != "utf-8":
        raise refuse(415, "the body must be UTF-8", code=code)
    raw = await _bounded(request)
    # Python's reader guesses the encoding by the first bytes and takes UTF-16 and UTF-32.
    if not json.detect_encoding(raw).startswith("utf-8"):
        raise refuse(415, "the body must be UTF-8", code=code)
    try:
        text = raw.decode("utf-8-sig")
        decoded = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        return model.model_validate(decoded)
    except ValidationError as error:
        raise refuse(400, _describe(error, model), code=code) from None
    except (ValueError, RecursionError):
        detail = "the body must be one JSON object without duplicate fields"
        raise refuse(400, detail, code=code) from None


async def _bounded(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        detail = f"the body must hold at most {BODY_MAX_BYTES} bytes"
        raise refuse(413, detail) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        message = "a field is duplicated"
        raise ValueError(message)
    # A lone surrogate is legal JSON, and no text: nothing behind this could store it.
    for key, value in pairs:
        key.encode()
        if isinstance(value, str):
            value.encode()
    return fields


def _no_constant(_: str) -> NoReturn:
    message = "NaN and Infinity are not valid JSON"
    raise ValueError(message)


def _describe(error: ValidationError, model: type[StrictBody]) -> str:
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        if problem["type"] == "extra_forbidden":
            return "the body has a field that this request does not define"
        field = str(problem["loc"][0]) if problem["loc"] else ""
        if field in model.model_fields:
            return f"{field} has the wrong type or is missing"
    return "the body must be a JSON object"
